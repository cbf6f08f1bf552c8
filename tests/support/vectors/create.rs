//! The topics of creating: a create input to the request that the service gets, and its digest.

use serde_json::json;
use tangle_sandbox::contract::attachments;
use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::create::{Mapping, Refusal, read};
use tangle_sandbox::contract::secret::in_body;
use tangle_sandbox::contract::types::CreateInput;

use super::turn::{same_hidden, same_names};
use super::{Case, Wrong, same, same_refusal};

fn mapping(default_backend: Option<&str>) -> Result<Mapping, Wrong> {
    let unreadable = |_| Wrong("`defaultBackend` cannot be read".to_owned());
    Ok(Mapping {
        provider: "tangle-sandbox".parse().map_err(unreadable)?,
        default_backend: default_backend
            .map(|name| name.parse().map_err(unreadable))
            .transpose()?,
    })
}

fn parsed(case: &Case) -> Result<Result<CreateInput, Refusal>, Wrong> {
    Ok(read(case.input()?.clone().into_value()))
}

/// `core-create-input`: a create to its request and digest, or to a refusal.
pub fn input(case: &Case) -> Result<(), Wrong> {
    case.only(&[
        "name", "input", "accept", "request", "digest", "path", "refusal",
    ])?;
    let mapping = mapping(None)?;
    let found = parsed(case)?.and_then(|input| Ok((input.digest(), mapping.map(&input)?)));
    same("accept", case.accept()?, found.is_ok())?;
    let (digest, request) = match found {
        Ok(found) => found,
        Err(refusal) => return refused(case, &refusal),
    };
    same("digest", case.text("digest")?, Some(&*digest.to_string()))?;
    match case.get("request") {
        Some(expected) => same_hidden(
            "request",
            &expected.clone().into_value(),
            &in_body(|| json!(request)),
        ),
        None => Ok(()),
    }
}

fn refused(case: &Case, refusal: &Refusal) -> Result<(), Wrong> {
    same_refusal(
        case,
        &["request", "digest"],
        |path| place(path, refusal),
        |name| named(name, refusal),
    )
}

/// The path of a case leads from the field that was refused, or from the input. Of two fields that exclude each other either may
/// be named.
fn place(path: &str, refusal: &Refusal) -> Result<(), Wrong> {
    let (pointer, rule) = match refusal {
        Refusal::Attachments(attachments::Refusal::Invalid(refused)) => (
            format!("/runtimeAttachments{}", refused.path()),
            refused.rule().to_owned(),
        ),
        refusal => (refusal.path(), refusal.to_string()),
    };
    let step = path.split(['.', '[']).next().unwrap_or_default();
    let found = step.is_empty()
        || pointer
            .split('/')
            .skip(1)
            .take(2)
            .any(|found| found == step)
        || rule.contains(&format!("`{step}`"));
    match found {
        true => Ok(()),
        false => Err(Wrong(format!(
            "first step of the path: expected {step:?}, found `{pointer}`: {rule}"
        ))),
    }
}

/// The place and the rule, where one field was refused.
fn inner(refusal: &Refusal) -> Option<&Refused> {
    match refusal {
        Refusal::Input(refused)
        | Refusal::UnknownField(refused)
        | Refusal::Profile(refused)
        | Refusal::Resources(refused)
        | Refusal::Workspace(refused)
        | Refusal::ProviderOptions(refused)
        | Refusal::Secrets(refused)
        | Refusal::Metadata(refused)
        | Refusal::Name(refused)
        | Refusal::Backend(refused)
        | Refusal::Env(refused)
        | Refusal::IdempotencyKey(refused)
        | Refusal::BillingOwner(refused)
        | Refusal::Egress(refused)
        | Refusal::Attachments(attachments::Refusal::Invalid(refused)) => Some(refused),
        _ => None,
    }
}

/// Compares a short name of a rule with what was refused. A name that is not known here asserts the refusal alone.
fn named(name: &str, refusal: &Refusal) -> Result<(), Wrong> {
    if let Some(names) = name.strip_prefix("unknown ") {
        same("code", "unknown-field", refusal.code())?;
        return match inner(refusal) {
            Some(refused) => same_names(names, refused),
            None => same("unknown fields", names, ""),
        };
    }
    if let Some((rule @ ("collision" | "disabled"), alias)) = name.split_once(':') {
        return match (rule, refusal) {
            (
                "collision",
                Refusal::Attachments(attachments::Refusal::Conflict { alias: found }),
            )
            | ("disabled", Refusal::Attachments(attachments::Refusal::Disabled { alias: found })) => {
                same("alias", alias, found.as_str())
            }
            _ => Err(Wrong(format!(
                "refusal: expected {name:?}, found `{}`",
                refusal.code()
            ))),
        };
    }
    if name == "providerOptions" || name.ends_with(".providerOptions") {
        same("code", "provider-options", refusal.code())?;
        return same(
            "path",
            format!("/{}", name.replace('.', "/")),
            refusal.path(),
        );
    }
    if let Some(field) = name.strip_prefix("resources.") {
        same("code", "resources", refusal.code())?;
        let there = refusal.path().ends_with(&format!("/{field}"))
            || inner(refusal).is_some_and(|refused| refused.unknown_fields().contains(&field));
        return same("the field", true, there);
    }
    let code = match name {
        "profile" | "name" | "resources" | "backend" | "env" | "egress" => name,
        "metadata" | "workspace" => {
            return same(
                "a refusal of the field",
                true,
                refusal.code().contains(name),
            );
        }
        "idempotencyKey" => "idempotency-key",
        "billingOwner" => "billing-owner",
        "profile reference" => "profile-reference",
        "workspace.cwd base" => "workspace-cwd-base",
        "secrets" => {
            let secrets = ["secrets", "inline-secrets"].contains(&refusal.code());
            return same("a refusal of the secrets", true, secrets);
        }
        _ => return Ok(()),
    };
    same("code", code, refusal.code())
}

/// `provider-runtime-create`: by `group`.
pub fn runtime(case: &Case) -> Result<(), Wrong> {
    case.only(&[
        "name",
        "group",
        "input",
        "defaultBackend",
        "accept",
        "output",
        "digest",
        "reason",
    ])?;
    match case.text("group")?.unwrap_or_default() {
        "map" | "backend" | "refused" => mapped(case),
        "create-digest" => digested(case),
        group => Err(Wrong(format!("unknown group `{group}`"))),
    }
}

fn mapped(case: &Case) -> Result<(), Wrong> {
    let mapping = mapping(case.text("defaultBackend")?)?;
    let found = parsed(case)?.and_then(|input| mapping.map(&input));
    same("accept", case.accept()?, found.is_ok())?;
    match found {
        Ok(request) => {
            let expected = case
                .get("output")
                .ok_or_else(|| Wrong("`output` is missing".to_owned()))?;
            same_hidden(
                "output",
                &expected.clone().into_value(),
                &in_body(|| json!(request)),
            )
        }
        Err(refusal) => same("reason", case.text("reason")?, Some(refusal.code())),
    }
}

/// The identity of an input; whether it can be mapped is another question.
fn digested(case: &Case) -> Result<(), Wrong> {
    let found = parsed(case)?;
    same("accept", case.accept()?, found.is_ok())?;
    match found {
        Ok(input) => same(
            "digest",
            case.text("digest")?,
            Some(&*input.digest().to_string()),
        ),
        Err(refusal) => match case.text("reason")? {
            Some(expected) => same("reason", expected, refusal.code()),
            None => Ok(()),
        },
    }
}
