//! The frames that a hosted service delivered: each becomes an event, and their running totals end at the receipt.

use serde_json::{Value, json};
use tangle_sandbox::contract::event::{EnvironmentEvent, Expected, RawFrame, read_frame};
use tangle_sandbox::contract::strict;
use tangle_sandbox::contract::usage::{TokenUsage, UsageFold, UsageMode};

fn frames(name: &str) -> Vec<Value> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/tests/vectors/fixtures/{name}.json");
    let recording = strict::parse(&std::fs::read(path).unwrap()).unwrap();
    recording["events"].as_array().unwrap().clone()
}

/// Every frame as a stream from the first frame publishes it.
fn events(name: &str) -> Vec<EnvironmentEvent> {
    let mut fold = UsageFold::new();
    let publish = |frame: Value| {
        let frame = RawFrame::from_value(frame).unwrap();
        let mut event = read_frame(frame, &Expected::default()).unwrap();
        fold.publish(&mut event).unwrap();
        event
    };
    frames(name).into_iter().map(publish).collect()
}

/// The running totals, and the usage of the receipt.
fn totals(events: &[EnvironmentEvent]) -> (Vec<&TokenUsage>, &TokenUsage) {
    let measured = |event: &&EnvironmentEvent| {
        assert_eq!(
            event.usage().is_some(),
            event.usage_mode() == Some(UsageMode::Cumulative)
        );
        event.usage().is_some()
    };
    let (receipts, running): (Vec<_>, Vec<_>) = events
        .iter()
        .filter(measured)
        .partition(|event| event.is_terminal());
    let receipts: Vec<_> = receipts.iter().filter_map(|event| event.usage()).collect();
    assert_eq!(receipts.len(), 2, "`result` and `done` tell the receipt");
    assert_eq!(receipts[0], receipts[1]);
    let running = running.iter().filter_map(|event| event.usage());
    (running.collect(), receipts[0])
}

#[test]
fn provider_9_2_the_recorded_steps_add_up_to_their_receipt() {
    let events = events("opencode-step-usage");
    let (running, receipt) = totals(&events);
    assert_eq!(running.len(), 43);
    assert_eq!(running.last(), Some(&receipt));
    assert_eq!(
        serde_json::to_value(receipt).unwrap(),
        json!({
            "inputTokens": 1_871_225, "outputTokens": 46_902, "totalTokens": 1_918_127,
            "reasoningTokens": 22_870, "cacheReadInputTokens": 1_799_040, "cacheCreationInputTokens": 0,
        })
    );
}

#[test]
fn provider_9_3_the_recorded_run_adds_up_step_by_step() {
    let events = events("opencode-execution-events");
    let (running, receipt) = totals(&events);
    let sides = |usage: &&TokenUsage| (usage.input_tokens.get(), usage.output_tokens.get());
    assert_eq!(
        running.iter().map(sides).collect::<Vec<_>>(),
        [(7_302, 85), (18_333, 6_128), (35_510, 11_565)]
    );
    assert_eq!(running.last(), Some(&receipt));
}

#[test]
fn every_recorded_frame_becomes_an_event_with_the_form_of_its_type() {
    for (name, count) in [
        ("opencode-execution-events", 27),
        ("opencode-step-usage", 45),
    ] {
        let (frames, events) = (frames(name), events(name));
        assert_eq!((frames.len(), events.len()), (count, count));
        for (frame, event) in frames.iter().zip(&events) {
            let (kind, word) = (event.kind(), event.data().get("status"));
            // Words of a harness that are no status of a run have no canonical form.
            let is_word =
                word.is_none_or(|word| word != "generating_response" && word != "complete");
            let canonical = match kind {
                "status" => is_word,
                "model-processing" | "session.updated" | "message.part.updated" => true,
                _ => false,
            };
            assert_eq!(event.normalized().is_some(), canonical, "{frame}");
            let provider = (!event.is_terminal()).then(|| frame.clone());
            assert_eq!(event.provider_event(), provider);
            assert!(!event.data().contains_key("toolInvocations"));
        }
    }
}

#[test]
fn the_recorded_run_belongs_to_the_execution_that_it_names() {
    let frames = frames("opencode-execution-events");
    let named = frames
        .iter()
        .find(|frame| frame["type"] == "execution.started");
    let id = |key: &str| named.unwrap()["data"][key].as_str().unwrap().to_owned();
    let own = Expected {
        execution_id: Some(id("executionId").parse().unwrap()),
        session_id: Some(id("sessionId").parse().unwrap()),
        bound: true,
    };
    let other = Expected {
        execution_id: Some("another".parse().unwrap()),
        ..own.clone()
    };
    let codes = |expected: &Expected| -> Vec<&'static str> {
        let read = |frame: &Value| {
            let frame = RawFrame::from_value(frame.clone())?;
            read_frame(frame, expected)
        };
        let refusals = frames.iter().filter_map(|frame| read(frame).err());
        refusals.map(|refusal| refusal.code()).collect()
    };
    assert_eq!(codes(&own), [""; 0]);
    assert_eq!(codes(&other), ["execution-mismatch"; 2]);
}

#[test]
fn a_tool_output_longer_than_a_control_text_passes() {
    let output = "x".repeat(17_511);
    let part = json!({
        "id": "p", "sessionID": "s", "messageID": "m", "type": "tool", "tool": "exec",
        "state": { "status": "completed", "input": {}, "output": output },
    });
    let frame = json!({ "type": "message.part.updated", "data": { "part": part } });
    let event = read_frame(RawFrame::from_value(frame).unwrap(), &Expected::default()).unwrap();
    assert!(event.normalized().is_some());
}
