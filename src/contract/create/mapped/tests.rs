use serde_json::{Value, json};

use super::super::{Mapping, read};
use super::check_mapped;

fn mapping() -> Mapping {
    Mapping {
        provider: "tangle-sandbox".parse().unwrap(),
        default_backend: None,
    }
}

fn code_of(input: Value, mapped: Value, selected: Option<&Value>) -> &'static str {
    let input = read(input).unwrap();
    let checked = check_mapped(&mapping(), &input, mapped, selected);
    checked.map_or_else(|refusal| refusal.code(), |_| "taken")
}

/// The verdict on options for a plain create.
fn code(mapped: Value) -> &'static str {
    code_of(json!({ "profile": {} }), mapped, None)
}

#[test]
fn provider_3_5_what_the_default_mapping_gives_is_kept() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let input = json!({
        "profile": { "name": "w" }, "idempotencyKey": "k", "env": { "A": "1" }, "secrets": ["S"],
        "runtimeAttachments": { "mcp": { "co": { "url": "https://co.example" } } },
        "workspace": { "checkpoint": {
            "checkpointId": "snap-1", "provider": "tangle-sandbox", "idempotencyKey": "c", "requestDigest": digest,
            "createdAt": "2026-09-01T10:00:00.000Z", "source": {
                "runId": "r", "provider": "tangle-sandbox", "environmentId": "sbx-0", "sessionId": "s",
                "executionId": "x", "requestDigest": digest,
            },
        } },
    });
    let mapped = json!(mapping().map(&read(input.clone()).unwrap()).unwrap());
    assert_eq!(code_of(input.clone(), mapped.clone(), None), "taken");
    for (lost, expected) in [
        ("/idempotencyKey", "mapper-dropped-field"),
        ("/backend/runtimeAttachments", "attachments_not_preserved"),
        ("/fromSandboxId", "mapper-dropped-field"),
        (
            "/metadata/tangleNativeResumeCheckpointId",
            "mapper-dropped-field",
        ),
    ] {
        let mut mapped = mapped.clone();
        let (parent, key) = lost.rsplit_once('/').unwrap();
        let parent = mapped.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.remove(key).unwrap();
        assert_eq!(code_of(input.clone(), mapped, None), expected, "{lost}");
    }
    let mut other = mapped.clone();
    other["fromSnapshot"] = "snap-2".into();
    assert_eq!(code_of(input.clone(), other, None), "mapper-dropped-field");
    let mut other = mapped;
    other["backend"]["runtimeAttachments"]["mcp"]["co"]["url"] = "https://other.example".into();
    assert_eq!(code_of(input, other, None), "attachments_not_preserved");
}

#[test]
fn provider_3_5_a_restore_that_the_input_did_not_name_is_refused() {
    assert_eq!(code(json!({ "fromSnapshot": "s" })), "mapper-dropped-field");
    let both = json!({ "fromSnapshot": "s", "fromSandboxId": "b" });
    assert_eq!(code(both), "mapper-dropped-field");
    let marker = json!({ "metadata": { "tangleNativeResumeCheckpointId": "s" } });
    assert_eq!(code(marker), "mapper-dropped-field");
    assert_eq!(
        code(json!({ "idempotencyKey": "k" })),
        "mapper-dropped-field"
    );
}

#[test]
fn provider_3_5_each_field_has_its_code() {
    for (mapped, expected) in [
        (json!([]), "input"),
        (json!({}), "taken"),
        (json!({ "region": "eu" }), "unknown-field"),
        (json!({ "providerOptions": {} }), "provider-options"),
        (json!({ "secrets": { "A": "v" } }), "inline-secrets"),
        (json!({ "secrets": "all" }), "secrets"),
        (json!({ "secrets": [" A"] }), "secrets"),
        (json!({ "name": "" }), "name"),
        (json!({ "env": { "A": 1 } }), "env"),
        (json!({ "billingOwnerId": "" }), "billing-owner"),
        (json!({ "idempotencyKey": " k" }), "idempotency-key"),
        (json!({ "egressPolicy": [] }), "egress"),
        (
            json!({ "egressPolicy": { "mode": "permissive" } }),
            "egress",
        ),
        (
            json!({ "egressPolicy": { "mode": "open", "allowDomains": [] } }),
            "egress",
        ),
        (
            json!({ "egressPolicy": { "mode": "strict", "allowDomains": [" a"] } }),
            "egress",
        ),
        (
            json!({ "egressPolicy": { "mode": "strict", "allowDomains": ["a"] } }),
            "taken",
        ),
        (
            json!({ "metadata": { "a": "x".repeat(16_385) } }),
            "JSON_BOUND_VIOLATION",
        ),
        (
            json!({ "backend": { "runtimeAttachments": {} } }),
            "attachment_invalid",
        ),
        (json!({ "backend": { "sudo": 1 } }), "VALIDATION_ERROR"),
        (
            json!({ "backend": { "model": { "cliAuth": { "account": "a", "secretEnv": "S", "format": "bundle" } } } }),
            "backend_type_required",
        ),
        (json!({ "autoMaterializeProfileFiles": 1 }), "input"),
    ] {
        assert_eq!(code(mapped.clone()), expected, "{mapped}");
    }
}

