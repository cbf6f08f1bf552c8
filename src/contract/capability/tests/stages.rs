//! Any surface and any document: a stage takes claims away, and a claim has its operation.

use proptest::prelude::*;

use super::*;
use crate::contract::verify;

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
pub(super) fn pointers(document: &Value) -> Vec<String> {
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
