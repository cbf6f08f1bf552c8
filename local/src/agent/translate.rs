//! What an agent reports, as events of the run stream (wire protocol, 7.4). Pure: no clock, no I/O.
//!
//! The lane carries increments only: a `message.part.updated` has the part's identity and a `delta`, and the whole part
//! comes once, in the part's last frame. ACP has no steps, so a turn is one step.
//!
//! No event is larger than 2 MiB and a little, as JSON, and each says what is missing in it:
//!
//! | what | bytes as JSON | beyond them |
//! |---|---|---|
//! | `delta` | 256 KiB | it comes in several events; nothing is lost |
//! | text of a text or reasoning part's last frame | 2 MiB | `truncated: true` and no text; the deltas have it |
//! | a tool's output | 512 KiB | its beginning; `metadata.outputTruncated: true` |
//! | a tool's input | 128 KiB | none; `metadata.inputTruncated: true` |
//! | a tool's metadata | 128 KiB | only `truncated: true` |
//! | all open tools of a turn (in memory) | 16 MiB | the oldest lose input, output and metadata, marked like that |
//! | `raw`, `session.updated` | 256 KiB | `sessionUpdate`, `truncated: true` and `bytes`, the length |
//! | levels of nesting | 64 | a text that says so and begins with what it held |

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::size::{escaped_bytes, make_shallow, pieces, text_bytes};
use super::tools::Tools;
use super::turn::{AgentEvent, ToolInvocation};

/// Bytes of an increment in one event, as JSON.
pub(super) const DELTA_LIMIT: usize = 256 << 10;
/// Bytes of one text part that are kept for its last frame and for the final text, as JSON.
const TEXT_LIMIT: usize = 2 << 20;
/// Bytes of one native update that is passed on unchanged, as JSON.
const RAW_LIMIT: usize = 256 << 10;
/// Ids of parts that a turn takes over from the agent; later parts have ids of our own.
const PART_LIMIT: usize = 4096;
/// Bytes of an id that is taken over from the agent.
const ID_LIMIT: usize = 256;

/// Translates the updates of one turn.
#[derive(Debug)]
pub struct Translator {
    turn: String,
    counter: u64,
    taken: HashSet<String>,
    text: Option<TextPart>,
    reasoning: Option<TextPart>,
    tools: Tools,
    final_text: Option<String>,
    cost: Option<f64>,
}

/// What is known of a turn when it has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The text of the last message; `None` when there was none or it takes over 2 MiB as JSON.
    pub final_text: Option<String>,
    /// Tools in order of first appearance, at most 1 000, their inputs and results at most 4 MiB together.
    pub tool_invocations: Vec<ToolInvocation>,
    /// The newest cumulative cost of the session in US dollars.
    pub session_cost_usd: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Text,
    Reasoning,
}

impl TextKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

#[derive(Debug)]
struct TextPart {
    id: String,
    /// The agent's message id; `None` for a run of chunks without one.
    message: Option<String>,
    text: String,
    /// Bytes of the whole text as JSON; over the limit the text is not kept.
    bytes: usize,
}

impl TextPart {
    fn is_kept(&self) -> bool {
        self.bytes <= TEXT_LIMIT
    }
}

impl Translator {
    /// A translator for one turn; `turn` makes the ids of parts unique that the agent gave none.
    #[must_use]
    pub fn new(turn: &str) -> Self {
        Self {
            turn: turn.to_owned(),
            counter: 0,
            taken: HashSet::new(),
            text: None,
            reasoning: None,
            tools: Tools::default(),
            final_text: None,
            cost: None,
        }
    }

    /// The events that open a turn.
    pub fn begin(&mut self) -> Vec<AgentEvent> {
        let id = self.own_id();
        vec![AgentEvent::part(
            json!({ "id": id, "type": "step-start" }),
            None,
        )]
    }

