use serde_json::{Value, json};

use super::canonical;
use crate::contract::canonical::digest as digest_of;
use crate::contract::event::{Ask, ChildUpdates, EventEnvelope, Part, StreamEvent};
use crate::contract::from_value;
use crate::contract::limits::MAX_STRING;
use crate::contract::types::DurablePlan;

fn tool(state: Value) -> Value {
    json!({ "id": "p", "sessionID": "s", "messageID": "m", "type": "tool", "tool": "bash", "state": state })
}

fn child(changes: Value) -> Result<StreamEvent, String> {
    let mut child = json!({
        "type": "child-task", "childId": "c", "status": "completed",
        "time": { "started": 1, "updated": 2 }, "sourceEventId": "e",
    });
    let changes = changes.as_object().unwrap().clone();
    child.as_object_mut().unwrap().extend(changes);
    from_value(child).map_err(|refused| refused.path().to_owned())
}

#[test]
fn core_10_3_a_completed_tool_says_its_output_even_when_it_is_null() {
    let completed = |state| from_value::<Part>(tool(state));
    let given = json!({ "status": "completed", "input": {}, "output": null });
    assert!(completed(given).is_ok());
    let refused = completed(json!({ "status": "completed", "input": {} })).unwrap_err();
    assert_eq!(refused.to_string(), "/state: `output` is missing");
}

#[test]
fn core_10_2_a_status_word_of_a_frame_is_no_canonical_status() {
    let event = json!({ "type": "status", "status": "running" });
    assert_eq!(
        from_value::<StreamEvent>(event).unwrap_err().path(),
        "/status"
    );
    let made = canonical("status", json!({ "status": "running" })).unwrap();
    assert_eq!(made["status"], "processing");
}

#[test]
fn core_10_2_texts_that_are_content_may_be_longer_than_a_control_text() {
    let long = "x".repeat(MAX_STRING + 1);
    let text =
        json!({ "id": "p", "sessionID": "s", "messageID": "m", "type": "text", "text": long });
    let whole = canonical(
        "message.part.updated",
        json!({ "part": text, "delta": long }),
    )
    .unwrap();
    assert_eq!(whole["delta"], long.as_str());
    let done = tool(json!({ "status": "completed", "input": {}, "output": long }));
    assert!(canonical("message.part.updated", json!({ "part": done })).is_some());

    let titled = tool(json!({ "status": "running", "input": {}, "title": long }));
    assert_eq!(
        canonical("message.part.updated", json!({ "part": titled })),
        None
    );
    let asked = tool(json!({ "status": "pending", "input": { "text": long } }));
    assert_eq!(
        canonical("message.part.updated", json!({ "part": asked })),
        None
    );
    assert_eq!(
        canonical("status", json!({ "status": "failed", "error": long })),
        None
    );
}

#[test]
fn core_10_2_the_texts_of_a_plan_are_kept_without_outer_white_space() {
    let plan = |title: &str| {
        json!({ "plan": {
        "id": "p", "revision": 1, "title": title, "body": "\u{FEFF} do it\n",
        "submittedAt": "2026-01-02T03:04:05+02:00",
    } })
    };
    let kept = canonical("plan.submitted", plan(" T ")).unwrap();
    assert_eq!(
        (&kept["plan"]["title"], &kept["plan"]["body"]),
        (&json!("T"), &json!("do it"))
    );
    assert_eq!(canonical("plan.submitted", plan(" ")), None);

    let mut supplied = plan(" T ");
    supplied["type"] = json!("plan.submitted");
    let kept = canonical("plan.submitted", json!({ "normalized": supplied })).unwrap();
    assert_eq!(kept["plan"]["body"], "do it");
}

#[test]
fn interactions_11_a_plan_has_an_id_with_white_space_and_a_time_of_any_precision() {
    let plan = |id: &str, time: &str| {
        let plan = json!({ "id": id, "revision": 1, "body": "b", "submittedAt": time });
        from_value::<DurablePlan>(plan).map_err(|refused| refused.path().to_owned())
    };
    assert!(plan(" p 1 ", "2026-01-02T03:04+02:00").is_ok());
    let precise = format!("2026-01-02T03:04:05.{}Z", "0".repeat(60));
    assert!(plan("p", &precise).is_ok());
    assert_eq!(plan("", "2026-01-02T03:04Z").unwrap_err(), "/id".to_owned());
    for time in ["2026-01-02T03:04:60Z", "2026-01-02T03:04", "2026-01-02"] {
        assert_eq!(plan("p", time).unwrap_err(), "/submittedAt".to_owned());
    }
}

