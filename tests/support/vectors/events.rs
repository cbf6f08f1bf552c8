//! The topics of events and usage: documents, frames, running totals.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tangle_sandbox::contract::checker::Checked;
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::event::{
    EnvironmentEvent, EventDocument, Expected, RawFrame, Refusal, StreamEvent, read_frame,
};
use tangle_sandbox::contract::result::TurnResult;
use tangle_sandbox::contract::usage::{self, TokenUsage, UsageFold};
use tangle_sandbox::contract::{canonical, from_value};

use super::{Case, Wrong, same, same_place};

/// `core-usage-and-events`: by the rule that `check` names. `refusal` is a text of another implementation.
pub fn documents(case: &Case) -> Result<(), Wrong> {
    let known = |own: &[&str]| {
        let common = ["name", "check", "input", "accept", "refusal"];
        case.only(&[&common, own].concat())
    };
    match case.text("check")?.unwrap_or_default() {
        "usage-from-data" => {
            known(&["usage"])?;
            let found = usage::from_data(object(&member(case, "input")?)?);
            same("accept", case.accept()?, found.is_ok())?;
            match found {
                Ok(found) => same_usage(case.get("usage"), found.as_ref()),
                Err(_) => must_not_say(case, "usage"),
            }
        }
        "environment-event" => {
            known(&["path"])?;
            let document = read::<EventDocument>(case)?;
            document.map_or(Ok(()), comes_back)
        }
        "stream-event" => {
            known(&["path"])?;
            read::<StreamEvent>(case).map(drop)
        }
        "turn-result" => {
            known(&["path"])?;
            read::<TurnResult>(case).map(drop)
        }
        "step-usage" => {
            known(&["usages"])?;
            steps_of_events(case)
        }
        check => Err(Wrong(format!("unknown check `{check}`"))),
    }
}

/// `provider-runtime-events`: by `group`.
pub fn frames(case: &Case) -> Result<(), Wrong> {
    match case.text("group")?.unwrap_or_default() {
        "shape" | "identity" | "normalized" | "terminal" => frame(case),
        "usage" => {
            case.only(&["name", "group", "data", "accept", "usage", "reason"])?;
            let found = usage::from_data(object(&member(case, "data")?)?);
            same("accept", case.accept()?, found.is_ok())?;
            match found {
                Ok(found) => same_usage(case.get("usage"), found.as_ref()),
                Err(refusal) => same_reason(case, refusal.code()),
            }
        }
        group => Err(Wrong(format!("unknown group `{group}`"))),
    }
}

/// `provider-runtime-step-usage`: frames to what each of them publishes.
pub fn steps(case: &Case) -> Result<(), Wrong> {
    case.only(&[
        "name",
        "group",
        "stream",
        "frames",
        "accept",
        "published",
        "failsAtIndex",
        "reason",
    ])?;
    match case.text("group")?.unwrap_or_default() {
        "steps" => {}
        group => return Err(Wrong(format!("unknown group `{group}`"))),
    }
    let mut fold = match case.text("stream")?.unwrap_or_default() {
        "first-frame" => Some(UsageFold::new()),
        "after-cursor" | "live-tail" => None,
        stream => return Err(Wrong(format!("unknown stream `{stream}`"))),
    };
    let expected = list(case.get("published"), "published")?;
    let frames = list(case.get("frames"), "frames")?;
    let mut failed = None;
    let mut published = Vec::new();
    for frame in frames {
        match publish(frame.clone().into_value(), fold.as_mut()) {
            Ok(event) => published.push(event),
            Err(refusal) => {
                failed = Some((published.len(), refusal));
                break;
            }
        }
    }
    same("accept", case.accept()?, failed.is_none())?;
    same("events delivered", expected.len(), published.len())?;
    for (expected, event) in expected.iter().zip(&published) {
        same_publication(expected, event)?;
    }
    let Some((index, refusal)) = failed else {
        must_not_say(case, "failsAtIndex")?;
        return must_not_say(case, "reason");
    };
    let at = case.get("failsAtIndex").map(|at| at.clone().into_value());
    same("failsAtIndex", at, Some(Value::from(index)))?;
    same_reason(case, refusal.code())
}

