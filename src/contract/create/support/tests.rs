use serde_json::{Value, json};

use super::super::{Mapping, read};
use super::supported;
use crate::contract::capability::ceiling;

fn code(
    input: Value,
    change: impl FnOnce(&mut crate::contract::capability::Capabilities),
) -> &'static str {
    let mapping = Mapping {
        provider: "tangle-sandbox".parse().unwrap(),
        default_backend: None,
    };
    let input = read(input).unwrap();
    let request = mapping.map(&input).unwrap();
    let mut declared = ceiling(None, false);
    change(&mut declared);
    supported(&input, &request, &declared).map_or_else(|refusal| refusal.code(), |()| "taken")
}

#[test]
fn provider_3_1_attachments_need_a_provider_that_takes_them() {
    let input = || json!({ "profile": {}, "runtimeAttachments": { "mcp": {} } });
    assert_eq!(code(input(), |_| ()), "taken");
    assert_eq!(
        code(input(), |declared| declared.create = None),
        "attachments-unsupported"
    );
    let without = |declared: &mut crate::contract::capability::Capabilities| {
        declared.create.as_mut().unwrap().runtime_attachments = None;
    };
    assert_eq!(code(input(), without), "attachments-unsupported");
    assert_eq!(code(json!({ "profile": {} }), without), "taken");
}

#[test]
fn provider_3_1_a_checkpoint_needs_a_provider_that_restores_it() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let input = || {
        json!({ "profile": {}, "workspace": { "checkpoint": {
            "checkpointId": "c", "provider": "tangle-sandbox", "idempotencyKey": "k", "requestDigest": digest,
            "createdAt": "2026-09-01T10:00:00Z", "source": {
                "runId": "r", "provider": "tangle-sandbox", "environmentId": "e", "sessionId": "s",
                "executionId": "x", "requestDigest": digest,
            },
        } } })
    };
    assert_eq!(code(input(), |_| ()), "taken");
    for claim in [None, Some(false)] {
        let found = code(input(), |declared| {
            declared.create.as_mut().unwrap().workspace_checkpoint = claim;
        });
        assert_eq!(found, "checkpoint-unsupported");
    }
}
