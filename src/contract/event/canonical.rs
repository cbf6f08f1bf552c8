//! The canonical form of a frame (provider runtime, 9.2).
//!
//! A form that the frame supplies has to be right. One that is made here is left out where it does not become one: the
//! event is delivered all the same.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contract::check::Refused;
use crate::contract::checker::Checked;
use crate::contract::text;
use crate::contract::types::{
    Ask, BoundedText, DurablePlan, ElapsedMs, Identifier, ModelPhase, Part, PlanText, RunPhase,
    StreamEvent,
};

use super::expected::Carried;
use super::{RawFrame, Refusal};

/// The canonical form of `frame`, if it has one.
///
/// # Errors
///
/// `normalized-invalid`, `normalized-type` or `normalized-session` for a form that the frame supplies.
pub(super) fn of(frame: &RawFrame, carried: &Carried<'_>) -> Result<Option<StreamEvent>, Refusal> {
    match frame.data().get("normalized") {
        Some(supplied) => supplied_form(supplied, frame, carried).map(Some),
        None => Ok(made_form(frame.kind(), frame.data(), carried)),
    }
}

fn supplied_form(
    supplied: &Value,
    frame: &RawFrame,
    carried: &Carried<'_>,
) -> Result<StreamEvent, Refusal> {
    let invalid = |refused: Refused| Refusal::NormalizedInvalid(refused.under("/data/normalized"));
    let event = checked::<StreamEvent>(supplied).map_err(invalid)?;
    if supplied.get("type").and_then(Value::as_str) != Some(frame.kind()) {
        return Err(Refusal::NormalizedType);
    }
    match event {
        StreamEvent::SessionUpdated { ref session_id, .. } if !carried.carries(session_id) => {
            Err(Refusal::NormalizedSession)
        }
        event => Ok(event.trimmed()),
    }
}

/// Makes the canonical form out of the data; nothing where the data does not give one.
fn made_form(kind: &str, data: &Map<String, Value>, carried: &Carried<'_>) -> Option<StreamEvent> {
    match kind {
        "message.part.updated" => Some(StreamEvent::MessagePartUpdated {
            part: checked::<Part>(data.get("part")?).ok()?,
            delta: text_of(data, "delta").map(str::to_owned),
        }),
        "status" => status(data),
        "tool-heartbeat" => Some(StreamEvent::ToolHeartbeat {
            tool_name: identifier(data, "toolName")?,
            part_id: identifier(data, "partId")?,
            elapsed_ms: milliseconds(data.get("elapsedMs")?)?,
        }),
        "tool-slow" => Some(StreamEvent::ToolSlow {
            tool_name: identifier(data, "toolName")?,
            part_id: identifier(data, "partId")?,
            elapsed_ms: milliseconds(data.get("elapsedMs")?)?,
            threshold_ms: milliseconds(data.get("thresholdMs")?)?,
        }),
        "model-processing" => Some(StreamEvent::ModelProcessing {
            phase: text_of(data, "phase")?.parse::<ModelPhase>().ok()?,
            tool_name: optional(data.get("toolName"), |name| {
                Identifier::new(name.as_str()?).ok()
            })?,
            elapsed_ms: optional(data.get("elapsedMs"), milliseconds)?,
        }),
        "warning" => Some(StreamEvent::Warning {
            code: identifier(data, "code")?,
            message: BoundedText::new(text_of(data, "message")?).ok()?,
        }),
        "session.updated" => session(data, carried),
        "interaction" => Some(StreamEvent::Interaction {
            request: bounded_ask(data.get("request")?)?,
        }),
        "interaction.cancel" => Some(StreamEvent::InteractionCancel {
            id: identifier(data, "id")?,
            reason: optional(data.get("reason"), |reason| {
                BoundedText::new(reason.as_str()?).ok()
            })?,
        }),
        "plan.submitted" => Some(StreamEvent::PlanSubmitted {
            plan: checked::<DurablePlan>(data.get("plan")?).ok()?.trimmed(),
        }),
        _ => None,
    }
}

fn status(data: &Map<String, Value>) -> Option<StreamEvent> {
    let status = match text_of(data, "status")? {
        "started" | "queued" => RunPhase::Started,
        "processing" | "running" => RunPhase::Processing,
        "completed" | "success" => RunPhase::Completed,
        "failed" | "error" => RunPhase::Failed,
        "cancelled" => RunPhase::Cancelled,
        _ => return None,
    };
    let mut details = ["detail", "error", "message"]
        .into_iter()
        .filter_map(|key| text_of(data, key));
    let detail = match details.find(|detail| !detail.is_empty()) {
        None => None,
        Some(detail) => Some(BoundedText::new(detail).ok()?),
    };
    Some(StreamEvent::Status { status, detail })
}

/// The harness nests what it says of a session in `properties.info`; what stands in the data itself is taken first.
fn session(data: &Map<String, Value>, carried: &Carried<'_>) -> Option<StreamEvent> {
    let info = data
        .get("properties")
        .and_then(|properties| properties.get("info")?.as_object());
    let title = text_of(data, "title").or_else(|| text_of(info?, "title"));
    let given = |members: &Map<String, Value>| {
        let time = members.get("time");
        time.filter(|time| !time.is_null()).cloned()
    };
    let time = given(data).or_else(|| given(info?));
    Some(StreamEvent::SessionUpdated {
        session_id: Identifier::new(carried.session()?).ok()?,
        title: match title {
            None => None,
            Some(title) => Some(BoundedText::new(title).ok()?),
        },
        time: optional(time.as_ref(), |time| checked(time).ok())?,
    })
}

impl StreamEvent {
    /// The event as it is kept: the texts of a plan without their outer white space.
    pub fn trimmed(self) -> Self {
        match self {
            Self::PlanSubmitted { plan } => Self::PlanSubmitted {
                plan: plan.trimmed(),
            },
            event => event,
        }
    }
}

impl DurablePlan {
    /// The plan as it is kept: its texts without their outer white space.
    pub fn trimmed(self) -> Self {
        // A text of a plan is not blank, so that something is left of it.
        let trim = |text: PlanText| PlanText::new(text::trim(&text)).unwrap_or(text);
        Self {
            body: trim(self.body),
            title: self.title.map(trim),
            ..self
        }
    }
}

/// Checks `value` and reads it without taking it.
fn checked<T: Checked + DeserializeOwned>(value: &Value) -> Result<T, Refused> {
    T::node().check(value)?;
    // The check has passed, so that what fails here is a shape that only the type knows.
    T::deserialize(value).map_err(|_| Refused::new("", format!("is no {}", T::NAME)))
}

/// A member that may be absent but must be right where it is there: `None` where it is wrong.
fn optional<T>(value: Option<&Value>, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(value) => read(value).map(Some),
    }
}

fn text_of<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    members.get(key)?.as_str()
}

fn identifier(members: &Map<String, Value>, key: &str) -> Option<Identifier> {
    Identifier::new(text_of(members, key)?).ok()
}

fn milliseconds(value: &Value) -> Option<ElapsedMs> {
    ElapsedMs::try_from(value.as_f64()?).ok()
}

/// The check of an ask does not see what stands around it: that the ask is bounded JSON is said by the event.
fn bounded_ask(request: &Value) -> Option<Ask> {
    crate::contract::bounds::json("request", request).ok()?;
    checked(request).ok()
}