/// One frame, read and measured as a stream does it.
pub fn publish(frame: Value, fold: Option<&mut UsageFold>) -> Result<EnvironmentEvent, Refusal> {
    let frame = RawFrame::from_value(frame)?;
    let mut event = read_frame(frame, &Expected::default())?;
    if let Some(fold) = fold {
        fold.publish(&mut event)?;
    }
    Ok(event)
}

/// What a case says of the event that comes out of its frame.
const TOLD: [&str; 5] = [
    "normalized",
    "usage",
    "usageMode",
    "hasProviderEvent",
    "data",
];

fn frame(case: &Case) -> Result<(), Wrong> {
    let common = ["name", "group", "frame", "expected", "accept", "reason"];
    case.only(&[common.as_slice(), &TOLD].concat())?;
    let given = member(case, "frame")?;
    let expected = expected(case)?;
    let read = RawFrame::from_value(given.clone()).and_then(|frame| {
        let text = Value::Object(frame.data().clone()).to_string();
        let of_text = RawFrame::parse(frame.kind(), frame.id(), &text)?;
        Ok((
            read_frame(of_text, &expected)?,
            read_frame(frame, &expected)?,
        ))
    });
    same("accept", case.accept()?, read.is_ok())?;
    let event = match read {
        Ok((of_text, event)) => {
            same("frame read from text", &event, &of_text)?;
            event
        }
        Err(refusal) => {
            TOLD.iter().try_for_each(|told| must_not_say(case, told))?;
            return same_reason(case, refusal.code());
        }
    };
    must_not_say(case, "reason")?;
    same_json("normalized", case.get("normalized"), event.normalized())?;
    same_usage(case.get("usage"), event.usage())?;
    same_json(
        "usageMode",
        case.get("usageMode"),
        event.usage_mode().as_ref(),
    )?;
    if let Some(data) = case.get("data") {
        same_json("data", Some(data), Some(event.data()))?;
    }
    let has = event.has_provider_event();
    if let Some(expected) = case.get("hasProviderEvent") {
        same("hasProviderEvent", expected, &Document::Bool(has))?;
    }
    if let Some(provider) = event.provider_event() {
        same("data of providerEvent", &given["data"], &provider["data"])?;
    }
    comes_back(event.into())
}

/// The event and its document say the same.
fn comes_back(document: EventDocument) -> Result<(), Wrong> {
    let event = EnvironmentEvent::from(document.clone());
    same("the event as a document", document, event.into())
}

fn expected(case: &Case) -> Result<Expected, Wrong> {
    let mut expected = Expected::default();
    let Some(given) = case.get("expected") else {
        return Ok(expected);
    };
    let Document::Object(members) = given else {
        return Err(Wrong("`expected` must be an object".to_owned()));
    };
    for (key, value) in members {
        let value = value.clone().into_value();
        let read = match key.as_str() {
            "executionId" => from_json(value).map(|id| expected.execution_id = Some(id)),
            "sessionId" => from_json(value).map(|id| expected.session_id = Some(id)),
            "streamBound" => from_json(value).map(|bound| expected.bound = bound),
            _ => None,
        };
        read.ok_or_else(|| Wrong(format!("`expected` holds a strange `{key}`")))?;
    }
    Ok(expected)
}

fn steps_of_events(case: &Case) -> Result<(), Wrong> {
    let mut fold = UsageFold::new();
    let mut found = Ok(Vec::new());
    for event in list(case.get("input"), "input")? {
        let document: EventDocument = from_value(event.clone().into_value())
            .map_err(|refused| Wrong(format!("an event of `input`: {refused}")))?;
        let mut event = EnvironmentEvent::from(document);
        match (fold.publish(&mut event), &mut found) {
            (Ok(()), Ok(events)) => events.push(event),
            (Err(refusal), _) => found = Err(refusal),
            (Ok(()), Err(_)) => {}
        }
    }
    same("accept", case.accept()?, found.is_ok())?;
    let Ok(events) = found else {
        return must_not_say(case, "usages");
    };
    let usages = list(case.get("usages"), "usages")?;
    same("events", usages.len(), events.len())?;
    for (expected, event) in usages.iter().zip(&events) {
        let (usage, mode) = match expected {
            Document::Null => (None, None),
            Document::Array(pair) if pair.len() == 2 => (Some(&pair[0]), Some(&pair[1])),
            _ => return Err(Wrong("`usages` holds pairs and null".to_owned())),
        };
        same_usage(usage, event.usage())?;
        // An event without usage is `null`, whether or not it came with a mode.
        if usage.is_some() {
            same_json("usageMode", mode, event.usage_mode().as_ref())?;
        }
    }
    Ok(())
}

