//! The events of a run, as they come from the stream.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contract::types::{
    Done, ExecutionStarted, PartUpdated, RunOutcome, Status, StreamError, Warning,
};

/// One event of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Identity of the frame inside its execution; also the cursor to come back with. Absent on events that the client
    /// made itself.
    pub id: Option<String>,
    /// Event type as it stood on the wire.
    pub name: String,
    /// What happened.
    pub kind: EventKind,
}

/// What an event tells (wire protocol, 7.4). Types that this version does not know stay as they came.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The run was admitted; sent before the first model call.
    ExecutionStarted(Box<ExecutionStarted>),
    /// The run's status changed.
    Status(Status),
    /// A part of the agent's message grew or changed.
    PartUpdated(Box<PartUpdated>),
    /// Something to know.
    Warning(Warning),
    /// Summary at the end.
    Result(Box<RunOutcome>),
    /// The run failed, or its stream was lost (`STREAM_INTERRUPTED`).
    Error(StreamError),
    /// The last event.
    Done(Done),
    /// Any other event, unknown ones included, with its data as it came.
    Raw(Map<String, Value>),
}

impl Event {
    /// Reads the data of a frame by its type; data that does not fit its type stays raw, so that nothing is lost.
    pub(crate) fn read(id: Option<String>, name: String, data: Map<String, Value>) -> Self {
        let kind = match name.as_str() {
            "execution.started" => typed(data, |data| EventKind::ExecutionStarted(Box::new(data))),
            "status" => typed(data, EventKind::Status),
            "message.part.updated" => typed(data, |data| EventKind::PartUpdated(Box::new(data))),
            "warning" => typed(data, EventKind::Warning),
            "result" => typed(data, |data| EventKind::Result(Box::new(data))),
            "error" => typed(data, EventKind::Error),
            "done" => typed(data, EventKind::Done),
            _ => EventKind::Raw(data),
        };
        Event { id, name, kind }
    }

    /// The text that this event adds to the agent's answer, if any.
    pub fn text_delta(&self) -> Option<&str> {
        match &self.kind {
            EventKind::PartUpdated(update) if update.part.type_ == "text" => {
                update.delta.as_deref()
            }
            _ => None,
        }
    }

    /// Whether this is an event that ends a run: `result`, `error` or `done`.
    pub fn is_terminal(&self) -> bool {
        matches!(self.name.as_str(), "result" | "error" | "done")
    }
}

/// One line for people: id, name and what matters most. The whole event is in its fields.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_deref().unwrap_or("-");
        write!(f, "[{id}] {}", self.name)?;
        match &self.kind {
            EventKind::ExecutionStarted(started) => {
                write!(f, " {} in {}", started.execution_id, started.session_id)
            }
            EventKind::Status(status) => write!(f, " {}", status.status),
            EventKind::PartUpdated(update) => {
                let part = &update.part;
                write!(f, " {}", part.type_)?;
                if let Some(tool) = &part.tool {
                    write!(f, " {tool}")?;
                }
                if let Some(state) = &part.state {
                    write!(f, " {}", state.status)?;
                }
                match &update.delta {
                    Some(delta) => write!(f, " {delta:?}"),
                    None => Ok(()),
                }
            }
            EventKind::Warning(warning) => write!(f, " {}", warning.message),
            EventKind::Result(result) => {
                write!(f, " {:?}", result.final_text.as_deref().unwrap_or_default())
            }
            EventKind::Error(error) => {
                write!(
                    f,
                    " {}: {}",
                    error.code.as_deref().unwrap_or("-"),
                    error.message
                )
            }
            EventKind::Done(done) => write!(f, " {}", done.status.as_deref().unwrap_or("-")),
            EventKind::Raw(_) => Ok(()),
        }
    }
}

fn typed<T: DeserializeOwned>(
    data: Map<String, Value>,
    kind: impl FnOnce(T) -> EventKind,
) -> EventKind {
    let value = Value::Object(data);
    match T::deserialize(&value) {
        Ok(data) => kind(data),
        Err(_) => match value {
            Value::Object(data) => EventKind::Raw(data),
            _ => EventKind::Raw(Map::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(name: &str, data: Value) -> Event {
        let Value::Object(data) = data else { panic!() };
        Event::read(Some("1".into()), name.into(), data)
    }

    #[test]
    fn an_unknown_type_and_unfitting_data_stay_raw() {
        let data = json!({ "a": [1, { "b": null }] });
        let Value::Object(raw) = data.clone() else {
            panic!()
        };
        assert_eq!(read("novelty", data).kind, EventKind::Raw(raw));
        let odd = json!({ "status": 7 });
        let Value::Object(raw) = odd.clone() else {
            panic!()
        };
        assert_eq!(read("status", odd).kind, EventKind::Raw(raw));
    }

    #[test]
    fn fields_that_are_not_known_survive() {
        let event = read("result", json!({ "finalText": "x", "novelty": 1 }));
        let EventKind::Result(result) = event.kind else {
            panic!()
        };
        assert_eq!(result.extra["novelty"], 1);
    }
}
