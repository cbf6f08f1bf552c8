//! The topics of the agent profile.

use serde_json::Value;
use tangle_sandbox::contract::canonical;
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::from_value;
use tangle_sandbox::contract::profile::{ProfileSnapshot, security_check};
use tangle_sandbox::contract::types::SecurityPolicy;

use super::{Case, Wrong, same, same_place};

/// `core-profile`: JSON to a digest, or to the place where it is refused.
pub fn profile(case: &Case) -> Result<(), Wrong> {
    case.only(&["name", "input", "accept", "digest", "path"])?;
    let accept = case.accept()?;
    let document = case.input()?.clone().into_value();
    let read = ProfileSnapshot::from_value(document.clone());
    same("accept", accept, read.is_ok())?;
    let snapshot = match (read, case.text("path")?) {
        (Ok(snapshot), None) => snapshot,
        (Err(refused), Some(path)) => return same_place(path, &refused),
        (Err(_), None) => return Ok(()),
        (Ok(_), Some(_)) => return Err(Wrong("a path of a profile that is taken".to_owned())),
    };
    let Some(digest) = case.text("digest")? else {
        return Err(Wrong("asserts nothing: `digest` is missing".to_owned()));
    };
    same("digest", digest, &snapshot.digest().to_string())?;
    read_back(&document, &snapshot)
}

/// What the type writes is the document again.
fn read_back(document: &Value, snapshot: &ProfileSnapshot) -> Result<(), Wrong> {
    let written = serde_json::to_value(snapshot.profile())
        .map_err(|error| Wrong(format!("cannot be written: {error}")))?;
    same(
        "the profile written again",
        canonical::to_text(document),
        canonical::to_text(&written),
    )?;
    same(
        "its digest",
        Ok(snapshot.digest()),
        snapshot.profile().digest(),
    )
}

/// `core-profile-security`: a profile and a policy to the issues, in order.
pub fn security(case: &Case) -> Result<(), Wrong> {
    case.only(&["name", "input", "policy", "accept", "path", "issues"])?;
    let accept = case.accept()?;
    let policy = match case.get("policy") {
        None => SecurityPolicy::cloud(),
        Some(policy) => from_value(policy.clone().into_value())
            .map_err(|refused| Wrong(format!("`policy`: {refused}")))?,
    };
    let report = security_check(case.input()?, &policy);
    same("accept", accept, report.ok)?;
    let Some(Document::Array(issues)) = case.get("issues") else {
        return Err(Wrong("asserts nothing: `issues` is missing".to_owned()));
    };
    let text = |text: &str| Document::String(text.to_owned());
    let found: Vec<Document> = report
        .issues
        .iter()
        .map(|issue| Document::Array(vec![text(&issue.code.to_string()), text(&issue.path)]))
        .collect();
    same("issues", issues, &found)?;
    match case.text("path")? {
        Some(path) => same(
            "path",
            Some(path),
            report.issues.first().map(|issue| &*issue.path),
        ),
        None => Ok(()),
    }
}