fn same_publication(expected: &Document, event: &EnvironmentEvent) -> Result<(), Wrong> {
    let (mut usage, mut mode) = (None, None);
    match expected {
        Document::Null => {}
        Document::Object(members) => {
            for (key, value) in members {
                match key.as_str() {
                    "usage" => usage = Some(value),
                    "usageMode" => mode = Some(value),
                    key => return Err(Wrong(format!("`published` holds a strange `{key}`"))),
                }
            }
        }
        _ => return Err(Wrong("`published` holds objects and null".to_owned())),
    }
    same_usage(usage, event.usage())?;
    match usage {
        Some(_) => same_json("usageMode", mode, event.usage_mode().as_ref()),
        None => Ok(()),
    }
}

/// Reads `input` as a document of the contract, which survives the way into its type and back.
fn read<T: Checked + Serialize + DeserializeOwned>(case: &Case) -> Result<Option<T>, Wrong> {
    let input = member(case, "input")?;
    let text = canonical::to_text(&input);
    let found = from_value::<T>(input);
    same("accept", case.accept()?, found.is_ok())?;
    let path = case.text("path")?;
    match (found, path) {
        (Ok(_), Some(_)) => Err(Wrong("a path of what is taken".to_owned())),
        (Ok(document), None) => {
            same("the document read back", text, canonical_text(&document)?)?;
            Ok(Some(document))
        }
        (Err(refused), path) => same_place(path.unwrap_or_default(), &refused).map(|()| None::<T>),
    }
}

fn same_usage(expected: Option<&Document>, found: Option<&TokenUsage>) -> Result<(), Wrong> {
    same_json("usage", expected, found)
}

/// Compares by canonical text, so that numbers compare as doubles; `null` says that there is nothing.
fn same_json<T: Serialize>(
    what: &str,
    expected: Option<&Document>,
    found: Option<&T>,
) -> Result<(), Wrong> {
    let expected = expected.filter(|value| **value != Document::Null);
    let expected = expected.map(|value| canonical::to_text(&value.clone().into_value()));
    let found = found.map(canonical_text).transpose()?;
    same(what, expected, found)
}

fn canonical_text<T: Serialize>(value: &T) -> Result<String, Wrong> {
    let value = serde_json::to_value(value).map_err(|error| Wrong(error.to_string()))?;
    Ok(canonical::to_text(&value))
}

fn same_reason(case: &Case, code: &str) -> Result<(), Wrong> {
    match case.text("reason")? {
        Some(reason) => same("reason", reason, code),
        None => Ok(()),
    }
}

fn must_not_say(case: &Case, key: &str) -> Result<(), Wrong> {
    match case.get(key) {
        None | Some(Document::Null) => Ok(()),
        Some(_) => Err(Wrong(format!("`{key}` does not fit the verdict"))),
    }
}

fn member(case: &Case, key: &str) -> Result<Value, Wrong> {
    let document = case.get(key);
    document
        .map(|document| document.clone().into_value())
        .ok_or_else(|| Wrong(format!("`{key}` is missing")))
}

fn list<'a>(value: Option<&'a Document>, key: &str) -> Result<&'a [Document], Wrong> {
    match value {
        Some(Document::Array(items)) => Ok(items),
        _ => Err(Wrong(format!("`{key}` must be an array"))),
    }
}

fn object(value: &Value) -> Result<&serde_json::Map<String, Value>, Wrong> {
    value
        .as_object()
        .ok_or_else(|| Wrong("the input must be an object".to_owned()))
}

fn from_json<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}
