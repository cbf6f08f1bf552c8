use serde_json::{Value, json};

use super::super::{Refusal, read};
use super::ResolvedTurn;
use crate::contract::retained::Target;
use crate::contract::secret::in_body;

fn resolved(turn: Value) -> Result<ResolvedTurn, Refusal> {
    read(turn)?.resolve()
}

fn code(turn: Value) -> String {
    resolved(turn).map_or_else(|refusal| refusal.code().into_owned(), |_| "taken".into())
}

fn sent(turn: Value) -> Value {
    let turn = resolved(turn).unwrap();
    in_body(|| json!(turn.backend()))
}

#[test]
fn core_8_1_a_profile_in_two_places_has_to_have_one_digest() {
    let turn = |own: Value| json!({ "profile": { "name": "w", "harness": "codex" }, "providerOptions": { "backend": { "profile": own } } });
    let same = json!({ "profile": { "harness": "codex", "name": "w" } });
    assert_eq!(sent(turn(json!({ "harness": "codex", "name": "w" }))), same);
    assert_eq!(code(turn(json!({ "name": "w" }))), "conflict");
    let empty = json!({ "harness": "codex", "name": "w", "tools": {} });
    assert_eq!(code(turn(empty)), "conflict");
}

#[test]
fn core_8_1_the_backend_of_a_turn_is_the_harness_of_its_profile() {
    let turn = |backend: &str| json!({ "profile": { "harness": "claude-code" }, "providerOptions": { "backend": { "type": backend } } });
    assert_eq!(code(turn("claude-code")), "taken");
    assert_eq!(code(turn("codex")), "conflict");
    // A profile in the block itself goes with any backend.
    let own = json!({ "backend": { "type": "codex", "profile": { "harness": "claude-code" } } });
    assert_eq!(code(json!({ "providerOptions": own })), "taken");
}

#[test]
fn provider_7_2_another_model_in_the_block_is_a_conflict_also_in_its_flat_spelling() {
    let turn =
        |block: Value| code(json!({ "model": "a", "providerOptions": { "backend": block } }));
    assert_eq!(turn(json!({ "model": { "model": "a" } })), "taken");
    assert_eq!(turn(json!({ "type": "codex" })), "taken");
    assert_eq!(turn(json!({ "model": { "model": "b" } })), "conflict");
    assert_eq!(turn(json!({ "modelId": "b" })), "conflict");
}

#[test]
fn provider_7_2_postures_that_agree_are_sent_as_the_turn_says() {
    let turn = |block: Value| json!({ "interactions": { "question": true, "acme.review": true }, "providerOptions": { "backend": { "interactions": block } } });
    let kinds = json!({ "interactions": { "question": true, "acme.review": true } });
    assert_eq!(
        sent(turn(json!({ "question": true, "plan": false }))),
        kinds
    );
    assert_eq!(code(turn(json!({ "permission": true }))), "conflict");
    assert_eq!(code(turn(json!({}))), "conflict");
    assert_eq!(
        sent(json!({ "interactions": { "acme.review": true } })),
        json!({ "interactions": { "acme.review": true } })
    );
    assert_eq!(
        sent(json!({ "interactions": {} })),
        json!({ "interactions": {} })
    );
}

#[test]
fn core_8_1_the_block_with_the_profile_of_the_turn_is_checked_whole() {
    let login = json!({ "account": "a", "secretEnv": "S", "format": "bundle" });
    let turn = |source: &str| {
        json!({
            "profile": { "harness": "codex", "model": { "metadata": { "credentialSource": source } } },
            "providerOptions": { "backend": { "type": "codex", "cliAuth": login } },
        })
    };
    assert_eq!(code(turn("subscription")), "taken");
    assert_eq!(code(turn("managed")), "managed_profile_native_credentials");
    assert_eq!(code(turn("other")), "credential_intent_invalid");
    let attached = json!({ "mcp": { "co": { "url": "https://co.example" } } });
    let collides = json!({
        "profile": { "mcp": { "co": { "enabled": false } } },
        "providerOptions": { "backend": { "runtimeAttachments": attached } },
    });
    assert_eq!(code(collides), "attachment_conflict");
    // Alone the profile fits; one container deeper it does not.
    let mut deep = json!(1);
    for _ in 0..14 {
        deep = json!([deep]);
    }
    let turn = json!({ "profile": { "metadata": { "a": deep } } });
    assert_eq!(code(turn), "JSON_BOUND_VIOLATION");
}