#[test]
fn credentials_12_files_that_the_client_does_not_take_out_are_text() {
    let profile = json!({ "resources": { "files": [{ "path": "a",
        "resource": { "kind": "inline", "name": "n", "content": "a".repeat(16_385) } }] } });
    let mapped = |materialise: bool| json!({ "backend": { "profile": profile }, "autoMaterializeProfileFiles": materialise });
    assert_eq!(code(mapped(true)), "taken");
    assert_eq!(code(mapped(false)), "JSON_BOUND_VIOLATION");
    let input = read(json!({ "profile": {} })).unwrap();
    let checked = check_mapped(
        &mapping(),
        &input,
        json!({ "autoMaterializeProfileFiles": false }),
        None,
    );
    assert!(!checked.unwrap().materialise_files);
    let escapes = json!({ "resources": { "files": [{ "path": "../x",
        "resource": { "kind": "inline", "name": "n", "content": "" } }] } });
    assert_eq!(
        code(json!({ "backend": { "profile": escapes } })),
        "FILE_MOUNT_PATH_INVALID"
    );
}

#[test]
fn credentials_3_5_a_stored_login_is_granted_not_hidden_and_only_for_a_subscription() {
    let profile = |source: &str| json!({ "harness": "codex", "model": { "metadata": { "credentialSource": source } } });
    let mapped = |source: &str, secrets: Value, env: Value| {
        let login = json!({ "account": "a", "secretEnv": "SEAT", "format": "bundle" });
        json!({
            "backend": { "type": "codex", "profile": profile(source), "model": { "cliAuth": login } },
            "secrets": secrets, "env": env,
        })
    };
    let verdict =
        |asked: &str, mapped: Value| code_of(json!({ "profile": profile(asked) }), mapped, None);
    let granted = || json!(["SEAT"]);
    assert_eq!(
        verdict("subscription", mapped("subscription", granted(), json!({}))),
        "taken"
    );
    assert_eq!(
        verdict("subscription", mapped("subscription", json!([]), json!({}))),
        "credentials_grant_missing"
    );
    assert_eq!(
        verdict(
            "subscription",
            mapped("subscription", granted(), json!({ "SEAT": "x" }))
        ),
        "credentials_shadowed"
    );
    assert_eq!(
        verdict("managed", mapped("subscription", granted(), json!({}))),
        "credential_source_changed"
    );
    let mut named = mapped("subscription", granted(), json!({}));
    named["backend"].as_object_mut().unwrap().remove("profile");
    assert_eq!(
        verdict("subscription", named),
        "credentials_intent_required"
    );
}

#[test]
fn provider_3_5_the_receipt_of_credentials_is_what_was_selected() {
    let selected = json!({ "apiKeyEnv": "K", "baseUrl": "https://h.example" });
    let mapped = |receipt: &Value| json!({ "metadata": { "modelCredentials": receipt } });
    let verdict = |receipt: &Value, selected: Option<&Value>| {
        code_of(json!({ "profile": {} }), mapped(receipt), selected)
    };
    assert_eq!(verdict(&selected, Some(&selected)), "taken");
    assert_eq!(verdict(&selected, None), "credentials_metadata_reserved");
    assert_eq!(
        verdict(&json!({}), Some(&selected)),
        "credentials_metadata_reserved"
    );
}
