use serde_json::{Map, Value, json};

use super::super::same_create;
use super::read;

fn code(input: Value) -> &'static str {
    read(input).map_or_else(|refusal| refusal.code(), |_| "taken")
}

/// A create with these fields besides its profile.
fn with(fields: Value) -> Value {
    let mut input = json!({ "profile": { "name": "w" } });
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

#[test]
fn provider_3_3_each_field_has_its_code() {
    for (fields, expected) in [
        (json!({ "profile": 5 }), "profile"),
        (json!({ "profile": { "nickname": "n" } }), "profile"),
        (json!({ "profile": " x" }), "profile"),
        (json!({ "region": "eu", "zone": 1 }), "unknown-field"),
        (
            json!({ "egressPolicy": { "mode": "open" } }),
            "unknown-field",
        ),
        (json!({ "requestedId": "x" }), "unknown-field"),
        (json!({ "resources": { "vcpu": 1 } }), "resources"),
        (json!({ "resources": { "cpu": 1.5 } }), "resources"),
        (json!({ "resources": [] }), "resources"),
        (
            json!({ "resources": { "providerOptions": { "x": 1 } } }),
            "provider-options",
        ),
        (json!({ "workspace": { "branch": "x" } }), "workspace"),
        (json!({ "workspace": { "image": "" } }), "workspace"),
        (json!({ "workspace": { "cwd": "a" } }), "workspace"),
        (
            json!({ "workspace": { "cwd": { "base": "home", "path": "a" } } }),
            "workspace",
        ),
        (
            json!({ "workspace": { "providerOptions": { "x": 1 } } }),
            "provider-options",
        ),
        (
            json!({ "workspace": { "providerOptions": [] } }),
            "provider-options",
        ),
        (json!({ "providerOptions": { "x": 1 } }), "provider-options"),
        (json!({ "providerOptions": null }), "provider-options"),
        (json!({ "secrets": "all" }), "secrets"),
        (json!({ "secrets": ["A", ""] }), "secrets"),
        (json!({ "metadata": [] }), "metadata"),
        (
            json!({ "metadata": { "a": "x".repeat(16_385) } }),
            "metadata",
        ),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "n".repeat(16_385) }), "name"),
        (json!({ "backend": "codex " }), "backend"),
        (json!({ "env": { "A": 1 } }), "env"),
        (json!({ "env": { " A": "1" } }), "env"),
        (json!({ "idempotencyKey": "" }), "idempotency-key"),
        (json!({ "billingOwner": "b".repeat(513) }), "billing-owner"),
        (json!({ "egress": { "mode": "permissive" } }), "egress"),
        (
            json!({ "egress": { "mode": "strict", "includeImplicitDomains": true } }),
            "egress",
        ),
        (json!({ "runtimeAttachments": {} }), "attachment_invalid"),
        (
            json!({ "runtimeAttachments": { "mcp": { "a": { "enabled": false } } } }),
            "attachment_disabled",
        ),
    ] {
        assert_eq!(code(with(fields.clone())), expected, "{fields}");
    }
    assert_eq!(code(json!([])), "input");
    assert_eq!(code(json!({})), "profile");
    assert_eq!(code(json!({ "profile": "catalog/worker" })), "taken");
}

#[test]
fn provider_3_1_a_workspace_is_bounded_as_a_whole() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let with_levels = |levels: usize| {
        let deep = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        code(with(json!({ "workspace": { "checkpoint": {
            "checkpointId": "c", "provider": "p", "idempotencyKey": "k", "requestDigest": digest,
            "createdAt": "2026-09-01T10:00:00.000Z", "metadata": { "a": deep }, "source": {
                "runId": "r", "provider": "p", "environmentId": "e", "sessionId": "s", "executionId": "x",
                "requestDigest": digest,
            },
        } } })))
    };
    assert_eq!(with_levels(13), "taken");
    assert_eq!(with_levels(14), "workspace");
}

#[test]
fn core_7_secrets_with_values_are_refused() {
    let refusal = read(with(json!({ "secrets": { "A": "canary" } }))).unwrap_err();
    assert_eq!(refusal.code(), "inline-secrets");
    assert!(!format!("{refusal} {refusal:?}").contains("canary"));
}

