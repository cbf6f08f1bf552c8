//! What an agent reports, as events of the run stream (wire protocol, 7.4). Pure: no clock, no I/O.
//!
//! The lane carries increments only: a `message.part.updated` has the part's identity and a `delta`, and the whole part
//! comes once, in the part's last frame. ACP has no steps, so a turn is one step.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::tool_part::{Change, ToolPart};
use super::turn::{AgentEvent, ToolInvocation};

/// Bytes of one text part that are kept for its last frame and for the final text.
const TEXT_LIMIT: usize = 2 << 20;
/// Bytes of one native update that is passed on unchanged.
const RAW_LIMIT: usize = 256 << 10;
/// Parts of one kind that a turn keeps apart; later ones are passed on raw or under ids of our own.
const PART_LIMIT: usize = 4096;
/// Tool invocations in the result.
const INVOCATION_LIMIT: usize = 1000;
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
    tools: HashMap<String, Tool>,
    tool_order: Vec<String>,
    final_text: Option<String>,
    cost: Option<f64>,
}

/// What is known of a turn when it has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The text of the last message; `None` when there was none or it is over 2 MiB.
    pub final_text: Option<String>,
    /// Tools in order of first appearance, at most 1 000.
    pub tool_invocations: Vec<ToolInvocation>,
    /// The newest cumulative cost of the session in US dollars.
    pub session_cost_usd: Option<f64>,
}

#[derive(Debug)]
enum Tool {
    Open(Box<ToolPart>),
    Closed(ToolInvocation),
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
    over_limit: bool,
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
            tools: HashMap::new(),
            tool_order: Vec::new(),
            final_text: None,
            cost: None,
        }
    }

    /// The events that open a turn.
    pub fn begin(&mut self) -> Vec<AgentEvent> {
        let id = self.own_id();
        vec![part_event(json!({ "id": id, "type": "step-start" }), None)]
    }

    /// The events of one `session/update`.
    pub fn update(&mut self, update: Value) -> Vec<AgentEvent> {
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
        for id in self.tool_order.clone() {
            let Some(Tool::Open(part)) = self.tools.get_mut(&id) else {
                continue;
            };
            part.interrupt();
            events.push(part_event(part.whole(), None));
            let closed = Tool::Closed(part.invocation());
            self.tools.insert(id, closed);
        }
        let mut step = json!({ "id": self.own_id(), "type": "step-finish", "reason": reason });
        if let (Some(step), Some(tokens)) = (step.as_object_mut(), tokens) {
            step.insert("tokens".to_owned(), tokens);
        }
        events.push(part_event(step, None));
        events
    }

    /// What the turn amounts to; complete after [`Translator::finish`].
    #[must_use]
    pub fn summary(mut self) -> Summary {
        let tools = self
            .tool_order
            .iter()
            .take(INVOCATION_LIMIT)
            .filter_map(|id| self.tools.remove(id));
        let tool_invocations = tools
            .map(|tool| match tool {
                Tool::Open(part) => part.invocation(),
                Tool::Closed(invocation) => invocation,
            })
            .collect();
        Summary {
            final_text: self.final_text,
            tool_invocations,
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
                over_limit: false,
            });
        }
        if let Some(part) = self.slot(kind) {
            part.over_limit |= part.text.len() + text.len() > TEXT_LIMIT;
            if !part.over_limit {
                part.text.push_str(text);
            }
            events.push(part_event(
                json!({ "id": part.id, "type": kind.name() }),
                Some(text),
            ));
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
        let whole = if part.over_limit {
            json!({ "id": part.id, "type": kind.name(), "truncated": true })
        } else {
            json!({ "id": part.id, "type": kind.name(), "text": part.text })
        };
        if kind == TextKind::Text {
            self.final_text = (!part.over_limit).then_some(part.text);
        }
        Some(part_event(whole, None))
    }

    fn tool(&mut self, update: Map<String, Value>) -> Vec<AgentEvent> {
        let id = update
            .get("toolCallId")
            .and_then(Value::as_str)
            .filter(|id| (1..=ID_LIMIT).contains(&id.len()));
        let Some(id) = id.map(str::to_owned) else {
            return vec![raw(Value::Object(update))];
        };
        if !self.tools.contains_key(&id) {
            if self.tool_order.len() >= PART_LIMIT {
                return vec![raw(Value::Object(update))];
            }
            let part_id = self.part_id(Some(&id), "tool");
            self.tools.insert(
                id.clone(),
                Tool::Open(Box::new(ToolPart::new(part_id, id.clone()))),
            );
            self.tool_order.push(id.clone());
        }
        let Some(Tool::Open(part)) = self.tools.get_mut(&id) else {
            // The part has had its last frame; a repeated end says nothing new.
            let ended = matches!(
                update.get("status").and_then(Value::as_str),
                Some("completed" | "failed")
            );
            return if ended {
                Vec::new()
            } else {
                vec![raw(Value::Object(update))]
            };
        };
        match part.merge(&update) {
            Change::None => Vec::new(),
            Change::Some { part, delta } => vec![part_event(part, delta.as_deref())],
            Change::Last { delta } => {
                let event = part_event(part.whole(), delta.as_deref());
                let closed = Tool::Closed(part.invocation());
                self.tools.insert(id, closed);
                vec![event]
            }
        }
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

fn part_event(part: Value, delta: Option<&str>) -> AgentEvent {
    let mut data = Map::new();
    data.insert("part".to_owned(), part);
    if let Some(delta) = delta {
        data.insert("delta".to_owned(), delta.into());
    }
    AgentEvent {
        kind: "message.part.updated".to_owned(),
        data,
    }
}

/// A native update, passed on as it is when it is small enough.
#[must_use]
pub fn raw(update: Value) -> AgentEvent {
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
    let bytes = serde_json::to_string(&update).map_or(usize::MAX, |text| text.len());
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