    /// The events of one `session/update`.
    pub fn update(&mut self, mut update: Value) -> Vec<AgentEvent> {
        make_shallow(&mut update);
        let Value::Object(update) = update else {
            return vec![raw(json!({ "update": update }))];
        };
        let kind = update
            .get("sessionUpdate")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "agent_message_chunk" => self.chunk(TextKind::Text, update),
            "agent_thought_chunk" => self.chunk(TextKind::Reasoning, update),
            "tool_call" | "tool_call_update" => {
                let mut events = self.end_runs();
                events.extend(self.tool(update));
                events
            }
            "user_message_chunk" => Vec::new(), // replay of what we sent
            "available_commands_update"
            | "config_option_update"
            | "current_mode_update"
            | "session_info_update" => {
                vec![AgentEvent {
                    kind: "session.updated".to_owned(),
                    data: bounded(update),
                }]
            }
            "plan" => {
                // A to-do list, not a plan for review.
                let mut update = update;
                update.insert("kind".to_owned(), "todo".into());
                vec![raw(Value::Object(update))]
            }
            "usage_update" => {
                self.cost = cost_of(&update).or(self.cost);
                vec![raw(Value::Object(update))]
            }
            _ => vec![raw(Value::Object(update))],
        }
    }

    /// The events that close a turn: each open part whole, then the step with its reason and, when known, its tokens.
    pub fn finish(&mut self, reason: &str, tokens: Option<Value>) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for kind in [TextKind::Reasoning, TextKind::Text] {
            events.extend(self.close(kind));
        }
        events.extend(self.tools.interrupt());
        let mut step = json!({ "id": self.own_id(), "type": "step-finish", "reason": reason });
        if let (Some(step), Some(tokens)) = (step.as_object_mut(), tokens) {
            step.insert("tokens".to_owned(), tokens);
        }
        events.push(AgentEvent::part(step, None));
        events
    }

    /// What the turn amounts to; complete after [`Translator::finish`].
    #[must_use]
    pub fn summary(self) -> Summary {
        Summary {
            final_text: self.final_text,
            tool_invocations: self.tools.invocations(),
            session_cost_usd: self.cost,
        }
    }

    fn chunk(&mut self, kind: TextKind, update: Map<String, Value>) -> Vec<AgentEvent> {
        let content = update.get("content");
        let is_text = content
            .and_then(|content| content.get("type"))
            .and_then(Value::as_str)
            == Some("text");
        let Some(text) = content
            .and_then(|content| content.get("text"))
            .and_then(Value::as_str)
            .filter(|_| is_text)
        else {
            return vec![raw(Value::Object(update))];
        };
        let message = update
            .get("messageId")
            .and_then(Value::as_str)
            .filter(|id| (1..=ID_LIMIT).contains(&id.len()));
        let mut events = self.end_other_run(kind);
        let same = self
            .slot(kind)
            .as_ref()
            .is_some_and(|part| part.message.as_deref() == message);
        if !same {
            events.extend(self.close(kind));
            let id = self.part_id(message, kind.name());
            *self.slot(kind) = Some(TextPart {
                id,
                message: message.map(str::to_owned),
                text: String::new(),
                bytes: 0,
            });
        }
        if let Some(part) = self.slot(kind) {
            part.bytes = part.bytes.saturating_add(escaped_bytes(text));
            if part.is_kept() {
                part.text.push_str(text);
            }
            let identity = json!({ "id": part.id, "type": kind.name() });
            let pieces = pieces(text, DELTA_LIMIT).into_iter();
            events.extend(pieces.map(|piece| AgentEvent::part(identity.clone(), Some(piece))));
        }
        events
    }

    fn slot(&mut self, kind: TextKind) -> &mut Option<TextPart> {
        match kind {
            TextKind::Text => &mut self.text,
            TextKind::Reasoning => &mut self.reasoning,
        }
    }

    /// A run of chunks without an id ends where anything else begins.
    fn end_runs(&mut self) -> Vec<AgentEvent> {
        let mut events = self.end_other_run(TextKind::Text);
        events.extend(self.end_other_run(TextKind::Reasoning));
        events
    }

    fn end_other_run(&mut self, kind: TextKind) -> Vec<AgentEvent> {
        let other = if kind == TextKind::Text {
            TextKind::Reasoning
        } else {
            TextKind::Text
        };
        let is_run = self
            .slot(other)
            .as_ref()
            .is_some_and(|part| part.message.is_none());
        if is_run {
            self.close(other).into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn close(&mut self, kind: TextKind) -> Option<AgentEvent> {
        let part = self.slot(kind).take()?;
        let whole = if part.is_kept() {
            json!({ "id": part.id, "type": kind.name(), "text": part.text })
        } else {
            json!({ "id": part.id, "type": kind.name(), "truncated": true })
        };
        if kind == TextKind::Text {
            self.final_text = part.is_kept().then_some(part.text);
        }
        Some(AgentEvent::part(whole, None))
    }

    fn tool(&mut self, update: Map<String, Value>) -> Vec<AgentEvent> {
        let id = update
            .get("toolCallId")
            .and_then(Value::as_str)
            .filter(|id| (1..=ID_LIMIT).contains(&id.len()));
        let Some(id) = id.map(str::to_owned) else {
            return vec![raw(Value::Object(update))];
        };
        if !self.tools.knows(&id) {
            if self.tools.is_full() {
                return vec![raw(Value::Object(update))];
            }
            let part_id = self.part_id(Some(&id), "tool");
            self.tools.begin(id.clone(), part_id);
        }
        let events = self.tools.merge(&id, &update);
        events.unwrap_or_else(|| vec![raw(Value::Object(update))])
    }

    /// The agent's own id where it is free, else one of ours.
    fn part_id(&mut self, wanted: Option<&str>, kind: &str) -> String {
        let candidates = wanted
            .into_iter()
            .flat_map(|id| [id.to_owned(), format!("{id}-{kind}")]);
        let free = candidates
            .into_iter()
            .find(|id| self.taken.len() < PART_LIMIT && !self.taken.contains(id));
        match free {
            Some(id) => {
                self.taken.insert(id.clone());
                id
            }
            None => self.own_id(),
        }
    }

    fn own_id(&mut self) -> String {
        self.counter += 1;
        format!("prt_{}_{}", self.turn, self.counter)
    }
}

/// The cumulative cost in a `usage_update`, when it is in US dollars.
#[must_use]
pub fn cost_of(update: &Map<String, Value>) -> Option<f64> {
    let cost = update.get("cost")?;
    let amount = cost.get("amount")?.as_f64()?;
    (cost.get("currency")?.as_str()? == "USD" && amount.is_finite() && amount >= 0.0)
        .then_some(amount)
}

/// A native update, passed on as it is when it is small and flat enough.
#[must_use]
pub fn raw(mut update: Value) -> AgentEvent {
    make_shallow(&mut update);
    let data = match update {
        Value::Object(update) => update,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    AgentEvent {
        kind: "raw".to_owned(),
        data: bounded(data),
    }
}

fn bounded(update: Map<String, Value>) -> Map<String, Value> {
    let bytes = text_bytes(&update);
    if bytes <= RAW_LIMIT {
        return update;
    }
    let mut cut = Map::new();
    let kind = update
        .get("sessionUpdate")
        .and_then(Value::as_str)
        .filter(|kind| kind.len() <= ID_LIMIT);
    if let Some(kind) = kind {
        cut.insert("sessionUpdate".to_owned(), kind.into());
    }
    cut.insert("truncated".to_owned(), true.into());
    cut.insert("bytes".to_owned(), bytes.into());
    cut
}
