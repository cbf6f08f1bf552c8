//! The topics of the agent profile.

use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::from_value;
use tangle_sandbox::contract::profile::security_check;
use tangle_sandbox::contract::types::SecurityPolicy;

use super::{Case, Wrong, same};

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
