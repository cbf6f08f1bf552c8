use serde_json::{Value, json};

use super::super::read;
use super::{Place, ResolvedTurn};
use crate::contract::canonical;
use crate::contract::types::{ExecutionId, RequestDigest};

fn place() -> Place {
    Place {
        provider: "tangle-sandbox".parse().unwrap(),
        environment_id: "sbx-1".parse().unwrap(),
        session_id: "session-1".parse().unwrap(),
        nonce: None,
    }
}

fn turn(turn: Value) -> ResolvedTurn {
    read(turn).unwrap().resolve().unwrap()
}

fn material(input: Value) -> String {
    canonical::to_text(&turn(input).material(&place(), None))
}

#[test]
fn provider_7_3_what_was_given_is_material_and_what_was_not_is_absent() {
    let bare = r#"{"environmentId":"sbx-1","provider":"tangle-sandbox","sessionId":"session-1"}"#;
    assert_eq!(material(json!({})), bare);
    let not_material =
        json!({ "sessionId": "s", "executionId": "x", "lastEventId": "7", "providerOptions": {} });
    assert_eq!(material(not_material), bare);
    assert!(material(json!({ "detach": false, "prompt": "" })).contains(r#""detach":false"#));
    assert!(material(json!({ "prompt": "" })).contains(r#""prompt":"""#));
    assert!(material(json!({ "parts": [] })).contains(r#""parts":[]"#));
    assert!(material(json!({ "context": {} })).contains(r#""context":{}"#));
}

#[test]
fn provider_7_3_interactions_are_material_under_their_own_name() {
    let posture = json!({ "interactions": { "plan": true }, "providerOptions": { "backend": { "type": "codex" } } });
    let text = material(posture);
    assert!(
        text.starts_with(r#"{"backend":{"type":"codex"},"#),
        "{text}"
    );
    assert!(text.contains(r#""interactions":{"plan":true}"#));
}

#[test]
fn provider_7_3_a_typed_profile_and_one_in_the_block_give_one_digest() {
    let typed = turn(json!({ "prompt": "go", "profile": { "name": "w" } }));
    let legacy = turn(
        json!({ "prompt": "go", "providerOptions": { "backend": { "profile": { "name": "w" } } } }),
    );
    assert_eq!(typed.digest(&place()), legacy.digest(&place()));
}

#[test]
fn provider_7_3_a_rotated_token_keeps_the_digest_and_another_seat_does_not() {
    let seat = |path: &str, content: &str, mode: u32| {
        let files = json!([{ "path": path, "content": content, "mode": mode }]);
        turn(json!({ "providerOptions": { "backend": { "authFiles": files } } })).digest(&place())
    };
    let first = seat("a", "one", 384);
    assert_eq!(first, seat("a", "two", 384));
    assert_ne!(first, seat("b", "one", 384));
    assert_ne!(first, seat("a", "one", 420));
}

#[test]
fn provider_7_3_the_execution_follows_from_the_turn_unless_one_is_named() {
    let hello = turn(json!({ "prompt": "hello" }));
    let minted = hello.mint(&place(), None).unwrap();
    assert_eq!(
        minted.execution_id.as_str(),
        format!("session-turn-{}", hello.digest(&place()).hex())
    );
    assert_eq!(minted.run_id.as_str(), minted.execution_id.as_str());
    assert_eq!(
        minted.request_digest,
        hello.request_digest(&place(), &minted.execution_id)
    );
    let named = turn(json!({ "prompt": "hello", "executionId": "x" }));
    assert_eq!(
        named.mint(&place(), None).unwrap().execution_id.as_str(),
        "x"
    );
    // A nonce makes two like turns two.
    let nonce = |text: &str| Place {
        nonce: Some(text.into()),
        ..place()
    };
    assert_ne!(hello.digest(&nonce("a")), hello.digest(&nonce("b")));
}

#[test]
fn provider_8_2_a_reference_of_a_turn_that_has_changed_is_a_conflict() {
    let hello = turn(json!({ "prompt": "hello" }));
    let mut given = hello.mint(&place(), None).unwrap();
    given.run_id = "run-9".parse().unwrap();
    assert_eq!(hello.mint(&place(), Some(&given)), Ok(given.clone()));
    let changed = turn(json!({ "prompt": "hello!" }));
    let refusal = changed.mint(&place(), Some(&given)).unwrap_err();
    assert_eq!(refusal.code(), "conflict");
    let execution: ExecutionId = given.execution_id.clone();
    given.request_digest = RequestDigest::of(&changed.material(&place(), Some(&execution)));
    assert!(changed.mint(&place(), Some(&given)).is_ok());
}

#[test]
fn a_turn_that_resumes_a_native_session_is_not_sent() {
    let resume = json!({ "harness": "codex", "nativeSessionId": "n", "sourceCheckpointId": "c" });
    let refusal = turn(json!({ "nativeResume": resume })).mint(&place(), None);
    assert_eq!(
        refusal.unwrap_err().code(),
        "native-continuation-unsupported"
    );
}
