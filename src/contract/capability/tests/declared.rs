//! The first stage: what the client, the backend and the configuration take away.

use super::*;
use crate::contract::from_value;
use crate::contract::types::{BackendCatalog, BackendEntry};

fn entry(capabilities: Value) -> BackendEntry {
    from_value(json!({ "type": "codex", "capabilities": capabilities })).unwrap()
}

fn for_backend(backend: Backend<'_>) -> ProviderCapabilities {
    declared(
        &ceiling(Some("codex"), false),
        &ClientSurface::ALL,
        backend,
        false,
    )
    .unwrap()
}

#[test]
fn core_9_3_kinds_are_those_that_the_backend_lists_in_declared_order() {
    for (listed, kinds) in [
        (
            json!(["plan", "question"]),
            Some(json!(["question", "plan"])),
        ),
        (json!(["dance", "plan"]), Some(json!(["plan"]))),
        (json!([]), None),
        (json!(["dance"]), None),
    ] {
        let entry = entry(json!({ "interactions": listed }));
        let provider = for_backend(Backend::Listed(&entry));
        let found = provider
            .document()
            .interactions
            .as_ref()
            .map(|block| json!(block.kinds));
        assert_eq!(found, kinds, "{listed}");
    }
    for backend in [Backend::Unlisted, Backend::Listed(&entry(json!({})))] {
        assert!(for_backend(backend).document().interactions.is_none());
    }
    let catalog: BackendCatalog =
        from_value(json!({ "backends": [{ "type": "codex" }], "timestamp": "" })).unwrap();
    assert!(matches!(
        Backend::of(&catalog, "codex"),
        Backend::Listed(entry) if entry.type_ == "codex"
    ));
    assert!(matches!(Backend::of(&catalog, "pi"), Backend::Unlisted));
}

#[test]
fn provider_5_4_attachments_survive_only_when_the_entry_takes_them() {
    let attaches = |backend: Backend<'_>| {
        let provider = for_backend(backend);
        let create = provider.document().create.clone().unwrap();
        create.runtime_attachments.is_some()
    };
    assert!(attaches(Backend::NotChosen));
    assert!(attaches(Backend::Listed(&entry(
        json!({ "runtimeAttachments": { "mcp": true } })
    ))));
    for support in [
        json!({}),
        json!({ "mcp": false }),
        json!({ "mcp": {} }),
        json!(true),
    ] {
        let entry = entry(json!({ "runtimeAttachments": support }));
        assert!(!attaches(Backend::Listed(&entry)), "{support}");
    }
    assert!(!attaches(Backend::Unlisted));
    let mut document = ceiling(None, false);
    let create = document.create.as_mut().unwrap();
    (create.egress, create.billing_owner) = (None, None);
    create.workspace_checkpoint = None;
    let alone = declared(&document, &ClientSurface::ALL, Backend::Unlisted, false).unwrap();
    assert!(alone.document().create.is_none(), "an empty block is none");
}

#[test]
fn provider_2_exact_processes_are_advertised_only_by_a_provider_made_for_them() {
    let of = |document: &Capabilities, made| {
        declared(document, &ClientSurface::ALL, Backend::NotChosen, made)
    };
    let plain = ceiling(None, false);
    assert!(
        of(&plain, false)
            .unwrap()
            .document()
            .exact_process
            .is_none()
    );
    let made = of(&plain, true).unwrap().document().exact_process.clone();
    assert_eq!(
        serde_json::to_value(&made).unwrap(),
        json!({ "egress": ["blocked", "strict"] })
    );
    let advertised = Capabilities {
        exact_process: made,
        ..plain
    };
    let refused = of(&advertised, false).unwrap_err();
    assert_eq!(refused.path(), "/exactProcess");
}

#[test]
fn branching_4_nothing_but_a_complete_surface_raises_the_flags() {
    let branching = |client: &ClientSurface| claims(provider(client).document());
    let five = set(&[
        "branching.checkpoint",
        "branching.fork",
        "branching.retrySafe",
        "branching.lookup",
        "branching.cleanup",
    ]);
    assert!(five.is_subset(&branching(&ClientSurface::ALL)));
    type Change = fn(&mut ClientSurface);
    let changes: [Change; 7] = [
        |it| it.get = false,
        |it| it.list = false,
        |it| it.instance.as_mut().unwrap().checkpoints.snapshot = false,
        |it| it.instance.as_mut().unwrap().checkpoints.list = false,
        |it| it.instance.as_mut().unwrap().checkpoints.delete = false,
        |it| it.instance.as_mut().unwrap().checkpoints.lookup = false,
        |it| it.instance = None,
    ];
    for change in changes {
        let mut client = ClientSurface::ALL;
        change(&mut client);
        assert!(five.is_disjoint(&branching(&client)), "{client:?}");
    }
    let mut confident = ceiling(None, true);
    confident.branching.confidential = Some(true);
    let provider = declared(&confident, &ClientSurface::ALL, Backend::NotChosen, false).unwrap();
    assert_eq!(provider.document().branching.confidential, None);
}

#[test]
fn provider_5_4_no_operation_stands_behind_git_lists_messages_usage_and_transfers() {
    let mut document = ceiling(None, false);
    document.sessions.list = true;
    document.sessions.messages = true;
    document.workspace.git = true;
    document.usage = true;
    let mut value = serde_json::to_value(&document).unwrap();
    value["nativeContinuation"] = json!({ "atomicBoundary": true, "requestIdempotency": true });
    value["contextTransfer"] =
        json!({ "freshSession": true, "requestIdempotency": true, "lookup": true });
    let document: Capabilities = from_value(value).unwrap();
    let declared = declared(&document, &ClientSurface::ALL, Backend::NotChosen, false).unwrap();
    let plain = provider(&ClientSurface {
        list: false,
        ..ClientSurface::ALL
    });
    let without = |claims: BTreeSet<String>| -> BTreeSet<String> {
        claims
            .into_iter()
            .filter(|claim| !claim.starts_with("profile.systemPrompt"))
            .collect()
    };
    assert_eq!(
        without(claims(declared.document())),
        without(claims(plain.document()))
    );
}
