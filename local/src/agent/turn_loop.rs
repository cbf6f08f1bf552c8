//! One turn at work: updates become events, asks are answered, a cancel or the watchdog ends it.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::acp_types::{CancelNotification, PromptRequest, PromptResponse, SessionNotification};
use super::ask::TurnedDown;
use super::child::Child;
use super::driver::CostBefore;
use super::error::AgentError;
use super::launch::{Launch, UsageScope};
use super::outbox::{Outbox, bytes_of};
use super::rpc::{CallError, Ended, Inbound, parse};
use super::silence::Silence;
use super::token_meter::TokenMeter;
use super::tool_part::cut;
use super::translate::{Translator, raw};
use super::turn::{AgentEvent, Outcome, TurnEnd, Usage};

/// Bytes of a failure's message.
const MESSAGE_LIMIT: usize = 4096;

/// How long the output of a dead agent may still take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a turn leaves.
pub(super) struct Run {
    pub(super) end: TurnEnd,
    /// False when the process is dead or did not end its turn.
    pub(super) keep: bool,
    /// The session's cumulative cost, when it was reported.
    pub(super) session_cost: Option<f64>,
}

/// Why we ended the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Cancelled,
    Silent,
}

/// A stop on its way, and until when the agent may end the turn itself.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    why: Stop,
    until: Instant,
}

pub(super) struct TurnLoop<'a> {
    child: &'a mut Child,
    launch: &'a Launch,
    request: &'a PromptRequest,
    outbox: Outbox<'a>,
    cancel: &'a CancellationToken,
    watchdog: Duration,
    translator: Translator,
    turned_down: TurnedDown,
    stopping: Option<Stopping>,
    /// True once the prompt is on its way.
    sent: bool,
}

enum Next {
    Message(Inbound),
    Result(Result<PromptResponse, CallError>),
    Stop(Stop),
    /// Nothing was sent for a period.
    Silent,
    Died,
    GiveUp,
}

impl<'a> TurnLoop<'a> {
    pub(super) fn new(
        child: &'a mut Child,
        launch: &'a Launch,
        request: &'a PromptRequest,
        number: u64,
        events: &'a mpsc::Sender<AgentEvent>,
        cancel: &'a CancellationToken,
        watchdog: Duration,
    ) -> Self {
        // The group number tells two processes of one session apart, whose turns would else share part ids.
        let turn = format!("{}_{number}", child.group.id().as_raw_nonzero());
        let (translator, turned_down) = (Translator::new(&turn), TurnedDown::default());
        Self {
            child,
            launch,
            request,
            outbox: Outbox::new(events),
            cancel,
            watchdog,
            translator,
            turned_down,
            stopping: None,
            sent: false,
        }
    }

    pub(super) async fn run(mut self, warnings: Vec<AgentEvent>, before: CostBefore) -> Run {
        let context_lost = !warnings.is_empty();
        let before_turn = self.launch.meter.as_ref().map(TokenMeter::tally);
        self.send_all(warnings).await;
        let begin = self.translator.begin();
        self.send_all(begin).await;
        let result = self.converse().await;
        let (outcome, stop_reason, reported) = self.judge(&result);
        let counted = match (&self.launch.meter, before_turn) {
            (Some(meter), Some(before)) => meter.settled().await.since(before),
            _ => None,
        };
        let usage = counted.or(reported);
        let reason = step_reason(&outcome, stop_reason.as_deref());
        let last = self
            .translator
            .finish(reason, usage.map(|usage| usage.to_json()));
        self.send_all(last).await;
        let ended_itself = !self.sent
            || matches!(
                result,
                Some(Ok(_) | Err(CallError::Refused(_) | CallError::Shape))
            );
        let summary = self.translator.summary();
        let mut metadata = self.turned_down.into_metadata();
        if context_lost {
            metadata.insert("contextKept".to_owned(), false.into());
        }
        let end = TurnEnd {
            outcome,
            final_text: summary.final_text,
            tool_invocations: summary.tool_invocations,
            usage,
            cost_usd: cost_of_turn(before, summary.session_cost_usd),
            stop_reason,
            metadata,
        };
        Run {
            end,
            keep: ended_itself && self.child.is_alive(),
            session_cost: summary.session_cost_usd,
        }
    }