/// An ask that is right, with these members instead.
fn ask(changes: Value, digest: Option<&str>) -> Value {
    let mut ask = json!({
        "id": "ask-1", "kind": "question", "title": "Which branch?",
        "answerSpec": { "fields": [{ "type": "text", "name": "branch", "label": "Branch", "required": true }] },
        "binding": {
            "runId": "run-7", "provider": "tangle-sandbox", "environmentId": "sbx-7", "sessionId": "ses-7",
            "executionId": "exe-7", "interactionId": "ask-1",
        },
    });
    let members = ask.as_object_mut().unwrap();
    members.extend(changes.as_object().unwrap().clone());
    let own = digest_of(&ask).to_string();
    ask["requestDigest"] = json!(digest.unwrap_or(&own));
    ask
}

#[test]
fn interactions_5_an_ask_names_itself_and_holds_its_own_digest() {
    let refused = |ask: Value| match from_value::<Ask>(ask) {
        Ok(_) => String::new(),
        Err(refused) => refused.path().to_owned(),
    };
    let published = "sha256:19826cec5469cf363e1c120e049052293bba994a5faef0c152e6f00c4689d873";
    assert_eq!(refused(ask(json!({}), Some(published))), "");
    let retitled = ask(json!({ "title": "Other?" }), Some(published));
    assert_eq!(refused(retitled), "/requestDigest");
    assert_eq!(
        refused(ask(json!({ "id": "ask-2" }), None)),
        "/binding/interactionId"
    );
    let waiting = json!({ "onTimeout": "default", "timeoutMs": 1 });
    assert_eq!(refused(ask(waiting, None)), "/default");
    assert_eq!(refused(ask(json!({ "title": "" }), None)), "/title");
}

#[test]
fn interactions_2_an_ask_that_does_not_parse_makes_no_canonical_event() {
    let event = |request: Value| canonical("interaction", json!({ "request": request }));
    let right = ask(json!({}), None);
    assert_eq!(
        event(right.clone()),
        Some(json!({ "type": "interaction", "request": right }))
    );
    assert_eq!(event(json!({ "id": "ask-1" })), None);
    assert_eq!(event(ask(json!({ "note": 1 }), None)), None);
}

#[test]
fn core_10_4_a_child_task_is_in_order() {
    assert!(child(json!({ "terminalReason": "ok" })).is_ok());
    let time =
        |updated, ended| json!({ "time": { "started": 3, "updated": updated, "ended": ended } });
    assert!(child(time(3, 3)).is_ok());
    assert_eq!(child(time(2, 3)), Err("/time/updated".to_owned()));
    assert_eq!(child(time(4, 2)), Err("/time/ended".to_owned()));
    for status in ["started", "running"] {
        let reason = json!({ "status": status, "terminalReason": "x" });
        assert_eq!(child(reason), Err("/terminalReason".to_owned()));
    }
    assert_eq!(
        child(json!({ "parentChildId": "c" })),
        Err("/parentChildId".to_owned())
    );
}

#[test]
fn core_10_4_an_update_from_the_same_source_counts_once() {
    let mut updates = ChildUpdates::new();
    let first = child(json!({ "title": "a" })).unwrap();
    let repeated = child(json!({ "title": "b" })).unwrap();
    let later = child(json!({ "sourceEventId": "f" })).unwrap();
    let other = child(json!({ "childId": "d" })).unwrap();
    let found = [&first, &repeated, &later, &other].map(|event| updates.is_new(event));
    assert_eq!(found, [true, false, true, true]);
}

#[test]
fn core_10_5_an_envelope_places_an_event_in_its_run() {
    let envelope = |sequence: i64, received: &str| {
        from_value::<EventEnvelope>(json!({
            "runId": "r", "eventId": "e", "sequence": sequence, "receivedAt": received,
            "event": { "type": "raw", "data": {} },
        }))
    };
    assert!(envelope(0, "2026-01-02T03:04:05Z").is_ok());
    assert_eq!(
        envelope(-1, "2026-01-02T03:04:05Z").unwrap_err().path(),
        "/sequence"
    );
    assert_eq!(
        envelope(0, "2026-01-02T03:04:05+01:00").unwrap_err().path(),
        "/receivedAt"
    );
}
