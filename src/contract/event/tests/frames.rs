use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{canonical, frame, read};
use crate::contract::bounds;
use crate::contract::event::{
    EnvironmentEvent, EventDocument, Expected, RawFrame, check_identity, project_terminal,
    read_frame,
};
use crate::contract::limits::MAX_JSON_BYTES;
use crate::contract::usage::UsageMode;

fn code(kind: &str, data: Value) -> &'static str {
    read(kind, data).unwrap_err().code()
}

fn expected(bound: bool) -> Expected {
    Expected {
        execution_id: Some("x-1".parse().unwrap()),
        session_id: Some("s-1".parse().unwrap()),
        bound,
    }
}

fn projected(record: Value) -> Result<Value, (&'static str, String)> {
    let Value::Object(record) = record else {
        panic!()
    };
    match project_terminal(record) {
        Ok(record) => Ok(record.into()),
        Err(refusal) => Err((refusal.code(), refusal.path().into_owned())),
    }
}

#[test]
fn provider_9_1_the_bound_is_that_of_the_whole_frame() {
    let taken = |text: usize, id: Option<&str>| {
        let data = format!(r#"{{"v":"{}"}}"#, "x".repeat(text));
        let frame = RawFrame::parse("raw", id, &data).unwrap();
        let size = frame.to_value().to_string().len();
        (size, read_frame(frame, &Expected::default()).is_ok())
    };
    let around = taken(0, Some("a\"b")).0;
    assert_eq!(
        taken(MAX_JSON_BYTES - around, Some("a\"b")),
        (MAX_JSON_BYTES, true)
    );
    assert_eq!(
        taken(MAX_JSON_BYTES - around + 1, Some("a\"b")),
        (MAX_JSON_BYTES + 1, false)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn provider_9_1_a_frame_is_bounded_as_the_json_that_it_is(
        levels in 12..18_usize, items in 0..1_028_usize, text in "[\\x00-\\x7f]{0,8}", named in any::<bool>(),
    ) {
        let nested = (0..levels).fold(json!(text), |inner, _| json!([inner]));
        let data = json!({ "nested": nested, "list": vec![0; items], "text": "\u{1}".repeat(items * 170) });
        let mut value = json!({ "type": "t\"", "data": data });
        if named {
            value["id"] = json!("\u{1}id");
        }
        let whole = bounds::event_content("frame", &value).is_ok();
        let frame = RawFrame::from_value(value).unwrap();
        prop_assert_eq!(read_frame(frame, &Expected::default()).is_ok(), whole);
    }
}

#[test]
fn provider_9_1_positions_of_one_identity_must_agree() {
    for (kind, data, path) in [
        (
            "x",
            json!({ "properties": { "sessionId": "a", "info": { "sessionID": "b" } } }),
            "/data/properties/info/sessionID",
        ),
        (
            "x",
            json!({ "executionId": "a", "properties": { "executionId": "b" } }),
            "/data/properties/executionId",
        ),
        (
            "message.part.updated",
            json!({ "properties": { "sessionID": "a", "part": { "sessionID": "b" } } }),
            "/data/properties/part/sessionID",
        ),
    ] {
        let refusal = read(kind, data).unwrap_err();
        assert_eq!((refusal.code(), &*refusal.path()), ("alias-conflict", path));
    }
    let part = json!({ "properties": { "sessionID": "a", "part": { "sessionID": "b" } } });
    assert!(
        read("message.updated", part).is_ok(),
        "no position on another type"
    );
    let both = json!({
        "executionId": "a",
        "properties": { "executionId": "b", "info": { "executionId": 5 } },
    });
    assert_eq!(code("x", both), "identifier", "before any two are compared");
    let groups = json!({ "sessionId": "a", "properties": { "sessionID": "b" } });
    assert!(read("x", groups).is_ok(), "two groups may differ");
}

#[test]
fn provider_9_1_every_position_is_compared_with_the_expected_session() {
    let check = |kind: &str, data: Value, bound| {
        let checked = check_identity(&frame(kind, data), &expected(bound));
        checked.map_err(|refusal| refusal.code())
    };
    let named = |session: &str| json!({ "executionId": "x-1", "sessionId": session });
    assert_eq!(check("x", named("s-1"), false), Ok(()));
    assert_eq!(check("x", named("s-2"), true), Err("session-mismatch"));
    assert_eq!(
        check("x", json!({ "executionId": "x-1" }), false),
        Err("session-absent")
    );
    assert_eq!(check("session.updated", named("ses_1"), true), Ok(()));
    assert_eq!(
        check("session.updated", named("ses_1"), false),
        Err("session-mismatch")
    );
    let other = json!({ "executionId": "x-2", "sessionId": "s-2" });
    assert_eq!(check("x", other, true), Err("execution-mismatch"));
}

#[test]
fn provider_8_3_a_connection_marker_is_compared_and_is_no_event() {
    let marker = frame(
        "message",
        json!({ "type": "connection.established", "sessionId": "s-1" }),
    );
    assert!(marker.is_connection_marker());
    assert_eq!(check_identity(&marker, &expected(true)), Ok(()));
    let silent = frame("connection.established", json!({}));
    assert!(silent.is_connection_marker());
    assert_eq!(check_identity(&silent, &expected(false)), Ok(()));
    let other = frame("connection.established", json!({ "sessionId": "s-2" }));
    let refusal = check_identity(&other, &expected(false)).unwrap_err();
    assert_eq!(refusal.code(), "session-mismatch");
    assert!(!frame("start", json!({})).is_connection_marker());
}

#[test]
fn provider_9_2_a_supplied_form_has_to_be_right() {
    let status = json!({ "type": "status", "status": "started" });
    assert!(canonical("status", json!({ "normalized": status })).is_some());
    assert_eq!(
        code("status", json!({ "normalized": null })),
        "normalized-invalid"
    );
    assert_eq!(
        code("raw", json!({ "normalized": status })),
        "normalized-type"
    );
    assert_eq!(
        code("done", json!({ "normalized": status })),
        "normalized-type"
    );
    let session = json!({ "type": "session.updated", "sessionId": "a" });
    assert_eq!(
        code("session.updated", json!({ "normalized": session })),
        "normalized-session"
    );
    let carried = json!({ "normalized": session, "properties": { "sessionID": "a" } });
    assert!(canonical("session.updated", carried).is_some());
}

#[test]
fn provider_9_2_a_member_that_is_wrong_takes_the_form_and_not_the_event() {
    let working = |more: Value| {
        let mut data = json!({ "phase": "generating" });
        data.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        canonical("model-processing", data)
    };
    assert!(working(json!({ "toolName": "bash", "elapsedMs": 1.5 })).is_some());
    assert_eq!(working(json!({ "toolName": null })), None);
    assert_eq!(working(json!({ "elapsedMs": -1 })), None);
    assert_eq!(canonical("interaction", json!({ "request": "q" })), None);
    assert_eq!(
        canonical("interaction.cancel", json!({ "id": "q", "reason": 1 })),
        None
    );
    assert_eq!(canonical("novelty", json!({ "a": 1 })), None);
}

#[test]
fn provider_9_4_a_history_of_any_size_passes_and_a_huge_text_does_not() {
    let huge = "x".repeat(MAX_JSON_BYTES + 1);
    let history =
        json!({ "finalText": "t", "toolInvocations": [{ "toolName": "a", "result": huge }] });
    let event = read("result", history).unwrap();
    assert_eq!(
        Value::Object(event.data().clone()),
        json!({ "finalText": "t" })
    );
    assert_eq!(
        (event.is_terminal(), event.has_provider_event()),
        (true, false)
    );
    assert_eq!((event.normalized(), event.usage_mode()), (None, None));
    assert_eq!(
        code("result", json!({ "finalText": huge })),
        "content-bound"
    );
    assert_eq!(
        code("raw", json!({ "toolInvocations": huge })),
        "content-bound"
    );
}

#[test]
fn provider_9_4_the_approval_that_is_waited_for_outlives_the_history() {
    let call = |approval: Value| json!({ "toolName": "bash", "approval": approval });
    let history = |calls: Value| projected(json!({ "toolInvocations": calls }));
    assert_eq!(
        history(json!([call(json!({ "id": "a" }))])),
        Ok(json!({ "approval": { "id": "a", "toolName": "bash" } }))
    );
    let decided =
        json!([{ "approval": { "id": "a" }, "result": "done" }, call(json!({ "id": "b" }))]);
    assert_eq!(history(decided).unwrap()["approval"]["id"], "b");

    let own = json!({ "id": "a", "title": "Run it?" });
    let both = json!({ "approval": own, "toolInvocations": [call(json!({ "id": "a" }))] });
    assert_eq!(projected(both), Ok(json!({ "approval": own })));
    let differ = json!({ "approval": own, "toolInvocations": [call(json!({ "id": "b" }))] });
    let place = || "/toolInvocations/0/approval".to_owned();
    assert_eq!(projected(differ), Err(("alias-conflict", place())));

    let unnamed = json!({ "approval": { "id": "a" } });
    let named = |tool: &str| json!({ "approval": { "id": "a", "toolName": tool } });
    assert_eq!(
        history(json!([unnamed, named("bash"), unnamed])),
        Ok(named("bash"))
    );
    assert_eq!(
        history(json!([unnamed, named("bash"), named("sh")])),
        Err(("alias-conflict", "/toolInvocations/2/approval".to_owned()))
    );

    assert_eq!(
        history(json!([call(json!("a"))])),
        Err(("frame-shape", place()))
    );
    let padded = json!({ "approval": { "id": " a" } });
    assert_eq!(
        projected(padded),
        Err(("identifier", "/approval/id".to_owned()))
    );
    assert_eq!(
        projected(json!({ "approval": null })),
        Ok(json!({ "approval": null }))
    );
    let refusal = read("done", json!({ "approval": {} })).unwrap_err();
    assert_eq!(refusal.path(), "/data/approval/id");
}

#[test]
fn provider_9_3_a_mode_of_its_own_is_kept_and_a_receipt_is_cumulative() {
    let usage = json!({ "inputTokens": 1, "outputTokens": 1 });
    let mode = |kind, data| read(kind, data).unwrap().usage_mode();
    assert_eq!(
        mode("done", json!({ "usage": usage })),
        Some(UsageMode::Cumulative)
    );
    assert_eq!(mode("raw", json!({ "usage": usage })), None);
    assert_eq!(
        mode("done", json!({ "usage": usage, "usageMode": "total" })),
        Some(UsageMode::Cumulative)
    );
    assert_eq!(
        mode("done", json!({ "usage": usage, "usageMode": "delta" })),
        Some(UsageMode::Delta)
    );
}

#[test]
fn a_frame_of_text_is_strict_json() {
    let parse = |data: &str| {
        RawFrame::parse("raw", None, data).map_err(|refusal| refusal.path().into_owned())
    };
    assert!(parse(r#"{"a":[1]}"#).is_ok());
    assert_eq!(parse(r#"{"a":{"b":1,"b":2}}"#), Err("/data/a/b".to_owned()));
    assert_eq!(parse("[]"), Err("/data".to_owned()));
    assert_eq!(
        RawFrame::parse("raw ", None, "{}").unwrap_err().path(),
        "/type"
    );
}

#[test]
fn an_event_and_its_document_say_the_same() {
    let event = read(
        "status",
        json!({ "status": "started", "usage": { "inputTokens": 1, "outputTokens": 2 } }),
    )
    .unwrap();
    let document = EventDocument::from(event.clone());
    let provider = document.provider_event.clone().unwrap();
    assert_eq!(provider["data"], Value::Object(event.data().clone()));
    let back = EnvironmentEvent::from(document.clone());
    assert_eq!(EventDocument::from(back), document);
    assert!(crate::contract::verify(&document).is_ok());
}

#[test]
fn a_refusal_names_a_place_and_never_a_value() {
    let marker = "hunter2 ";
    for (kind, data) in [
        ("x", json!({ "sessionId": marker })),
        ("x", json!({ "usage": marker })),
        ("x", json!({ "normalized": { "type": marker } })),
        (
            "status",
            json!({ "normalized": { "type": "status", "status": marker } }),
        ),
        ("done", json!({ "approval": { "id": marker } })),
        (
            "x",
            Map::from_iter([(marker.repeat(80), json!(marker))]).into(),
        ),
    ] {
        let refusal = read(kind, data).unwrap_err();
        let shown = format!("{refusal} {refusal:?} {}", refusal.path());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
