use serde_json::{Value, json};

use super::read;
use crate::contract::from_value;
use crate::contract::types::{CreateSandbox, SentBackend};

fn code(block: Value) -> &'static str {
    read(block).map_or_else(|refusal| refusal.code(), |_| "taken")
}

fn login(format: &str) -> Value {
    json!({ "account": "a", "secretEnv": "SEAT", "format": format })
}

fn profile(source: Value) -> Value {
    json!({ "harness": "claude-code", "model": { "metadata": { "credentialSource": source } } })
}

#[test]
fn core_5_an_unknown_field_is_refused_at_every_level_and_all_are_named_sorted() {
    for (block, names) in [
        (json!({ "zeta": 1, "sudo": true }), vec!["sudo", "zeta"]),
        (json!({ "model": { "secretEnv": "T" } }), vec!["secretEnv"]),
        (
            json!({ "authFiles": [{ "path": "a", "content": "", "owner": "r" }] }),
            vec!["owner"],
        ),
        (json!({ "server": { "tls": true } }), vec!["tls"]),
        (json!({ "interactions": { "a.b": true } }), vec!["a.b"]),
        (json!({ "metadata": { "traceId": "x" } }), vec!["traceId"]),
        (
            json!({ "type": "codex", "cliAuth": { "account": "a", "secretEnv": "S", "format": "bundle", "token": "t" } }),
            vec!["token"],
        ),
    ] {
        match read(block) {
            Err(super::Refusal::Document(refused)) => assert_eq!(refused.unknown_fields(), names),
            other => panic!("{names:?}: {other:?}"),
        }
    }
}

#[test]
fn core_5_bounds_of_a_block_are_kept() {
    let traces = |count: usize, key: usize, value: usize| {
        let attributes: serde_json::Map<String, Value> = (0..count)
            .map(|n| {
                (
                    format!("{n:02}{}", "k".repeat(key - 2)),
                    "v".repeat(value).into(),
                )
            })
            .collect();
        json!({ "metadata": { "traceAttributes": attributes } })
    };
    assert_eq!(code(traces(32, 128, 1024)), "taken");
    assert_eq!(
        code(json!({ "metadata": { "traceAttributes": { "": "" } } })),
        "taken"
    );
    for block in [traces(33, 2, 1), traces(1, 129, 1), traces(1, 2, 1025)] {
        assert_eq!(code(block), "VALIDATION_ERROR");
    }
    for block in [
        json!({ "model": { "provider": "" } }),
        json!({ "model": { "model": 1 } }),
        json!({ "apiKey": "" }),
        json!({ "apiKeyEnv": "" }),
        json!({ "maxThinkingTokens": -1 }),
        json!({ "mode": "shell" }),
        json!({ "authMode": "device-code" }),
        json!({ "authFiles": {} }),
        json!({ "authFiles": [{ "path": "", "content": "x" }] }),
        json!({ "authFiles": [{ "path": "a" }] }),
        json!({ "authFiles": [{ "path": "a", "content": "x", "mode": 0.5 }] }),
        json!({ "server": { "port": 0 } }),
        json!({ "server": { "port": 65_536 } }),
        json!({ "server": { "hostname": "" } }),
        json!({ "metadata": { "containerType": "" } }),
        json!({ "runtimeSecrets": { "A": "" } }),
        json!({ "runtimeSecrets": { " A": "v" } }),
        json!({ "type": null }),
    ] {
        assert_eq!(code(block.clone()), "VALIDATION_ERROR", "{block}");
    }
    assert_eq!(
        code(json!({ "type": "", "authFiles": [{ "path": "a", "content": "", "mode": -1 }] })),
        "taken"
    );
    let secrets: serde_json::Map<String, Value> =
        (0..257).map(|n| (format!("S{n}"), "v".into())).collect();
    assert_eq!(
        code(json!({ "runtimeSecrets": secrets })),
        "VALIDATION_ERROR"
    );
}

#[test]
fn core_5_2_a_profile_that_says_managed_takes_no_native_login() {
    for model in [
        json!({ "authFiles": [] }),
        json!({ "authMode": "oauth" }),
        json!({ "cliAuth": login("token") }),
    ] {
        let block =
            json!({ "type": "claude-code", "profile": profile(json!("managed")), "model": model });
        assert_eq!(code(block), "managed_profile_native_credentials");
    }
    let key = json!({ "profile": profile(json!("managed")), "model": { "authMode": "api-key", "apiKeyEnv": "K" } });
    assert_eq!(code(key), "taken");
    let unmarked = json!({ "profile": {}, "model": { "authMode": "oauth", "authFiles": [] } });
    assert_eq!(code(unmarked), "taken");
}

