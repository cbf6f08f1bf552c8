//! Each flag and each operation takes exactly what rests on it.

use super::*;

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
