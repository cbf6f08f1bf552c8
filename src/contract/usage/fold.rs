//! The running total of a run before its receipt (provider runtime, 9.5).
//!
//! Only OpenCode forwards what each of its steps used.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::contract::event::EnvironmentEvent;
use crate::contract::strict::MAX_SAFE_INTEGER;
use crate::contract::types::{Count, TokenUsage, UsageMode};

use super::{Refusal, count};

/// Adds up what the steps of one run used and publishes the total so far with each of them.
///
/// It belongs to a stream that begins at the first frame of its execution, never to a replay after a cursor or a live
/// tail: their totals would miss what came before. It keeps the identity of every step that it has counted, and nothing
/// else that grows.
#[derive(Debug, Clone, Default)]
pub struct UsageFold {
    total: Tokens,
    counted: HashSet<String>,
    /// Whether a step did not tell both sides: a total after it would be too low.
    ended: bool,
}

impl UsageFold {
    /// A fold before the first frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of the stream and, where it is a step that counts, gives it the total so far as cumulative
    /// usage. An event that has usage or a mode of its own stays as it is; the receipt is never rewritten.
    ///
    /// # Errors
    ///
    /// `step-shape`, `step-count` or `overflow`; each ends the stream. A bad count is refused also after a step without
    /// both sides has ended the totals.
    pub fn publish(&mut self, event: &mut EnvironmentEvent) -> Result<(), Refusal> {
        if event.usage().is_some() || event.usage_mode().is_some() {
            return Ok(());
        }
        let Some(part) = step_of(event.kind(), event.data()) else {
            return Ok(());
        };
        let step = Step::read(part)?;
        if let Some(total) = self.add(step, step_id(part).or(event.id()))? {
            event.measure(total, UsageMode::Cumulative);
        }
        Ok(())
    }

    /// The total after this step, unless the step does not count.
    fn add(&mut self, step: Step, id: Option<&str>) -> Result<Option<TokenUsage>, Refusal> {
        let (Some(input), Some(output)) = (step.input, step.output) else {
            self.ended = true;
            return Ok(None);
        };
        if self.ended || id.is_some_and(|id| self.counted.contains(id)) {
            return Ok(None);
        }
        let read = [
            input,
            step.cache_read.unwrap_or(0),
            step.cache_write.unwrap_or(0),
        ];
        let written = [output, step.reasoning.unwrap_or(0)];
        let total = Tokens {
            input: sum("inputTokens", self.total.input, read)?,
            output: sum("outputTokens", self.total.output, written)?,
            total: more("totalTokens", self.total.total, step.total)?,
            cache_read: more(
                "cacheReadInputTokens",
                self.total.cache_read,
                step.cache_read,
            )?,
            cache_creation: more(
                "cacheCreationInputTokens",
                self.total.cache_creation,
                step.cache_write,
            )?,
            reasoning: more("reasoningTokens", self.total.reasoning, step.reasoning)?,
        };
        self.total = total;
        self.counted.extend(id.map(str::to_owned));
        Ok(total.published())
    }
}

/// The total so far. Sides start at zero, since the first step adds to both; other counts start absent.
#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    input: u64,
    output: u64,
    total: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
    reasoning: Option<u64>,
}

impl Tokens {
    fn published(self) -> Option<TokenUsage> {
        // Every sum was held to the safe integers when it was made.
        let count = |tokens: u64| Count::try_from(tokens).ok();
        let optional = |tokens: Option<u64>| tokens.and_then(count);
        Some(TokenUsage {
            input_tokens: count(self.input)?,
            output_tokens: count(self.output)?,
            total_tokens: optional(self.total),
            cache_read_input_tokens: optional(self.cache_read),
            cache_creation_input_tokens: optional(self.cache_creation),
            reasoning_tokens: optional(self.reasoning),
            cost: None,
        })
    }
}

fn sum(
    field: &'static str,
    before: u64,
    added: impl IntoIterator<Item = u64>,
) -> Result<u64, Refusal> {
    // A handful of safe integers stays far below what a `u64` holds.
    let sum = before + added.into_iter().sum::<u64>();
    if sum > MAX_SAFE_INTEGER {
        return Err(Refusal::Overflow { field });
    }
    Ok(sum)
}

/// A count that stays absent until a step reports it.
fn more(
    field: &'static str,
    before: Option<u64>,
    added: Option<u64>,
) -> Result<Option<u64>, Refusal> {
    match added {
        None => Ok(before),
        Some(added) => sum(field, before.unwrap_or(0), [added]).map(Some),
    }
}

/// What one step reports.
struct Step {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    total: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl Step {
    fn read(part: &Map<String, Value>) -> Result<Self, Refusal> {
        let shape = |path| Refusal::StepShape { path };
        let tokens = part.get("tokens").and_then(Value::as_object);
        let tokens = tokens.ok_or_else(|| shape("/part/tokens"))?;
        let told = |name| tokens_of(tokens, "/part/tokens", name);
        let (input, output) = (told("input")?, told("output")?);
        let (reasoning, total) = (told("reasoning")?, told("total")?);
        let cache = match tokens.get("cache") {
            None => None,
            Some(Value::Object(cache)) => Some(cache),
            Some(_) => return Err(shape("/part/tokens/cache")),
        };
        let cached = |name| match cache {
            None => Ok(None),
            Some(cache) => tokens_of(cache, "/part/tokens/cache", name),
        };
        Ok(Self {
            input,
            output,
            reasoning,
            total,
            cache_read: cached("read")?,
            cache_write: cached("write")?,
        })
    }
}

fn tokens_of(members: &Map<String, Value>, path: &str, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = members.get(name) else {
        return Ok(None);
    };
    match count(value) {
        Some(count) => Ok(Some(count)),
        None => Err(Refusal::StepCount {
            path: format!("{path}/{name}"),
        }),
    }
}

/// The finished part of a step, where the event is one: bare, or in the envelope of the harness.
fn step_of<'a>(kind: &str, data: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    fn says(members: &Map<String, Value>, key: &str, text: &str) -> bool {
        members.get(key).and_then(Value::as_str) == Some(text)
    }
    if kind != "raw" {
        return None;
    }
    let event = if !says(data, "type", "raw") {
        data
    } else if says(data, "backend", "opencode") {
        data.get("event")?.as_object()?
    } else {
        return None;
    };
    let part = event.get("part")?.as_object()?;
    let is_step = says(event, "type", "step_finish") && says(part, "type", "step-finish");
    (is_step && part.contains_key("tokens")).then_some(part)
}

fn step_id(part: &Map<String, Value>) -> Option<&str> {
    let id = part.get("id").and_then(Value::as_str);
    id.filter(|id| !id.is_empty())
}