#[test]
fn core_5_2_a_stored_login_needs_type_subscription_harness_and_format() {
    let block = |backend: Value, profile: Value, model: Value| {
        let mut block = json!({ "model": model });
        for (key, value) in [("type", backend), ("profile", profile)] {
            if !value.is_null() {
                block[key] = value;
            }
        }
        code(block)
    };
    let token = || json!({ "cliAuth": login("token") });
    let seat = || profile(json!("subscription"));
    assert_eq!(block(json!("claude-code"), seat(), token()), "taken");
    assert_eq!(block(json!("claude-code"), Value::Null, token()), "taken");
    assert_eq!(
        block(Value::Null, Value::Null, token()),
        "backend_type_required"
    );
    assert_eq!(
        block(
            json!("claude-code"),
            json!({ "harness": "claude-code" }),
            token()
        ),
        "credentials_intent_required"
    );
    assert_eq!(
        block(json!("opencode"), seat(), token()),
        "credentials_harness_mismatch"
    );
    for (backend, format) in [
        ("codex", "token"),
        ("claude-code", "files"),
        ("opencode", "bundle"),
        ("other", "token"),
    ] {
        let model = json!({ "cliAuth": login(format) });
        assert_eq!(
            block(json!(backend), Value::Null, model),
            "credentials_channel_unsupported"
        );
    }
    for field in ["apiKey", "apiKeyEnv", "baseUrl"] {
        let model = json!({ "cliAuth": login("bundle"), "authMode": "oauth", field: "x" });
        assert_eq!(
            block(json!("codex"), Value::Null, model),
            "credentials_mixed_auth"
        );
    }
    let files = json!({ "cliAuth": login("bundle"), "authFiles": [] });
    assert_eq!(
        block(json!("codex"), Value::Null, files),
        "credentials_mixed_auth"
    );
    for name in ["lower", "1KEY", "KEY-NAME", ""] {
        let model = json!({ "cliAuth": { "account": "a", "secretEnv": name, "format": "bundle" } });
        assert_eq!(
            block(json!("codex"), Value::Null, model),
            "VALIDATION_ERROR",
            "{name}"
        );
    }
}

#[test]
fn core_5_2_a_malformed_credential_intent_is_refused() {
    for source in [json!("unknown"), json!(null), json!(false), json!({})] {
        assert_eq!(
            code(json!({ "profile": profile(source) })),
            "credential_intent_invalid"
        );
    }
}

#[test]
fn core_5_2_the_whole_block_is_bounded_last_and_payload_is_measured_in_bytes() {
    let file = |content: usize| {
        json!({ "profile": { "resources": { "files": [{ "path": "a",
            "resource": { "kind": "inline", "name": "n", "content": "a".repeat(content) } }] } } })
    };
    assert_eq!(code(file(4 << 20)), "taken");
    assert_eq!(code(file((4 << 20) + 1)), "JSON_BOUND_VIOLATION");
    let prompt = json!({ "prompt": { "systemPrompt": "a".repeat(16_385) } });
    assert_eq!(code(json!({ "profile": prompt })), "JSON_BOUND_VIOLATION");
    let both = json!({ "profile": { "prompt": prompt["prompt"] }, "type": "codex", "cliAuth": login("token") });
    assert_eq!(code(both), "credentials_intent_required");
    let content = json!({ "authFiles": [{ "path": "a", "content": "a".repeat(16_385) }] });
    assert_eq!(code(content), "JSON_BOUND_VIOLATION");
}

#[test]
fn a_block_on_the_wire_has_a_plain_endpoint() {
    let sent =
        |url: &str| from_value::<SentBackend>(json!({ "model": { "baseUrl": url } })).unwrap();
    assert_eq!(sent("https://h.example/v1").rules(), Ok(()));
    for url in ["https://u:p@h", "ftp://h", "https://h?x=1", "https://"] {
        assert_eq!(
            sent(url).rules().unwrap_err().path(),
            "/model/baseUrl",
            "{url}"
        );
    }
    // A caller's own block leaves that to the wire.
    assert_eq!(code(json!({ "baseUrl": "h" })), "taken");
}

#[test]
fn what_a_block_refuses_names_its_path_in_a_create() {
    let create: CreateSandbox = from_value(
        json!({ "backend": { "type": "codex", "model": { "cliAuth": login("token") } } }),
    )
    .unwrap();
    let refused = create.rules().unwrap_err();
    assert_eq!(refused.path(), "/backend/model/cliAuth/format");
}

#[test]
fn core_5_no_refusal_of_a_block_holds_a_value() {
    for block in [
        json!({ "apiKey": "canary", "model": { "apiKey": "other" } }),
        json!({ "type": "canary", "cliAuth": login("token") }),
        json!({ "model": { "mode": "canary" } }),
        json!({ "profile": profile(json!("canary")) }),
        json!({ "runtimeSecrets": { "A": "canary".repeat(4_000) } }),
    ] {
        let refusal = read(block.clone()).unwrap_err();
        let text = format!("{refusal} {refusal:?} {}", refusal.path());
        assert!(!text.contains("canary"), "{text}");
    }
}
