use serde_json::{Value, json};

use super::super::read;
use super::Mapping;

fn mapping() -> Mapping {
    Mapping {
        provider: "tangle-sandbox".parse().unwrap(),
        default_backend: None,
    }
}

fn code(input: Value) -> &'static str {
    let mapped = mapping().map(&read(input).unwrap());
    mapped.map_or_else(|refusal| refusal.code(), |_| "taken")
}

fn request(input: Value) -> Value {
    json!(mapping().map(&read(input).unwrap()).unwrap())
}

#[test]
fn provider_3_3_the_backend_is_that_of_the_call_the_provider_the_profile_or_opencode() {
    let own = Mapping {
        default_backend: Some("pi".parse().unwrap()),
        ..mapping()
    };
    for (profile, backend, expected, expected_default) in [
        (json!({}), None, "opencode", "pi"),
        (json!({ "harness": "codex" }), None, "codex", "pi"),
        (
            json!({ "harness": "codex" }),
            Some("claude-code"),
            "claude-code",
            "claude-code",
        ),
    ] {
        let mut input = json!({ "profile": profile });
        if let Some(backend) = backend {
            input["backend"] = backend.into();
        }
        let input = read(input).unwrap();
        assert_eq!(mapping().backend(&input), expected);
        assert_eq!(own.backend(&input), expected_default);
    }
    let reference = read(json!({ "profile": "catalog/x" })).unwrap();
    assert_eq!(mapping().backend(&reference), "opencode");
}

#[test]
fn core_7_2_a_working_directory_is_normalised_and_stands_in_the_repository() {
    let cwd = |base: &str, path: &str| json!({ "profile": {}, "workspace": { "cwd": { "base": base, "path": path } } });
    assert_eq!(request(cwd("repository", "./a//b/."))["cwd"], "a/b");
    assert_eq!(request(cwd("repository", "."))["cwd"], ".");
    assert_eq!(code(cwd("host", "/w")), "workspace-cwd-base");
}

#[test]
fn provider_3_3_what_is_absent_stays_absent() {
    let empty = json!({
        "profile": {}, "workspace": { "providerOptions": {} }, "resources": { "providerOptions": {} },
        "providerOptions": {}, "metadata": {},
    });
    let bare = json!({ "backend": { "type": "opencode", "profile": {} } });
    assert_eq!(request(empty), bare);
    let lists = json!({ "profile": {}, "env": {}, "secrets": [], "egress": { "mode": "strict", "allowDomains": [] } });
    assert_eq!(
        request(lists),
        json!({
            "backend": bare["backend"], "env": {}, "secrets": [],
            "egressPolicy": { "mode": "strict", "allowDomains": [] },
        })
    );
}

#[test]
fn provider_3_3_the_markers_are_the_providers() {
    for key in ["modelCredentials", "tangleNativeResumeCheckpointId"] {
        let input = json!({ "profile": {}, "metadata": { key: "x" } });
        assert_eq!(code(input), "reserved-metadata");
    }
}

#[test]
fn core_7_2_a_checkpoint_is_restored_from_its_own_provider_only() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let input = |provider: &str| {
        json!({ "profile": {}, "workspace": { "checkpoint": {
            "checkpointId": "snap-1", "provider": provider, "idempotencyKey": "k", "requestDigest": digest,
            "createdAt": "2026-09-01T10:00:00.000Z", "source": {
                "runId": "r", "provider": provider, "environmentId": "sbx-0", "sessionId": "s",
                "executionId": "x", "requestDigest": digest,
            },
        } } })
    };
    let restored = request(input("tangle-sandbox"));
    assert_eq!(restored["fromSnapshot"], "snap-1");
    assert_eq!(restored["fromSandboxId"], "sbx-0");
    assert_eq!(
        restored["metadata"],
        json!({ "tangleNativeResumeCheckpointId": "snap-1" })
    );
    assert_eq!(code(input("other")), "workspace");
}

#[test]
fn core_7_1_a_profile_that_is_only_named_is_refused() {
    assert_eq!(code(json!({ "profile": "catalog/x" })), "profile-reference");
}

#[test]
fn credentials_3_2_intent_comes_before_markers_and_markers_before_the_profile_itself() {
    let marked = |profile: Value| {
        code(json!({ "profile": profile, "metadata": { "modelCredentials": null } }))
    };
    let of = |source: &str| json!({ "model": { "metadata": { "credentialSource": source } } });
    assert_eq!(marked(of("other")), "credential_intent_invalid");
    assert_eq!(marked(of("subscription")), "reserved-metadata");
    assert_eq!(marked(json!("catalog/x")), "reserved-metadata");
    let without_credentials = json!({ "profile": of("subscription") });
    assert_eq!(code(without_credentials), "credentials_missing");
    assert_eq!(code(json!({ "profile": of("managed") })), "taken");
}

#[test]
fn credentials_1_a_malformed_intent_stops_a_create() {
    let profile = json!({ "model": { "metadata": { "credentialSource": null } } });
    assert_eq!(
        code(json!({ "profile": profile })),
        "credential_intent_invalid"
    );
}

#[test]
fn core_3_13_an_inline_file_stays_in_the_workspace_whatever_fails() {
    let file = |path: &str, resource: Value| json!({ "profile": { "resources": { "failOnError": false, "files": [{ "path": path, "resource": resource }] } } });
    let inline = || json!({ "kind": "inline", "name": "n", "content": "c" });
    assert_eq!(code(file("../x", inline())), "FILE_MOUNT_PATH_INVALID");
    assert_eq!(
        code(file(".git/config", inline())),
        "FILE_MOUNT_PATH_RESERVED"
    );
    assert_eq!(code(file("a/b", inline())), "taken");
    let github = json!({ "kind": "github", "path": "p" });
    assert_eq!(code(file("../x", github)), "taken");
}
