//! The topics of capability documents: their shape, and how an environment's is derived.

use serde_json::{Value, json};
use tangle_sandbox::contract::capability::{
    Backend, Capabilities, ClaimsNothing, ClientSurface, Disclosure, EnvironmentCapabilities,
    InstanceSurface, ObservationSources, Operation, ceiling, declared, derive,
};
use tangle_sandbox::contract::checker::{Checked, Node};
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::from_value;
use tangle_sandbox::contract::types::BackendEntry;

use super::{Case, Wrong, same, same_place};

/// `core-capabilities`: a document to taken, or to the place where it is refused.
pub fn documents(case: &Case) -> Result<(), Wrong> {
    only(case, &["input"], &["path"])?;
    parsed(case, value(case, "input")?)
}

/// `provider-runtime-capabilities`: by `group`.
pub fn derivation(case: &Case) -> Result<(), Wrong> {
    match case.text("group")?.unwrap_or_default() {
        "document" | "nothing" | "surface" | "declared" => {
            only(case, &["document", "claims", "operations"], &["facts"])?;
            environment(case)
        }
        "backend" => {
            only(
                case,
                &["declaredKinds", "backendInteractions", "kinds"],
                &[],
            )?;
            backend(case)
        }
        "validity" => {
            only(case, &["change"], &["path"])?;
            let mut document = json!(ceiling(Some("codex"), false));
            patch(&mut document, &value(case, "change")?, &json!("$delete"))?;
            parsed(case, document)
        }
        group => Err(Wrong(format!("unknown group `{group}`"))),
    }
}

/// A case has all `needed` members and no others besides the `optional` ones and those that every case has.
fn only(case: &Case, needed: &[&str], optional: &[&str]) -> Result<(), Wrong> {
    if let Some(name) = needed.iter().find(|name| case.get(name).is_none()) {
        return Err(Wrong(format!("`{name}` is missing")));
    }
    let Document::Object(members) = &case.0 else {
        return Err(Wrong("a case must be an object".to_owned()));
    };
    let known = |name: &str| {
        ["name", "group", "accept"].contains(&name)
            || needed.contains(&name)
            || optional.contains(&name)
    };
    match members.iter().find(|(name, _)| !known(name)) {
        Some((name, _)) => Err(Wrong(format!("unknown member `{name}`"))),
        None => Ok(()),
    }
}

fn value(case: &Case, key: &str) -> Result<Value, Wrong> {
    let document = case.get(key);
    document
        .map(|document| document.clone().into_value())
        .ok_or_else(|| Wrong(format!("`{key}` is missing")))
}

/// A document is taken as it is, or refused at the stated place.
fn parsed(case: &Case, document: Value) -> Result<(), Wrong> {
    let read = from_value::<Capabilities>(document.clone());
    same("accept", case.accept()?, read.is_ok())?;
    match (read, case.text("path")?) {
        (Ok(read), None) => same("the document read back", document, json!(read)),
        (Ok(_), Some(_)) => Err(Wrong("a path of a document that is taken".to_owned())),
        (Err(refused), Some(path)) => same_place(path, &refused),
        (Err(_), None) => Ok(()),
    }
}

/// Replaces parts of a document by dotted path; the value `delete` removes a part.
fn patch(document: &mut Value, changes: &Value, delete: &Value) -> Result<(), Wrong> {
    let Some(changes) = changes.as_object() else {
        return Err(Wrong("changes must be an object".to_owned()));
    };
    for (path, change) in changes {
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        let mut place = &mut *document;
        for step in parents.split('.').filter(|step| !step.is_empty()) {
            place = &mut place[step];
        }
        let Some(members) = place.as_object_mut() else {
            return Err(Wrong(format!("`{path}` names nothing that can change")));
        };
        if change == delete {
            members.remove(last);
        } else {
            members.insert(last.to_owned(), change.clone());
        }
    }
    Ok(())
}

/// What changes the otherwise complete surface of a case.
struct Facts {
    client: ClientSurface,
    instance: InstanceSurface,
    running: bool,
    throws: bool,
    declared: Value,
}

fn facts(case: &Case) -> Result<Facts, Wrong> {
    let mut facts = Facts {
        client: ClientSurface::ALL,
        instance: InstanceSurface::ALL,
        running: true,
        throws: false,
        declared: json!({}),
    };
    let Some(given) = case.get("facts") else {
        return Ok(facts);
    };
    let given = given.clone().into_value();
    let Some(given) = given.as_object() else {
        return Err(Wrong("`facts` must be an object".to_owned()));
    };
    for (name, fact) in given {
        match (name.as_str(), fact) {
            ("declared", declared) => facts.declared = declared.clone(),
            ("status", Value::String(status)) => facts.running = status == "running",
            ("throws", Value::Bool(throws)) => facts.throws = *throws,
            (name, Value::Bool(true)) => take_away(&mut facts, name)?,
            (_, Value::Bool(false)) => {}
            _ => return Err(Wrong(format!("`{name}` has another value than it takes"))),
        }
    }
    Ok(facts)
}

