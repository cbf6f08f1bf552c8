//! The values that a turn yields: events while it runs, one end.

use serde_json::{Map, Value};

/// One event of the run stream, before it is numbered and recorded (wire protocol, 7.4).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentEvent {
    /// The event name, for example `message.part.updated`.
    pub kind: String,
    /// Its data.
    pub data: Map<String, Value>,
}

impl AgentEvent {
    /// An event from a name and a JSON object; any other value becomes `{ "value": … }`.
    #[must_use]
    pub fn new(kind: &str, data: Value) -> Self {
        let data = match data {
            Value::Object(data) => data,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self {
            kind: kind.to_owned(),
            data,
        }
    }

    /// What is new of a part, with its increment; or the whole part.
    pub(super) fn part(part: Value, delta: Option<&str>) -> Self {
        let mut data = Map::new();
        data.insert("part".to_owned(), part);
        if let Some(delta) = delta {
            data.insert("delta".to_owned(), delta.into());
        }
        Self {
            kind: "message.part.updated".to_owned(),
            data,
        }
    }

    /// A `warning` event: something that the reader of a result must not overlook.
    #[must_use]
    pub fn warning(code: &str, message: &str) -> Self {
        Self::new(
            "warning",
            serde_json::json!({ "code": code, "message": message }),
        )
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The agent finished its turn. Look into [`TurnEnd::metadata`] for rejected permissions.
    Completed,
    /// The turn was cancelled, whatever stop reason the agent gave.
    Cancelled,
    /// The turn failed.
    Failed {
        /// A code for programs, for example `AGENT_CRASHED`, `AGENT_SILENT`, `AGENT_LINE_TOO_LONG`,
        /// `AGENT_EXECUTION_FAILED`.
        code: String,
        /// A sentence for people, bounded to 4 096 bytes.
        message: String,
    },
}

/// A tool that the agent used, in order of first appearance.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInvocation {
    /// The tool's name.
    pub tool_name: String,
    /// The agent's id of the call.
    pub call_id: String,
    /// `pending`, `running`, `completed` or `error`.
    pub status: String,
    /// What the tool was called with, when it was reported and takes at most 16 KiB.
    pub input: Option<Value>,
    /// The tool's output, cut to 16 KiB.
    pub result: Option<String>,
    /// True when the input was left out or the result was cut or left out. The inputs and results of one turn take at
    /// most 4 MiB; the calls that end later keep their name, id and status.
    pub truncated: bool,
}

impl ToolInvocation {
    /// The entry of `result.toolInvocations`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("toolName".to_owned(), self.tool_name.clone().into());
        entry.insert("toolCallId".to_owned(), self.call_id.clone().into());
        entry.insert("status".to_owned(), self.status.clone().into());
        if let Some(input) = &self.input {
            entry.insert("input".to_owned(), input.clone());
        }
        if let Some(result) = &self.result {
            entry.insert("result".to_owned(), result.clone().into());
        }
        if self.truncated {
            entry.insert("truncated".to_owned(), true.into());
        }
        Value::Object(entry)
    }
}

/// Tokens of one turn, as far as they were reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens, without cached ones where the agent counts so.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The agent's own sum.
    pub total_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Input tokens read from a cache.
    pub cache_read_input_tokens: Option<u64>,
    /// Input tokens written to a cache.
    pub cache_creation_input_tokens: Option<u64>,
}

impl Usage {
    /// The value of `result.tokenUsage`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut usage = Map::new();
        usage.insert("inputTokens".to_owned(), self.input_tokens.into());
        usage.insert("outputTokens".to_owned(), self.output_tokens.into());
        let optional = [
            ("totalTokens", self.total_tokens),
            ("reasoningTokens", self.reasoning_tokens),
            ("cacheReadInputTokens", self.cache_read_input_tokens),
            ("cacheCreationInputTokens", self.cache_creation_input_tokens),
        ];
        for (name, count) in optional {
            if let Some(count) = count {
                usage.insert(name.to_owned(), count.into());
            }
        }
        Value::Object(usage)
    }
}

/// The end of a turn. Every event of the turn was handed over before this value exists.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The text of the agent's last message; `None` when there was none or when it takes more than 2 MiB as JSON, so that
    /// a reader joins the text deltas instead.
    pub final_text: Option<String>,
    /// The tools used, at most 1 000.
    pub tool_invocations: Vec<ToolInvocation>,
    /// Absent when nothing trustworthy was reported.
    pub usage: Option<Usage>,
    /// Cost of this turn in US dollars; absent when the agent reported none.
    pub cost_usd: Option<f64>,
    /// The stop reason in the agent's own word.
    pub stop_reason: Option<String>,
    /// For `result.metadata`: `rejectedPermissions` and `declinedQuestions` (lists), `contextKept: false` when a new
    /// native session had to be begun, `stopReason`.
    pub metadata: Map<String, Value>,
}