#[test]
fn core_7_nothing_is_rounded_and_no_list_is_given_that_binds_nothing() {
    assert_eq!(
        code(with(json!({ "resources": { "diskMb": 1500 } }))),
        "resources"
    );
    assert_eq!(
        code(with(json!({ "resources": { "diskMb": 1025 } }))),
        "resources"
    );
    assert_eq!(
        code(with(json!({ "resources": { "diskMb": 1024 } }))),
        "taken"
    );
    let open = json!({ "egress": { "mode": "open", "allowDomains": ["a"] } });
    assert_eq!(code(with(open)), "egress");
}

#[test]
fn core_7_2_a_workspace_has_one_origin() {
    let workspace = |workspace: Value| {
        let refusal = read(with(json!({ "workspace": workspace }))).unwrap_err();
        assert_eq!(refusal.code(), "workspace");
        refusal.path()
    };
    assert_eq!(
        workspace(json!({ "environment": "u", "image": "i" })),
        "/workspace/image"
    );
    assert_eq!(workspace(json!({ "gitRef": "main" })), "/workspace/gitRef");
    let other = json!({ "repoUrl": "https://h/r", "checkpoint": checkpoint("q") });
    assert_eq!(workspace(other), "/workspace/checkpoint/provider");
    let both = json!({ "repoUrl": "https://h/r", "checkpoint": checkpoint("p") });
    assert_eq!(workspace(both), "/workspace/checkpoint");
    assert_eq!(
        code(with(
            json!({ "workspace": { "checkpoint": checkpoint("p") } })
        )),
        "taken"
    );
}

/// A checkpoint of the provider `p`, whose own field says `provider`.
fn checkpoint(provider: &str) -> Value {
    let digest = format!("sha256:{}", "1".repeat(64));
    json!({
        "checkpointId": "c", "provider": provider, "idempotencyKey": "k", "requestDigest": digest,
        "createdAt": "2026-09-01T10:00:00.000Z",
        "source": {
            "runId": "r", "provider": "p", "environmentId": "e", "sessionId": "s", "executionId": "x",
            "requestDigest": digest,
        },
    })
}

#[test]
fn core_7_6_the_digest_is_that_of_everything_but_the_key() {
    let digest = |fields: Value| read(with(fields)).unwrap().digest();
    let plain = digest(json!({}));
    assert_eq!(plain, digest(json!({ "idempotencyKey": "k1" })));
    assert_eq!(plain, digest(json!({ "idempotencyKey": "k2" })));
    assert_eq!(
        digest(json!({ "metadata": { "z": 1, "a": 2 } })),
        digest(json!({ "metadata": { "a": 2, "z": 1 } }))
    );
    let domains =
        |list: Value| digest(json!({ "egress": { "mode": "strict", "allowDomains": list } }));
    assert_ne!(domains(json!(["a", "b"])), domains(json!(["b", "a"])));
    assert_ne!(plain, digest(json!({ "resources": {} })));
    let url =
        |url: &str| digest(json!({ "runtimeAttachments": { "mcp": { "a": { "url": url } } } }));
    assert_ne!(url("https://a.example"), url("https://b.example"));
    assert_ne!(
        digest(json!({ "env": { "A": "1" } })),
        digest(json!({ "env": { "A": "2" } }))
    );
    assert_eq!(same_create(plain, plain), Ok(()));
    let conflict = same_create(plain, digest(json!({ "name": "n" }))).unwrap_err();
    assert_eq!(conflict.code(), "idempotency-conflict");
}

#[test]
fn no_refusal_of_a_create_holds_a_value() {
    let many: Map<String, Value> = (0..257)
        .map(|n| (format!("K{n}"), "canary".into()))
        .collect();
    for fields in [
        json!({ "name": "canary".repeat(4_000) }),
        json!({ "env": many }),
        json!({ "env": { "canary one": 1 } }),
        json!({ "egress": { "mode": "canary" } }),
        json!({ "metadata": { "a": "canary".repeat(4_000) } }),
        json!({ "profile": { "harness": "canary" } }),
        json!({ "workspace": { "cwd": { "base": "repository", "path": "/canary" } } }),
        json!({ "secrets": ["canary "] }),
    ] {
        let refusal = read(with(fields)).unwrap_err();
        let text = format!("{refusal} {refusal:?} {}", refusal.path());
        assert!(!text.contains("canary"), "{text}");
    }
}
