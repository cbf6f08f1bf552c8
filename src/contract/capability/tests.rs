//! The gates one by one, and the two stages against each other.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::contract::types::{BackendCatalog, BackendEntry};
use crate::contract::{from_value, verify};

/// A document that proves everything.
fn complete() -> Value {
    json!({
        "schema": 1, "agentInterface": "1", "sidecarVersion": "1", "image": "i@sha256:0",
        "dispatch": { "runControlRef": true, "executionIdOnAdmission": true },
        "cancel": { "canonicalRunCancellation": true, "digestBound": true, "idempotent": true },
        "runs": { "executionScopedStatus": true, "eventReplay": true },
        "interactions": { "responseDedupe": true },
        "interactiveAgent": {
            "start": true, "status": true, "attach": true, "control": true, "sendPrompt": true,
            "stop": true,
        },
    })
}

fn provider(client: &ClientSurface) -> ProviderCapabilities {
    let document = ceiling(Some("codex"), client.manages_branches());
    declared(&document, client, Backend::NotChosen, false).unwrap()
}

fn environment(document: &Value) -> EnvironmentCapabilities {
    derive(
        &provider(&ClientSurface::ALL),
        &InstanceSurface::ALL,
        &ObservationSources::ALL,
        Disclosure::of(document),
    )
}