fn take_away(facts: &mut Facts, name: &str) -> Result<(), Wrong> {
    let instance = &mut facts.instance;
    match name {
        "noCapabilities" => instance.capabilities = false,
        "noDispatch" => instance.dispatch_prompt = false,
        "noSession" => instance.session = None,
        "noRead" => instance.read = false,
        "noWrite" => instance.write = false,
        "noExec" => instance.exec = false,
        "noDelete" => instance.delete = false,
        "noGet" => facts.client.get = false,
        "noCancel" | "noRespond" | "noInteractive" => {
            if let Some(session) = &mut instance.session {
                match name {
                    "noCancel" => session.cancel_run = false,
                    "noRespond" => session.respond_to_interaction = false,
                    _ => session.interactive = false,
                }
            }
        }
        name => return Err(Wrong(format!("unknown fact `{name}`"))),
    }
    Ok(())
}

/// Both stages, on the facts of a case.
fn environment(case: &Case) -> Result<(), Wrong> {
    let facts = facts(case)?;
    let mut document = json!(ceiling(Some("codex"), facts.client.manages_branches()));
    patch(&mut document, &facts.declared, &Value::Null)?;
    let document: Capabilities = serde_json::from_value(document)
        .map_err(|error| Wrong(format!("the declared document: {error}")))?;
    let disclosure = match Disclosure::ask(&facts.instance, facts.running) {
        Err(why) => why.into(),
        Ok(()) if facts.throws => ClaimsNothing::ReadFailed.into(),
        Ok(()) => Disclosure::of(&value(case, "document")?),
    };
    let provider = declared(&document, &facts.client, Backend::NotChosen, false);
    same("accept", case.accept()?, provider.is_ok())?;
    let Ok(provider) = provider else {
        return Ok(());
    };
    let sources = ObservationSources::ALL;
    let environment = derive(&provider, &facts.instance, &sources, disclosure);
    claims(case, &environment)?;
    operations(case, &environment)
}

/// The named members of `key`, each `true` or `false`; at least one.
fn verdicts(case: &Case, key: &str) -> Result<Vec<(String, bool)>, Wrong> {
    let Value::Object(members) = value(case, key)? else {
        return Err(Wrong(format!("`{key}` must be an object")));
    };
    if members.is_empty() {
        return Err(Wrong(format!("`{key}` asserts nothing")));
    }
    let verdict = |(name, verdict): (String, Value)| match verdict {
        Value::Bool(verdict) => Ok((name, verdict)),
        _ => Err(Wrong(format!("`{key}.{name}` must be true or false"))),
    };
    members.into_iter().map(verdict).collect()
}

fn claims(case: &Case, environment: &EnvironmentCapabilities) -> Result<(), Wrong> {
    let document = json!(**environment.document());
    for (claim, expected) in verdicts(case, "claims")? {
        if !is_claim(Capabilities::node(), &claim) {
            return Err(Wrong(format!("unknown claim `{claim}`")));
        }
        let published = document.pointer(&format!("/{}", claim.replace('.', "/")));
        same(&claim, expected, published.is_some_and(says_something))?;
    }
    Ok(())
}

/// Whether the schema has a member at the dotted path.
fn is_claim(node: &Node, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let member = node.properties.iter().find(|member| member.name == first);
    member.is_some_and(|member| rest.is_empty() || is_claim(member.node, rest))
}

/// A flag that is true, or a block with one.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => members.values().any(says_something),
        _ => false,
    }
}

fn operations(case: &Case, environment: &EnvironmentCapabilities) -> Result<(), Wrong> {
    let offered = environment.operations();
    for (name, expected) in verdicts(case, "operations")? {
        let operation = Operation::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| Wrong(format!("unknown operation `{name}`")))?;
        same(&name, expected, offered.contains(operation))?;
    }
    Ok(())
}

/// The kinds of asks that are left when the catalogue entry of the backend is known.
fn backend(case: &Case) -> Result<(), Wrong> {
    let mut document = ceiling(Some("codex"), false);
    let mut interactions = json!(document.interactions);
    let kinds = value(case, "declaredKinds")?;
    interactions["kinds"] = kinds.clone();
    document.interactions = match kinds {
        Value::Null => None,
        _ => serde_json::from_value(interactions)
            .map_err(|error| Wrong(format!("`declaredKinds`: {error}")))?,
    };
    let entry = match value(case, "backendInteractions")? {
        Value::Null => None,
        listed => {
            let entry = json!({ "type": "codex", "capabilities": { "interactions": listed } });
            let entry = from_value::<BackendEntry>(entry)
                .map_err(|refused| Wrong(format!("`backendInteractions`: {refused}")))?;
            Some(entry)
        }
    };
    let entry = entry.as_ref().map_or(Backend::Unlisted, Backend::Listed);
    let provider = declared(&document, &ClientSurface::ALL, entry, false);
    same("accept", case.accept()?, provider.is_ok())?;
    let Ok(provider) = provider else {
        return Ok(());
    };
    let block = provider.document().interactions.as_ref();
    let found = block.map_or(Value::Null, |block| json!(block.kinds));
    same("kinds", value(case, "kinds")?, found)
}
