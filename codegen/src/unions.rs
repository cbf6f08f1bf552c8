//! Unions: what `oneOf` may be, and how a reader tells its branches apart.
//!
//! A union never tries one branch after the other: the value itself says which branch it means, so that a refusal names a
//! field of that branch and not "no branch matched".

use serde_json::Value;

use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;

/// How the branches of a union are told apart.
pub(crate) enum Choice<'a> {
    /// By a required property with a constant text in each branch.
    Tag(&'a str),
    /// By the first branch whose `x-mark` the object has, with the constant that the branch gives it.
    Mark,
    /// By the JSON type of the value.
    Kind,
}

/// What tells `branches` apart, as far as one file shows it; `None` when nothing does.
pub(crate) fn choice(branches: &[Value]) -> Option<Choice<'_>> {
    if let Some(tag) = tag(branches) {
        return Some(Choice::Tag(tag));
    }
    if branches.iter().all(|branch| mark(branch).is_some()) {
        return Some(Choice::Mark);
    }
    let plain = |branch: &Value| {
        branch.get("x-mark").is_none()
            && (branch.get("$ref").is_some() || branch.get("type").is_some())
    };
    branches.iter().all(plain).then_some(Choice::Kind)
}

/// The property that tells the branches of a tagged union apart.
fn tag(branches: &[Value]) -> Option<&str> {
    let candidates = branches.first()?.get("properties")?.as_object()?;
    candidates.keys().map(String::as_str).find(|name| {
        branches.iter().all(|branch| {
            branch["properties"][*name]["const"].is_string() && requires(branch, name)
        })
    })
}

/// The property by which a branch is chosen; it must be a required one.
pub(crate) fn mark(branch: &Value) -> Option<&str> {
    let name = branch.get("x-mark")?.as_str()?;
    requires(branch, name).then_some(name)
}

fn requires(branch: &Value, name: &str) -> bool {
    branch["required"]
        .as_array()
        .is_some_and(|list| list.iter().any(|item| item == name))
}

/// The JSON type of a branch, its reference followed.
pub(crate) fn kind<'a>(bundle: &'a Bundle, branch: &'a Value) -> Option<&'a str> {
    let schema = match referenced(branch) {
        Some(name) => bundle.defs.get(name)?,
        None => branch,
    };
    match schema.get("oneOf").and_then(Value::as_array) {
        // A union by type has several types of its own.
        Some(branches) => match choice(branches)? {
            Choice::Tag(_) | Choice::Mark => Some("object"),
            Choice::Kind => None,
        },
        None => schema.get("type")?.as_str(),
    }
}

/// Refuses a union by type in which two branches have the same one.
pub(crate) fn prove_kinds(
    bundle: &Bundle,
    name: &str,
    branches: &[Value],
) -> Result<(), SchemaError> {
    let mut seen = Vec::new();
    for branch in branches {
        let kind = kind(bundle, branch)
            .ok_or_else(|| bundle.error(name, "a branch of `oneOf` has no JSON type"))?;
        // Every integer is a number.
        let other = match kind {
            "number" => "integer",
            "integer" => "number",
            kind => kind,
        };
        if seen.contains(&kind) || seen.contains(&other) {
            return Err(bundle.error(
                name,
                format!("two branches of `oneOf` are of JSON type {kind}"),
            ));
        }
        seen.push(kind);
    }
    Ok(())
}