/// Every claim of a document: the pointers of its flags that are true and of the texts in its lists.
fn claims(document: &Capabilities) -> BTreeSet<String> {
    fn collect(value: &Value, at: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(key, value)| collect(value, &format!("{at}.{key}"), found)),
            Value::Array(items) => items
                .iter()
                .for_each(|item| collect(item, &format!("{at}[]"), found)),
            Value::Bool(true) => {
                found.insert(at[1..].to_owned());
            }
            Value::String(text) => {
                found.insert(format!("{}={text}", &at[1..]));
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    collect(&serde_json::to_value(document).unwrap(), "", &mut found);
    found
}

/// What `less` lacks of `more`, by block, and the operations that go with it; it has nothing besides.
fn lost(more: &EnvironmentCapabilities, less: &EnvironmentCapabilities) -> BTreeSet<String> {
    let (all, left) = (claims(more.document()), claims(less.document()));
    assert!(left.is_subset(&all), "{:?}", left.difference(&all));
    let blocks = [
        "retainedControl",
        "interactions",
        "interactiveAgent",
        "interactiveTerminal",
        "branching",
    ];
    let mut gone: BTreeSet<String> = all
        .difference(&left)
        .map(|claim| {
            let block = claim.split('.').next().unwrap();
            if blocks.contains(&block) {
                assert!(
                    !left
                        .iter()
                        .any(|kept| kept.starts_with(&format!("{block}."))),
                    "a part of {block} is left"
                );
                block.to_owned()
            } else {
                claim.clone()
            }
        })
        .collect();
    let (all, left) = (more.operations(), less.operations());
    assert!(left.iter().all(|operation| all.contains(operation)));
    gone.extend(
        all.iter()
            .filter(|operation| !left.contains(*operation))
            .map(|operation| format!("{}()", operation.name())),
    );
    gone
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const RETAINED: &[&str] = &[
    "sessions.continue",
    "retainedControl",
    "session.cancelRun()",
];
const DISPATCH: &[&str] = &[
    "streaming.detach",
    "streaming.turnIdempotency",
    "dispatch()",
];
const REPLAY: &[&str] = &["streaming.replay"];
const ANSWERS: &[&str] = &[
    "interactions",
    "respondToInteraction()",
    "session.respondToInteraction()",
];
const DRIVES: &[&str] = &["interactiveAgent", "startInteractive()", "interactive()"];
const TERMINALS: &[&str] = &["interactiveTerminal", "attachTerminal()", "terminal()"];

#[test]
fn provider_5_3_each_flag_of_the_table_takes_exactly_its_claims() {
    let whole = environment(&complete());
    let rows: [(&str, &[&[&str]]); 14] = [
        ("/dispatch/runControlRef", &[DISPATCH, RETAINED]),
        ("/dispatch/executionIdOnAdmission", &[DISPATCH, RETAINED]),
        ("/cancel/canonicalRunCancellation", &[RETAINED]),
        ("/cancel/digestBound", &[RETAINED]),
        ("/cancel/idempotent", &[RETAINED]),
        ("/runs/eventReplay", &[REPLAY, RETAINED]),
        ("/runs/executionScopedStatus", &[RETAINED]),
        ("/interactions/responseDedupe", &[ANSWERS]),
        ("/interactiveAgent/start", &[DRIVES]),
        ("/interactiveAgent/status", &[DRIVES]),
        ("/interactiveAgent/attach", &[DRIVES]),
        ("/interactiveAgent/control", &[DRIVES]),
        ("/interactiveAgent/sendPrompt", &[DRIVES]),
        ("/interactiveAgent/stop", &[DRIVES]),
    ];
    for (flag, goes) in rows {
        for value in [json!(false), json!("true"), json!(1), json!(null)] {
            let mut document = complete();
            *document.pointer_mut(flag).unwrap() = value.clone();
            let found = lost(&whole, &environment(&document));
            assert_eq!(found, set(&goes.concat()), "{flag} = {value}");
        }
    }
    let gating: BTreeSet<&str> = crate::claims::ALL
        .iter()
        .flat_map(|(_, _, flags)| flags.iter().copied())
        .collect();
    assert_eq!(gating, rows.iter().map(|(flag, _)| *flag).collect());
}

#[test]
fn provider_5_3_the_flags_reported_beside_the_claim_gate_nothing() {
    let whole = environment(&complete());
    for flag in ["reattach", "input", "resize"] {
        let mut document = complete();
        document["interactiveAgent"][flag] = json!(false);
        document["novelty"] = json!({ "x": true });
        assert_eq!(environment(&document), whole, "{flag}");
    }
}

#[test]
fn provider_5_without_the_digest_bound_flag_detach_and_replay_and_both_methods_stay() {
    let mut document = complete();
    document["cancel"]
        .as_object_mut()
        .unwrap()
        .remove("digestBound");
    let environment = environment(&document);
    let (published, operations) = (environment.document(), environment.operations());
    assert!(published.streaming.detach && published.streaming.replay);
    assert!(operations.contains(Operation::Dispatch) && operations.contains(Operation::Session));
    assert!(published.retained_control.is_none() && !operations.contains(Operation::CancelRun));
}

#[test]
fn provider_5_4_each_operation_of_the_handle_takes_exactly_its_claims() {
    type Change = fn(&mut InstanceSurface);
    let session: Change = |it| it.session = None;
    let rows: [(&str, Change, &[&[&str]]); 14] = [
        (
            "dispatchPrompt",
            |it| it.dispatch_prompt = false,
            &[&["streaming.detach", "dispatch()"], RETAINED],
        ),
        (
            "session",
            session,
            &[
                &["streaming.detach", "dispatch()", "session()"],
                REPLAY,
                RETAINED,
                ANSWERS,
                DRIVES,
            ],
        ),
        (
            "cancelRun",
            |it| it.session.as_mut().unwrap().cancel_run = false,
            &[RETAINED],
        ),
        (
            "respondToInteraction",
            |it| it.session.as_mut().unwrap().respond_to_interaction = false,
            &[ANSWERS],
        ),
        (
            "interactive",
            |it| it.session.as_mut().unwrap().interactive = false,
            &[DRIVES],
        ),
        (
            "terminal attach",
            |it| it.terminals.as_mut().unwrap().attach = false,
            &[TERMINALS],
        ),
        (
            "terminal lookup",
            |it| it.terminals.as_mut().unwrap().get = false,
            &[TERMINALS, DRIVES],
        ),
        (
            "read",
            |it| it.read = false,
            &[&["workspace.read", "workspace.download", "read()"]],
        ),
        (
            "write",
            |it| it.write = false,
            &[&["workspace.write", "workspace.upload", "write()"]],
        ),
        (
            "exec",
            |it| it.exec = false,
            &[&["workspace.exec", "exec()"]],
        ),
        ("delete", |it| it.delete = false, &[&["destroy()"]]),
        (
            "resource usage",
            |it| it.resource_usage = false,
            &[&["observation.resourceUse"]],
        ),
        (
            "snapshots",
            |it| it.checkpoints.lookup = false,
            &[&["branching", "branching()"]],
        ),
        // Read before the derivation, never in it.
        ("capabilities", |it| it.capabilities = false, &[]),
    ];
    let whole = environment(&complete());
    for (name, change, goes) in rows {
        let mut instance = InstanceSurface::ALL;
        change(&mut instance);
        let less = derive(
            &provider(&ClientSurface::ALL),
            &instance,
            &ObservationSources::ALL,
            Disclosure::of(&complete()),
        );
        assert_eq!(lost(&whole, &less), set(&goes.concat()), "{name}");
    }
}

#[test]
fn provider_5_4_each_operation_of_the_client_takes_exactly_its_claims() {
    type Change = fn(&mut ClientSurface);
    let rows: [(&str, Change, &[&[&str]]); 5] = [
        (
            "get",
            |it| it.get = false,
            &[RETAINED, &["branching", "branching()"]],
        ),
        (
            "list",
            |it| it.list = false,
            &[&["branching", "branching()"]],
        ),
        (
            "describePlacement",
            |it| it.describe_placement = false,
            &[&["placement", "observation.placement", "placement()"]],
        ),
        (
            "usage",
            |it| it.usage = false,
            &[&["observation.accountUsage"]],
        ),
        (
            "subscription",
            |it| it.subscription = false,
            &[&["observation.accountUsage"]],
        ),
    ];
    let whole = environment(&complete());
    for (name, change, goes) in rows {
        let mut client = ClientSurface::ALL;
        change(&mut client);
        let less = derive(
            &provider(&client),
            &InstanceSurface::ALL,
            &ObservationSources::ALL,
            Disclosure::of(&complete()),
        );
        assert_eq!(lost(&whole, &less), set(&goes.concat()), "{name}");
    }
}

#[test]
fn observation_12_9_each_flag_has_its_source() {
    let whole = environment(&complete());
    let derive = |resource_usage, sources: ObservationSources| {
        let instance = InstanceSurface {
            resource_usage,
            ..InstanceSurface::ALL
        };
        let disclosed = Disclosure::of(&complete());
        derive(
            &provider(&ClientSurface::ALL),
            &instance,
            &sources,
            disclosed,
        )
    };
    let none = ObservationSources::default();
    assert_eq!(
        lost(&whole, &derive(false, none)),
        set(&[
            "observation.endpoint",
            "observation.resources",
            "observation.resourceUse",
            "observation.computeBilling",
        ])
    );
    assert_eq!(
        lost(&whole, &derive(true, none)),
        set(&["observation.endpoint", "observation.computeBilling"])
    );
}

#[test]
fn provider_5_2_handles_that_cannot_be_measured_leave_out_control_answers_and_the_interactive_agent()
 {
    let unmeasured = ClientSurface {
        instance: None,
        ..ClientSurface::ALL
    };
    let (all, less) = (provider(&ClientSurface::ALL), provider(&unmeasured));
    let (all, less) = (claims(all.document()), claims(less.document()));
    let gone: BTreeSet<&str> = all
        .difference(&less)
        .map(|claim| claim.split('.').next().unwrap())
        .collect();
    assert_eq!(
        gone,
        BTreeSet::from([
            "branching",
            "interactions",
            "interactiveAgent",
            "retainedControl",
            "sessions",
        ])
    );
    assert!(less.contains("streaming.detach") && less.contains("interactiveTerminal.attach"));
}

#[test]
fn provider_5_5_four_inputs_claim_nothing_and_the_workspace_stays() {
    let whole = environment(&complete());
    let instance = InstanceSurface::ALL;
    let blind = InstanceSurface {
        capabilities: false,
        ..instance
    };
    assert_eq!(
        Disclosure::ask(&blind, true),
        Err(ClaimsNothing::NoRead),
        "no request"
    );
    assert_eq!(
        Disclosure::ask(&instance, false),
        Err(ClaimsNothing::NotRunning),
        "no request"
    );
    assert_eq!(Disclosure::ask(&instance, true), Ok(()));
    assert_eq!(
        Disclosure::of(&Value::Null),
        ClaimsNothing::NoDocument.into()
    );
    for why in [
        ClaimsNothing::NoRead,
        ClaimsNothing::NotRunning,
        ClaimsNothing::NoDocument,
        ClaimsNothing::ReadFailed,
    ] {
        let disclosed = Disclosure::from(why);
        let provider = provider(&ClientSurface::ALL);
        let less = derive(&provider, &instance, &ObservationSources::ALL, disclosed);
        let goes = [&["session()"], DISPATCH, REPLAY, RETAINED, ANSWERS, DRIVES].concat();
        assert_eq!(lost(&whole, &less), set(&goes), "{why}");
        assert_eq!(less.claims_nothing(), Some(why));
        assert_eq!(why.is_warning(), why == ClaimsNothing::ReadFailed);
    }
}

#[test]
fn provider_5_5_a_document_with_one_flag_missing_is_not_one_of_the_four() {
    for document in [json!({}), json!([]), json!(7), json!({ "schema": 1 })] {
        assert_eq!(environment(&document).claims_nothing(), None, "{document}");
    }
}

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

/// A surface from the bits of a number.
fn surfaces(bits: u32) -> (ClientSurface, InstanceSurface, ObservationSources) {
    let on = |bit: u32| bits >> bit & 1 == 1;
    let instance = InstanceSurface {
        capabilities: true,
        dispatch_prompt: on(0),
        session: on(1).then(|| SessionSurface {
            cancel_run: on(2),
            respond_to_interaction: on(3),
            interactive: on(4),
        }),
        terminals: on(5).then(|| TerminalSurface {
            attach: on(6),
            get: on(7),
        }),
        read: on(8),
        write: on(9),
        exec: on(10),
        delete: on(11),
        resource_usage: on(12),
        checkpoints: CheckpointSurface {
            snapshot: on(13),
            list: on(13),
            delete: on(13),
            lookup: on(14),
        },
    };
    let client = ClientSurface {
        get: on(15),
        list: on(16),
        describe_placement: on(17),
        usage: on(18),
        subscription: on(18),
        instance: on(19).then_some(if on(20) {
            InstanceSurface::ALL
        } else {
            instance
        }),
    };
    let sources = ObservationSources {
        endpoint: on(21),
        requested_resources: on(22),
        priced_lease: on(23),
    };
    (client, instance, sources)
}

/// A deployment document with each flag as the draws say: mostly true, else absent or something that is not true.
fn deployment(draws: &[u8]) -> Value {
    let mut document = complete();
    let groups = [
        "dispatch",
        "cancel",
        "runs",
        "interactions",
        "interactiveAgent",
    ];
    let mut draws = draws.iter().copied().chain(std::iter::repeat(0));
    for group in groups {
        let flags: Vec<String> = document[group]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for flag in flags {
            let value = match draws.next().unwrap_or(0) {
                0..200 => continue,
                200..215 => json!(false),
                215..225 => json!("true"),
                225..235 => json!(1),
                235..245 => json!(null),
                _ => {
                    document[group].as_object_mut().unwrap().remove(&flag);
                    continue;
                }
            };
            document[group][&flag] = value;
        }
    }
    document
}

/// A document of an operator: the ceiling with the flags at these places turned.
fn operator(turns: &[u16], branches: bool) -> Capabilities {
    let mut value = serde_json::to_value(ceiling(Some("pi"), branches)).unwrap();
    let pointers = pointers(&value);
    for turn in turns {
        let flag = &pointers[usize::from(*turn) % pointers.len()];
        let flag = value.pointer_mut(flag).unwrap();
        *flag = json!(flag != &json!(true));
    }
    serde_json::from_value(value).unwrap()
}

/// The pointers of the flags that may be either.
fn pointers(document: &Value) -> Vec<String> {
    fn collect(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(key, value)| collect(value, &format!("{at}/{key}"), found)),
            Value::Bool(_) => found.push(at.to_owned()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(document, "", &mut found);
    found
}

proptest! {
    #[test]
    fn provider_5_the_environment_stage_never_claims_what_the_provider_stage_does_not(
        bits in any::<u32>(),
        draws in prop::collection::vec(any::<u8>(), 14),
        turns in prop::collection::vec(any::<u16>(), 0..4),
        nothing in prop::option::weighted(0.1, Just(ClaimsNothing::ReadFailed)),
    ) {
        let (client, instance, sources) = surfaces(bits);
        let document = operator(&turns, client.manages_branches());
        let disclosed = nothing.map_or_else(|| Disclosure::of(&deployment(&draws)), Disclosure::from);
        if let Ok(provider) = declared(&document, &client, Backend::NotChosen, false) {
            let environment = derive(&provider, &instance, &sources, disclosed);
            let (more, less) = (claims(provider.document()), claims(environment.document()));
            prop_assert!(less.is_subset(&more), "{:?}", less.difference(&more));
            prop_assert!(claims(provider.document()).is_subset(&claims(&document)));
            prop_assert_eq!(verify(&**environment.document()), Ok(()));
        }
    }

    #[test]
    fn provider_5_a_claim_and_its_operation_appear_together(
        bits in any::<u32>(),
        draws in prop::collection::vec(any::<u8>(), 14),
    ) {
        let (client, instance, sources) = surfaces(bits);
        let provider = provider(&client);
        let environment = derive(&provider, &instance, &sources, Disclosure::of(&deployment(&draws)));
        let (document, operations) = (environment.document(), environment.operations());
        let pairs = [
            (Operation::Dispatch, document.streaming.detach),
            (Operation::CancelRun, document.retained_control.is_some()),
            (Operation::CancelRun, document.sessions.continue_),
            (Operation::RespondToInteraction, document.interactions.is_some()),
            (Operation::SessionRespondToInteraction, document.interactions.is_some()),
            (Operation::Read, document.workspace.read && document.workspace.download),
            (Operation::Write, document.workspace.write && document.workspace.upload),
            (Operation::Exec, document.workspace.exec),
            (Operation::Placement, document.placement),
            (Operation::Branching, document.branching.retry_safe == Some(true)),
            (Operation::Destroy, instance.delete),
        ];
        for (operation, claimed) in pairs {
            prop_assert_eq!(operations.contains(operation), claimed, "{:?}", operation);
        }
        let session = document.streaming.detach || document.streaming.replay || document.sessions.continue_;
        prop_assert_eq!(operations.contains(Operation::Session), session);
        prop_assert!(!session || instance.session.is_some());
    }
}
