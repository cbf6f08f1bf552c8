//! Documents, gates and stages.
//!
//! * `documents`: what a capability document must be.
//! * `declared`: the first stage: client, backend, configuration.
//! * `gates`: each row of the gating table on its own.
//! * `stages`: any two stages against each other.

mod declared;
mod documents;
mod gates;
mod stages;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

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