    /// Until the agent's result; `None` when we stopped waiting for it.
    async fn converse(&mut self) -> Option<Result<PromptResponse, CallError>> {
        // Queued first, so that a cancel cannot overtake it.
        let peer = self.child.peer.clone();
        let call = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            () = self.outbox.closed() => None,
            call = peer.request("session/prompt", self.request) => Some(call),
        };
        let Some(call) = call else {
            self.stopping = Some(Stopping {
                why: Stop::Cancelled,
                until: Instant::now(),
            });
            return None;
        };
        self.sent = true;
        let call = async { call?.result::<PromptResponse>().await };
        tokio::pin!(call);
        let mut silence = Silence::new(Instant::now(), self.launch.limits.silence);
        let mut dead_until = None;
        loop {
            let stopping = self.stopping;
            let Child { inbound, group, .. } = &mut *self.child;
            let next = tokio::select! {
                biased;
                () = self.cancel.cancelled(), if stopping.is_none() => Next::Stop(Stop::Cancelled),
                () = self.outbox.closed(), if stopping.is_none() => Next::Stop(Stop::Cancelled),
                () = at(stopping.map(|stopping| stopping.until)) => Next::GiveUp,
                Some(message) = inbound.recv() => Next::Message(message),
                result = &mut call => Next::Result(result),
                () = group.exited(), if dead_until.is_none() => Next::Died,
                () = at(dead_until) => Next::Result(Err(CallError::Ended(Ended::Eof))),
                () = sleep_until(silence.since() + self.watchdog), if stopping.is_none() => Next::Stop(Stop::Silent),
                () = sleep_until(silence.due()), if stopping.is_none() => Next::Silent,
            };
            match next {
                Next::Message(message) => {
                    self.message(message).await;
                    silence.broken(Instant::now());
                }
                Next::Result(result) => {
                    // Everything that was sent before the result is already in the queue.
                    while let Ok(message) = self.child.inbound.try_recv() {
                        self.message(message).await;
                    }
                    return Some(result);
                }
                Next::Stop(why) => self.stop(why).await,
                Next::Silent => self.send_all([silence.say(Instant::now())]).await,
                // A process that outlived the agent may hold its pipe, so that no end of input follows.
                Next::Died => dead_until = Some(Instant::now() + LAST_WORDS),
                Next::GiveUp => return None,
            }
        }
    }

    async fn message(&mut self, message: Inbound) {
        match message {
            Inbound::Stray(line) => self.child.log.stray(&line),
            Inbound::Notification { method, params } if method == "session/update" => {
                match parse::<SessionNotification>(params.as_deref()) {
                    Ok(update) => {
                        let events = self.translate(update);
                        self.send_all(events).await;
                    }
                    Err(_) => {
                        self.child.log.stray("an update that could not be read");
                        let bytes = params.map_or(0, |params| params.get().len());
                        let unread = serde_json::json!({ "truncated": true, "bytes": bytes });
                        self.send_all([raw(unread)]).await;
                    }
                }
            }
            Inbound::Notification { .. } => {}
            Inbound::Request { id, method, params } => {
                let stopping = self.stopping.is_some();
                let peer = &self.child.peer;
                let answer =
                    self.turned_down
                        .answer(peer, &id, &method, params.as_deref(), stopping);
                // An agent that does not read its answers is left to the watchdog.
                let warning = timeout(self.launch.limits.cancel, answer)
                    .await
                    .ok()
                    .flatten();
                self.send_all(warning).await;
            }
        }
    }

    fn translate(&mut self, update: SessionNotification) -> Vec<AgentEvent> {
        if update.session_id == self.request.session_id {
            self.translator.update(update.update)
        } else {
            // A sub-agent's session: passed on, never mixed with this one's parts.
            vec![raw(
                serde_json::json!({ "sessionId": update.session_id, "update": update.update }),
            )]
        }
    }

    /// Tells the agent to end the turn. Asks that arrive from here on are answered with `cancelled`.
    async fn stop(&mut self, why: Stop) {
        let until = Instant::now() + self.launch.limits.cancel;
        self.stopping = Some(Stopping { why, until });
        let session = CancelNotification {
            session_id: self.request.session_id.clone(),
        };
        let _ = timeout_at(until, self.child.peer.notify("session/cancel", &session)).await;
    }

    /// Waits for a slow reader; a cancel goes out to the agent meanwhile, and bounds the wait.
    async fn send_all(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        for event in events {
            let bytes = bytes_of(&event);
            let permit = match self.stopping {
                Some(stopping) => timeout_at(stopping.until, self.outbox.room(bytes))
                    .await
                    .ok(),
                None => tokio::select! {
                    biased;
                    permit = self.outbox.room(bytes) => Some(permit),
                    () = self.cancel.cancelled() => {
                        self.stop(Stop::Cancelled).await;
                        let until = self.stopping.map_or_else(Instant::now, |stopping| stopping.until);
                        timeout_at(until, self.outbox.room(bytes)).await.ok()
                    }
                },
            };
            if let Some(Some(permit)) = permit {
                self.outbox.send(permit, event, bytes);
            }
        }
    }

    fn judge(
        &self,
        result: &Option<Result<PromptResponse, CallError>>,
    ) -> (Outcome, Option<String>, Option<Usage>) {
        let answer = result.as_ref().and_then(|result| result.as_ref().ok());
        let stop_reason = answer.map(|answer| cut(&answer.stop_reason, 64).to_owned());
        let usage = answer.and_then(|answer| answer.usage.as_ref());
        let usage = usage
            .filter(|_| self.launch.usage == UsageScope::Turn)
            .and_then(reported);
        let outcome = match (self.stopping.map(|stopping| stopping.why), result) {
            (Some(Stop::Cancelled), _) => Outcome::Cancelled,
            (Some(Stop::Silent), _) | (None, None) => failure(
                "AGENT_SILENT",
                &format!(
                    "the agent sent nothing for {} ms and was stopped",
                    self.watchdog.as_millis()
                ),
            ),
            (None, Some(Ok(answer))) => match answer.stop_reason.as_str() {
                "cancelled" => Outcome::Cancelled,
                "refusal" => failure("AGENT_REFUSED", "the agent refused to go on"),
                _ => Outcome::Completed,
            },
            (None, Some(Err(CallError::Refused(error)))) => {
                failure("AGENT_EXECUTION_FAILED", &error.message)
            }
            (None, Some(Err(CallError::Ended(ended)))) => {
                let error = AgentError::Ended(*ended);
                failure(error.code(), &error.to_string())
            }
            (None, Some(Err(CallError::Shape))) => {
                let error = AgentError::Shape {
                    method: "session/prompt",
                };
                failure(error.code(), &error.to_string())
            }
        };
        (outcome, stop_reason, usage)
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn failure(code: &str, message: &str) -> Outcome {
    Outcome::Failed {
        code: code.to_owned(),
        message: cut(message, MESSAGE_LIMIT).to_owned(),
    }
}

fn step_reason(outcome: &Outcome, stop_reason: Option<&str>) -> &'static str {
    match (outcome, stop_reason) {
        (Outcome::Cancelled, _) => "cancelled",
        (Outcome::Failed { .. }, _) => "error",
        (Outcome::Completed, Some("max_tokens")) => "length",
        (Outcome::Completed, Some("max_turn_requests")) => "max-steps",
        (Outcome::Completed, _) => "stop",
    }
}

