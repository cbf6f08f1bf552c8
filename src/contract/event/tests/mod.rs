//! Events by rule: documents, and frames that become events.

mod documents;
mod frames;

use serde_json::{Value, json};

use super::{EnvironmentEvent, Expected, RawFrame, Refusal, read_frame};

fn frame(kind: &str, data: Value) -> RawFrame {
    RawFrame::from_value(json!({ "type": kind, "data": data, "id": "7" })).unwrap()
}

fn read(kind: &str, data: Value) -> Result<EnvironmentEvent, Refusal> {
    read_frame(frame(kind, data), &Expected::default())
}

fn canonical(kind: &str, data: Value) -> Option<Value> {
    let event = read(kind, data).unwrap();
    event
        .normalized()
        .map(|event| serde_json::to_value(event).unwrap())
}
