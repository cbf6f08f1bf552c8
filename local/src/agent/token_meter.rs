//! Counts the tokens of a turn in the model proxy, where the agent's own count cannot be trusted or is missing.
//!
//! A turn's sum is right or absent: one answer without a count, or a request that still runs, makes it unknown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::turn::Usage;

/// Bytes of one streamed line, and of one whole JSON answer, that are looked into.
const LOOK_LIMIT: usize = 1 << 20;

/// The count of one proxy; clones share it.
#[derive(Clone, Debug, Default)]
pub struct TokenMeter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tally: Mutex<Tally>,
    /// Told whenever a request is over.
    over: Notify,
}

/// How long the end of an answer may take to reach the proxy after it has reached the agent.
const SETTLE: Duration = Duration::from_millis(500);

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    running: u64,
    counted: u64,
    uncounted: u64,
    tokens: Tokens,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cached: u64,
}

impl TokenMeter {
    pub(super) fn tally(&self) -> Tally {
        *self.lock()
    }

    /// What was counted, once the answers that the agent has already read are over here too.
    pub(super) async fn settled(&self) -> Tally {
        let _ = timeout(SETTLE, async {
            loop {
                let over = self.0.over.notified();
                if self.lock().running == 0 {
                    break;
                }
                over.await;
            }
        })
        .await;
        self.tally()
    }