#[test]
fn a_path_leads_from_the_turn_to_the_place_that_it_has() {
    let path = |turn: Value| resolved(turn).unwrap_err().path().into_owned();
    let block = |block: Value| path(json!({ "providerOptions": { "backend": block } }));
    let profile = json!({ "model": { "metadata": { "credentialSource": "other" } } });
    let intent = "/profile/model/metadata/credentialSource";
    assert_eq!(path(json!({ "profile": profile })), intent);
    assert_eq!(
        block(json!({ "profile": profile })),
        format!("/providerOptions/backend{intent}")
    );
    assert_eq!(
        block(json!({ "modelId": "a", "model": { "model": "b" } })),
        "/providerOptions/backend/modelId"
    );
    let mut deep = json!(1);
    for _ in 0..14 {
        deep = json!([deep]);
    }
    let deep = path(json!({ "profile": { "metadata": { "a": deep } } }));
    assert!(deep.starts_with("/profile/metadata/a/0"), "{deep}");
}

#[test]
fn a_turn_without_block_profile_and_interactions_sends_no_block() {
    assert_eq!(sent(json!({ "prompt": "go", "model": "m" })), Value::Null);
    assert_eq!(sent(json!({ "providerOptions": {} })), Value::Null);
    assert_eq!(
        sent(json!({ "providerOptions": { "backend": {} } })),
        json!({})
    );
}

#[test]
fn provider_7_1_a_reference_is_exact_names_the_target_and_agrees_with_the_turn() {
    let target = Target {
        provider: "p".parse().unwrap(),
        environment_id: "e".parse().unwrap(),
        session_id: Some("s".parse().unwrap()),
        execution_id: None,
        request_digest: None,
    };
    let reference = |change: Value| {
        let mut reference = json!({
            "runId": "r", "provider": "p", "environmentId": "e", "sessionId": "s", "executionId": "x",
            "requestDigest": format!("sha256:{}", "a".repeat(64)),
        });
        for (key, value) in change.as_object().unwrap() {
            match value {
                Value::Null => drop(reference.as_object_mut().unwrap().remove(key)),
                value => reference[key] = value.clone(),
            }
        }
        reference
    };
    let code = |turn: Value| {
        let found = resolved(turn).unwrap().reference(&target);
        found.map_or_else(
            |refusal| refusal.code().into_owned(),
            |exact| exact.map_or("none".into(), |exact| exact.run_id.to_string()),
        )
    };
    assert_eq!(code(json!({})), "none");
    assert_eq!(code(json!({ "controlRef": reference(json!({})) })), "r");
    assert_eq!(
        code(json!({ "controlRef": reference(json!({ "requestDigest": null })) })),
        "VALIDATION_ERROR"
    );
    for other in [
        json!({ "provider": "q" }),
        json!({ "environmentId": "f" }),
        json!({ "sessionId": "t" }),
    ] {
        assert_eq!(
            code(json!({ "controlRef": reference(other) })),
            "reference-other-target"
        );
    }
    for beside in ["sessionId", "executionId"] {
        let turn = json!({ "controlRef": reference(json!({})), beside: "other" });
        assert_eq!(code(turn), "conflict");
    }
    let same = json!({ "controlRef": reference(json!({})), "sessionId": "s", "executionId": "x" });
    assert_eq!(code(same), "r");
}

#[test]
fn a_secret_of_a_block_is_written_in_a_body_only() {
    let turn = resolved(json!({ "providerOptions": { "backend": {
        "apiKey": "canary", "runtimeSecrets": { "A": "canary" } } } }))
    .unwrap();
    let block = turn.backend().unwrap();
    assert!(!format!("{turn:?} {block:?} {}", json!(block)).contains("canary"));
    assert!(!block.identity().to_string().contains("canary"));
    assert!(in_body(|| json!(block).to_string()).contains("canary"));
}
