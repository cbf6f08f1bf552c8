use serde_json::{Value, json};

use super::{Refusal, ResultRecord, read_record, turn_result};
use crate::contract::limits::{MAX_JSON_BYTES, MAX_STRING};
use crate::contract::types::RunControlRef;

fn record(changes: Value) -> Result<ResultRecord, Refusal> {
    let mut record = json!({ "success": true, "status": "success", "durationMs": 1.5 });
    let changes = changes.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(changes);
    read_record(record)
}

fn refused(changes: Value) -> (&'static str, String) {
    let refusal = record(changes).unwrap_err();
    (refusal.code(), refusal.path().into_owned())
}

#[test]
fn core_8_2_success_is_the_status_success_exactly() {
    let says =
        |success: bool, status: &str| record(json!({ "success": success, "status": status }));
    assert!(says(true, "success").is_ok());
    for status in [
        "failed",
        "blocked_on_approval",
        "awaiting_question",
        "awaiting_interaction",
        "awaiting_plan_decision",
    ] {
        assert!(says(false, status).is_ok(), "{status}");
        assert_eq!(says(true, status).unwrap_err().code(), "result-status");
    }
    assert_eq!(says(false, "success").unwrap_err().code(), "result-status");
    assert_eq!(says(false, "unknown").unwrap_err().code(), "result-status");
}

#[test]
fn core_8_2_a_member_of_another_type_is_refused_at_its_place() {
    for (changes, path) in [
        (json!({ "success": 1 }), "/success"),
        (json!({ "status": 1 }), "/status"),
        (json!({ "durationMs": -1 }), "/durationMs"),
        (json!({ "executionId": "" }), "/executionId"),
        (json!({ "traceId": null }), "/traceId"),
        (json!({ "response": 1 }), "/response"),
    ] {
        assert_eq!(refused(changes), ("VALIDATION_ERROR", path.to_owned()));
    }
    assert_eq!(
        read_record(json!([])).unwrap_err().code(),
        "VALIDATION_ERROR"
    );
}

#[test]
fn provider_8_8_the_texts_are_content_and_the_rest_is_metadata() {
    let long = "x".repeat(MAX_STRING + 1);
    for key in ["response", "text", "finalText"] {
        let mut changes = json!({});
        changes[key] = json!(long);
        assert_eq!(record(changes).unwrap().answer(), long);
    }
    assert_eq!(
        refused(json!({ "traceId": long })),
        ("metadata-bound", "/traceId".to_owned())
    );
    assert_eq!(
        refused(json!({ "note": { "deep": long } })).0,
        "metadata-bound"
    );
    let huge = "x".repeat(MAX_JSON_BYTES / 2);
    assert_eq!(
        refused(json!({ "response": huge, "text": huge })).0,
        "content-bound"
    );
    let history = json!({ "toolInvocations": [{ "toolName": "a", "result": [huge, huge, huge] }] });
    assert!(
        !record(history)
            .unwrap()
            .extra
            .contains_key("toolInvocations")
    );
}

#[test]
fn provider_8_8_a_receipt_that_nobody_asked_for_and_unreadable_usage_are_refused() {
    assert_eq!(
        refused(json!({ "contextTransferReceipt": {} })).0,
        "unsolicited-receipt"
    );
    assert_eq!(
        refused(json!({ "usage": null })),
        ("usage-shape", "/usage".to_owned())
    );
    assert_eq!(refused(json!({ "approval": { "id": "" } })).0, "identifier");
    let both = json!({ "usage": null, "durationMs": -1 });
    assert_eq!(refused(both).1, "/durationMs");
}

#[test]
fn core_8_3_a_turn_that_waits_is_neither_a_success_nor_a_failure() {
    let run: RunControlRef = serde_json::from_value(json!({
        "runId": "r", "provider": "p", "environmentId": "e", "sessionId": "s", "executionId": "x",
        "requestDigest": format!("sha256:{}", "0".repeat(64)),
    }))
    .unwrap();
    let waiting = json!({
        "success": false, "status": "awaiting_interaction", "executionId": "x",
        "text": "second", "finalText": "third", "tokenUsage": { "tokensIn": 1, "tokensOut": 2 }, "costUsd": 0.5,
    });
    let record = record(waiting).unwrap();
    let turn = turn_result(&record, Some(&run.session_id), Some(&run)).unwrap();
    assert_eq!(
        serde_json::to_value(&turn).unwrap(),
        json!({
            "text": "second", "success": false, "sessionId": "s",
            "usage": { "inputTokens": 1, "outputTokens": 2, "cost": 0.5 },
            "metadata": {
                "runId": "r", "executionId": "x", "requestDigest": run.request_digest,
                "status": "awaiting_interaction", "awaitingInteraction": true, "terminal": false,
            },
        })
    );
    let turn = turn_result(&record, None, None).unwrap();
    assert_eq!(turn.metadata.unwrap().get("executionId"), Some(&json!("x")));
}

#[test]
fn core_8_3_the_text_is_the_first_that_is_given() {
    let text = |changes| {
        turn_result(&record(changes).unwrap(), None, None)
            .unwrap()
            .text
    };
    assert_eq!(
        text(json!({ "response": "a", "text": "b", "finalText": "c" })),
        "a"
    );
    assert_eq!(text(json!({ "finalText": "c" })), "c");
    assert_eq!(text(json!({})), "");
    let turn = turn_result(&record(json!({})).unwrap(), None, None).unwrap();
    assert_eq!(turn.metadata.unwrap()["terminal"], true);
}
