//! The rules inside an event that no keyword says (core contracts, 10.2 and 10.4; interactions, 5). Called by the
//! generated check.

use serde_json::Value;

use crate::contract::check::Refused;
use crate::contract::{rules, text};

/// A text of a plan.
pub fn not_blank(text: &str) -> Result<(), &'static str> {
    match text::trim(text).is_empty() {
        true => Err("must not be blank"),
        false => Ok(()),
    }
}

/// What the members of an ask have to do with each other: it names itself, has the default that it falls back on, and holds
/// its own digest.
pub fn ask(ask: &Value) -> Result<(), Refused> {
    let named = |pointer: &str| ask.pointer(pointer).and_then(Value::as_str);
    if named("/binding/interactionId") != named("/id") {
        return Err(Refused::new(
            "/binding/interactionId",
            "must be the `id` of the ask",
        ));
    }
    if named("/onTimeout") == Some("default") && ask.get("default").is_none() {
        return Err(Refused::new("/default", "must be there for `onTimeout`"));
    }
    rules::own_request_digest(ask)
}

/// What the members of one canonical event have to do with each other: those of a child task.
pub fn stream_event(event: &Value) -> Result<(), Refused> {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    if text("type") != Some("child-task") {
        return Ok(());
    }
    let time = |key: &str| {
        event
            .pointer(&format!("/time/{key}"))
            .and_then(Value::as_f64)
    };
    let (started, updated, ended) = (time("started"), time("updated"), time("ended"));
    let over = matches!(text("status"), Some("completed" | "failed" | "cancelled"));
    let rules = [
        (
            ended.is_some() && !over,
            "/time/ended",
            "must not be there before a terminal status",
        ),
        (
            text("terminalReason").is_some() && !over,
            "/terminalReason",
            "must not be there before a terminal status",
        ),
        (
            updated < started,
            "/time/updated",
            "must not be before `started`",
        ),
        (
            ended.is_some() && ended < started,
            "/time/ended",
            "must not be before `started`",
        ),
        (
            text("parentChildId").is_some() && text("parentChildId") == text("childId"),
            "/parentChildId",
            "must not be the task itself",
        ),
    ];
    match rules.into_iter().find(|(broken, ..)| *broken) {
        Some((_, path, rule)) => Err(Refused::new(path, rule)),
        None => Ok(()),
    }
}
