use serde_json::{Map, Value, json};

use super::{Refusal, TokenUsage, UsageFold, from_data};
use crate::contract::event::{EnvironmentEvent, Expected, RawFrame, read_frame};
use crate::contract::limits::MAX_STRING;

fn read(data: Value) -> Result<Option<TokenUsage>, Refusal> {
    from_data(data.as_object().unwrap())
}

fn refused(data: Value) -> (&'static str, String) {
    let refusal = read(data).unwrap_err();
    (refusal.code(), refusal.path().into_owned())
}

fn event(id: Option<&str>, data: Value) -> EnvironmentEvent {
    let mut frame = Map::from_iter([("type".into(), "raw".into()), ("data".into(), data)]);
    frame.extend(id.map(|id| ("id".into(), id.into())));
    let frame = RawFrame::from_value(frame.into()).unwrap();
    read_frame(frame, &Expected::default()).unwrap()
}

fn step(id: &str, tokens: Value) -> EnvironmentEvent {
    let part = json!({ "id": id, "type": "step-finish", "tokens": tokens });
    event(None, json!({ "type": "step_finish", "part": part }))
}

/// The sides of the total that the event publishes.
fn total(fold: &mut UsageFold, mut event: EnvironmentEvent) -> Result<Option<(u64, u64)>, Refusal> {
    fold.publish(&mut event)?;
    let sides = |usage: &TokenUsage| (usage.input_tokens.get(), usage.output_tokens.get());
    Ok(event.usage().map(sides))
}

#[test]
fn core_10_6_usage_with_one_side_is_none_and_a_lone_cost_is_dropped() {
    for data in [
        json!({ "usage": { "inputTokens": 1, "cost": 0.2 } }),
        json!({ "usage": { "completion_tokens": 1 } }),
        json!({ "usage": {} }),
        json!({ "costUsd": 0.25 }),
        json!({ "inputTokens": 1, "outputTokens": 1 }),
    ] {
        assert_eq!(read(data.clone()), Ok(None), "{data}");
    }
}

#[test]
fn core_10_6_every_spelling_that_is_there_is_checked() {
    let count = |data| refused(data).0 == "usage-count";
    assert!(count(
        json!({ "usage": { "inputTokens": 1, "tokensIn": -5, "outputTokens": 2 } })
    ));
    assert!(count(json!({ "usage": { "reasoning_tokens": "1" } })));
    assert!(count(
        json!({ "usage": { "inputTokens": 9_007_199_254_740_992_u64 } })
    ));
    for beside in ["costUsd", "totalCostUsd"] {
        let mut data = json!({ "usage": { "inputTokens": 1, "outputTokens": 2, "cost": 1 } });
        data[beside] = json!(-1);
        assert_eq!(refused(data), ("cost", format!("/{beside}")));
    }
    assert_eq!(
        refused(json!({ "tokenUsage": { "total_tokens": null } })),
        ("usage-count", "/tokenUsage/total_tokens".to_owned())
    );
}

#[test]
fn core_10_6_a_whole_number_is_one_however_it_is_spelled() {
    let usage = json!({ "usage": { "inputTokens": 3.0, "outputTokens": -0.0, "cost": 1e305 } });
    let usage = read(usage).unwrap().unwrap();
    let read = (
        usage.input_tokens.get(),
        usage.output_tokens.get(),
        usage.cost,
    );
    assert_eq!(read, (3, 0, Some(1e305.try_into().unwrap())));
}

#[test]
fn provider_9_3_usage_is_control_plane_json() {
    let note = "x".repeat(MAX_STRING + 1);
    let usage = json!({ "usage": { "inputTokens": 2, "outputTokens": 3, "note": note } });
    let place = "/usage/note".to_owned();
    assert_eq!(refused(usage), ("metadata-bound", place));
}

#[test]
fn core_10_7_a_repeated_step_adds_nothing() {
    let mut fold = UsageFold::new();
    let tokens = json!({ "input": 10, "output": 5 });
    assert_eq!(
        total(&mut fold, step("a", tokens.clone())),
        Ok(Some((10, 5)))
    );
    assert_eq!(total(&mut fold, step("a", tokens.clone())), Ok(None));
    assert_eq!(total(&mut fold, step("b", tokens)), Ok(Some((20, 10))));
}

#[test]
fn provider_9_5_a_step_without_a_part_id_is_known_by_its_frame() {
    let unnamed = |frame| {
        let part =
            json!({ "id": "", "type": "step-finish", "tokens": { "input": 1, "output": 1 } });
        event(frame, json!({ "type": "step_finish", "part": part }))
    };
    let mut fold = UsageFold::new();
    assert_eq!(total(&mut fold, unnamed(Some("1"))), Ok(Some((1, 1))));
    assert_eq!(total(&mut fold, unnamed(Some("1"))), Ok(None));
    assert_eq!(total(&mut fold, unnamed(None)), Ok(Some((2, 2))));
    assert_eq!(total(&mut fold, unnamed(None)), Ok(Some((3, 3))));
}

#[test]
fn provider_9_5_a_step_that_overflows_leaves_the_total_as_it_was() {
    let largest = 9_007_199_254_740_991_u64;
    let mut fold = UsageFold::new();
    total(&mut fold, step("a", json!({ "input": 1, "output": 1 }))).unwrap();
    for tokens in [
        json!({ "input": largest, "output": 1 }),
        json!({ "input": 1, "output": 1, "reasoning": largest }),
    ] {
        let refusal = total(&mut fold, step("b", tokens)).unwrap_err();
        assert_eq!(refusal.code(), "overflow");
    }
    let next = step("b", json!({ "input": 1, "output": 1 }));
    assert_eq!(total(&mut fold, next), Ok(Some((2, 2))));
}

#[test]
fn provider_9_5_an_event_with_a_mode_of_its_own_is_not_touched() {
    let part = json!({ "type": "step-finish", "tokens": { "input": "no number" } });
    let data = json!({ "type": "step_finish", "part": part, "usageMode": "delta" });
    assert_eq!(total(&mut UsageFold::new(), event(None, data)), Ok(None));
}

#[test]
fn a_refusal_names_a_place_and_never_a_value() {
    let mut fold = UsageFold::new();
    let tokens = json!({ "input": 1, "output": 1, "cache": { "read": "hunter2" } });
    let refusal = total(&mut fold, step("a", tokens)).unwrap_err();
    assert_eq!(refusal.path(), "/part/tokens/cache/read");
    let usage = read(json!({ "usage": { "inputTokens": "hunter2" } })).unwrap_err();
    let shown = format!("{refusal} {refusal:?} {usage} {usage:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