    /// Begins one model request; it is over when the reading is dropped.
    pub(super) fn begin(&self) -> Reading {
        self.lock().running += 1;
        Reading {
            meter: self.clone(),
            form: Form::Unread,
            held: Vec::new(),
            skipping: false,
            tokens: None,
            free: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// What the time since `before` cost; `None` when that is not known.
    pub(super) fn since(self, before: Self) -> Option<Usage> {
        let known = self.running == 0 && before.running == 0 && self.uncounted == before.uncounted;
        if !known || self.counted == before.counted {
            return None;
        }
        let difference =
            |of: fn(&Tokens) -> u64| of(&self.tokens).saturating_sub(of(&before.tokens));
        let (input, output) = (
            difference(|tokens| tokens.input),
            difference(|tokens| tokens.output),
        );
        let cached = difference(|tokens| tokens.cached);
        Some(Usage {
            input_tokens: input.saturating_sub(cached),
            output_tokens: output,
            total_tokens: Some(input + output),
            reasoning_tokens: Some(difference(|tokens| tokens.reasoning))
                .filter(|tokens| *tokens > 0),
            cache_read_input_tokens: Some(cached).filter(|tokens| *tokens > 0),
            cache_creation_input_tokens: None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unread,
    Events,
    Json,
}

/// One answer, looked through while it passes.
#[derive(Debug)]
pub(super) struct Reading {
    meter: TokenMeter,
    form: Form,
    held: Vec<u8>,
    /// A line over the limit is not looked into.
    skipping: bool,
    tokens: Option<Tokens>,
    /// The request cost nothing: it was refused.
    free: bool,
}

impl Reading {
    /// Learns how the answer is written.
    pub(super) fn content_type(&mut self, content_type: &str) {
        self.form = match content_type.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Form::Events,
            "application/json" => Form::Json,
            _ => Form::Unread,
        };
    }

    /// The request was refused or is no model call.
    pub(super) fn free(mut self) {
        self.free = true;
    }

    /// Looks into the next bytes.
    pub(super) fn look(&mut self, chunk: &[u8]) {
        match self.form {
            Form::Unread => {}
            Form::Json => self.hold(chunk),
            Form::Events => {
                let mut lines = chunk.split(|byte| *byte == b'\n').peekable();
                while let Some(piece) = lines.next() {
                    self.hold(piece);
                    if lines.peek().is_some() {
                        self.line_ended();
                    }
                }
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.skipping |= self.held.len() + bytes.len() > LOOK_LIMIT;
        if !self.skipping {
            self.held.extend_from_slice(bytes);
        }
    }

    fn line_ended(&mut self) {
        let (line, skipped) = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.skipping),
        );
        let data = line.strip_prefix(b"data:").filter(|_| !skipped);
        if let Some(tokens) = data.and_then(tokens_in) {
            self.tokens = Some(tokens);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.form == Form::Json && !self.skipping {
            self.tokens = tokens_in(&self.held);
        }
        let mut tally = self.meter.lock();
        tally.running -= 1;
        match self.tokens {
            _ if self.free => {}
            Some(tokens) => {
                tally.counted += 1;
                tally.tokens.input += tokens.input;
                tally.tokens.output += tokens.output;
                tally.tokens.reasoning += tokens.reasoning;
                tally.tokens.cached += tokens.cached;
            }
            None => tally.uncounted += 1,
        }
        drop(tally);
        self.meter.0.over.notify_waiters();
    }
}

/// The counts in one JSON text, of the chat-completions or the responses dialect.
fn tokens_in(text: &[u8]) -> Option<Tokens> {
    let mentioned = text.windows(7).any(|window| window == b"\"usage\"");
    let body: Value = mentioned.then(|| serde_json::from_slice(text).ok())??;
    let usage = body
        .get("usage")
        .filter(|usage| usage.is_object())
        .or_else(|| body.get("response")?.get("usage"))?;
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    let detail = |names: [&str; 2], part: &str| {
        names
            .iter()
            .find_map(|name| usage.get(*name)?.get(part)?.as_u64())
    };
    Some(Tokens {
        input: count(["prompt_tokens", "input_tokens"])?,
        output: count(["completion_tokens", "output_tokens"])?,
        reasoning: detail(
            ["completion_tokens_details", "output_tokens_details"],
            "reasoning_tokens",
        )
        .unwrap_or(0),
        cached: detail(
            ["prompt_tokens_details", "input_tokens_details"],
            "cached_tokens",
        )
        .unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::{LOOK_LIMIT, TokenMeter};

    const CHAT: &str = concat!(
        "data: {\"choices\":[],\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,",
        "\"prompt_tokens_details\":{\"cached_tokens\":7},\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\n",
        "data: [DONE]\n\n",
    );

    fn read(meter: &TokenMeter, content_type: &str, text: &str, step: usize) {
        let mut reading = meter.begin();
        reading.content_type(content_type);
        text.as_bytes()
            .chunks(step)
            .for_each(|chunk| reading.look(chunk));
    }

    #[test]
    fn the_calls_of_a_turn_are_added_up_in_every_chunking() {
        for step in [1, 7, 4096] {
            let meter = TokenMeter::default();
            read(&meter, "text/event-stream; charset=utf-8", CHAT, step);
            let before = meter.tally();
            read(&meter, "text/event-stream", CHAT, step);
            read(
                &meter,
                "application/json",
                "{\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}",
                step,
            );
            let usage = meter.tally().since(before).unwrap();
            assert_eq!(
                (usage.input_tokens, usage.output_tokens, usage.total_tokens),
                (103, 22, Some(132))
            );
            assert_eq!(
                (usage.cache_read_input_tokens, usage.reasoning_tokens),
                (Some(7), Some(3))
            );
        }
    }

    #[test]
    fn one_answer_without_a_count_makes_the_sum_unknown() {
        let meter = TokenMeter::default();
        let before = meter.tally();
        assert_eq!(meter.tally().since(before), None);
        read(&meter, "text/event-stream", CHAT, 64);
        assert!(meter.tally().since(before).is_some());
        read(
            &meter,
            "text/event-stream",
            "data: {\"choices\":[]}\n\n",
            64,
        );
        assert_eq!(meter.tally().since(before), None);
    }

    #[test]
    fn a_request_that_still_runs_makes_the_sum_unknown_and_a_refused_one_costs_nothing() {
        let meter = TokenMeter::default();
        let before = meter.tally();
        read(&meter, "text/event-stream", CHAT, 64);
        let running = meter.begin();
        assert_eq!(meter.tally().since(before), None);
        running.free();
        assert_eq!(meter.tally().since(before).unwrap().output_tokens, 20);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_not_held() {
        let meter = TokenMeter::default();
        let before = meter.tally();
        let text = format!("data: \"{}\"\n{CHAT}", "x".repeat(2 * LOOK_LIMIT));
        read(&meter, "text/event-stream", &text, 4096);
        assert_eq!(meter.tally().since(before).unwrap().output_tokens, 20);
    }
}