/// Tokens that say something: all zeros are what an agent sends when it does not know.
fn reported(usage: &Value) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let usage = Usage {
        input_tokens: count("inputTokens")?,
        output_tokens: count("outputTokens")?,
        total_tokens: count("totalTokens"),
        reasoning_tokens: count("thoughtTokens"),
        cache_read_input_tokens: count("cachedReadTokens"),
        cache_creation_input_tokens: count("cachedWriteTokens"),
    };
    (usage.input_tokens > 0 || usage.output_tokens > 0).then_some(usage)
}

/// The difference of the cumulative costs; absent when one of them is not known or the count began anew.
fn cost_of_turn(before: CostBefore, after: Option<f64>) -> Option<f64> {
    match (before, after) {
        (CostBefore::Known(before), Some(after)) if after >= before => Some(after - before),
        _ => None,
    }
}

impl TurnEnd {
    /// A turn that was cancelled before it began.
    pub(super) fn cancelled() -> Self {
        Self {
            outcome: Outcome::Cancelled,
            final_text: None,
            tool_invocations: Vec::new(),
            usage: None,
            cost_usd: None,
            stop_reason: None,
            metadata: serde_json::Map::<String, Value>::new(),
        }
    }

    /// A turn that failed before it began.
    pub(super) fn failed(code: &str, message: &str) -> Self {
        Self {
            outcome: failure(code, message),
            ..Self::cancelled()
        }
    }
}
