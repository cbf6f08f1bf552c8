//! The topics of turns: which block is sent, what of it is identity, and the digests of a turn.

use std::str::FromStr;

use serde_json::{Value, json};
use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::retained::{NewRef, mint_ref, session_id};
use tangle_sandbox::contract::secret::in_body;
use tangle_sandbox::contract::turn::{Place, Refusal, ResolvedTurn, read};
use tangle_sandbox::contract::types::ExecutionId;
use tangle_sandbox::contract::{attachments, backend, canonical};

use super::{Case, Wrong, same, same_place, same_refusal};

/// `core-turn-input`: a turn to the block that is sent and its identity, or to a refusal.
pub fn input(case: &Case) -> Result<(), Wrong> {
    case.only(&[
        "name", "input", "accept", "backend", "identity", "path", "refusal",
    ])?;
    let found = resolved(case)?;
    same("accept", case.accept()?, found.is_ok())?;
    match found {
        Ok(turn) => sent(case, &turn),
        Err(refusal) => refused(case, &refusal),
    }
}

fn resolved(case: &Case) -> Result<Result<ResolvedTurn, Refusal>, Wrong> {
    let input = case.input()?.clone().into_value();
    Ok(read(input).and_then(|turn| turn.resolve()))
}

/// The block and its identity. A case without a block asserts that none is sent, unless the turn names what would be in it.
fn sent(case: &Case, turn: &ResolvedTurn) -> Result<(), Wrong> {
    if case.get("path").is_some() || case.get("refusal").is_some() {
        return Err(Wrong("a turn that is taken has no refusal".to_owned()));
    }
    let block = turn.backend();
    let input = turn.input();
    let declared = input
        .provider_options
        .as_ref()
        .and_then(|options| options.backend.as_ref());
    if case.get("backend").is_none() {
        let named = declared.is_some() || input.profile.is_some() || input.interactions.is_some();
        same("a block is sent", named, block.is_some())?;
    }
    if let Some(expected) = case.get("backend") {
        let found = in_body(|| json!(block));
        same_hidden("backend", &expected.clone().into_value(), &found)?;
    }
    if let Some(expected) = case.get("identity") {
        let found = json!(block.map(|block| block.identity()));
        same(
            "identity",
            canonical::to_text(&expected.clone().into_value()),
            canonical::to_text(&found),
        )?;
    }
    Ok(())
}

/// Compares two values that hold secrets: what differs is named by its key alone.
pub fn same_hidden(what: &str, expected: &Value, found: &Value) -> Result<(), Wrong> {
    if canonical::to_text(expected) == canonical::to_text(found) {
        return Ok(());
    }
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys().cloned())
            .collect()
    };
    let mut differing = [keys(expected), keys(found)].concat();
    differing.retain(|key| expected.get(key) != found.get(key));
    differing.sort();
    differing.dedup();
    Err(Wrong(format!("{what}: differs in {differing:?}")))
}

/// The place of a refusal and the name of its rule, where the case gives them.
fn refused(case: &Case, refusal: &Refusal) -> Result<(), Wrong> {
    same_refusal(
        case,
        &["backend", "identity"],
        |path| place(path, refusal),
        |name| named(name, refusal),
    )
}

/// A path leads from the turn, or from the part of the block that has a schema of its own.
fn place(path: &str, refusal: &Refusal) -> Result<(), Wrong> {
    if let Refusal::Input(refused) = refusal {
        return same_place(path, refused);
    }
    let step = path.split(['.', '[']).next().unwrap_or_default();
    let found = step.is_empty()
        || refusal.path().split('/').any(|found| found == step)
        || refusal.to_string().contains(&format!("`{step}`"));
    same("a step of the path", true, found)
}

/// Compares a short name of a rule with what was refused. A name that is not known here asserts the refusal alone.
fn named(name: &str, refusal: &Refusal) -> Result<(), Wrong> {
    if let Some(rest) = name.strip_prefix("bound:") {
        let Refusal::Bound(error) = refusal else {
            return other(name, refusal);
        };
        let violation = error.violation();
        let place = format!("{}:profile.{}", violation.rule(), violation.path());
        return same("bound", rest, &place);
    }
    if let Some((place, names)) = name.split_once(": unknown ") {
        return unknown(name, place, names, refusal);
    }
    if let Some((rule @ ("collision" | "disabled"), alias)) = name.split_once(':') {
        let Refusal::Backend(backend::Refusal::Attachments(found)) = refusal else {
            return other(name, refusal);
        };
        return match (rule, found) {
            ("collision", attachments::Refusal::Conflict { alias: found })
            | ("disabled", attachments::Refusal::Disabled { alias: found }) => {
                same("alias", alias, found.as_str())
            }
            _ => other(name, refusal),
        };
    }
    if let Some(field @ ("profile" | "harness" | "model" | "interactions")) =
        name.strip_suffix(" conflict")
    {
        let field = if field == "harness" {
            "profile/harness"
        } else {
            field
        };
        return match refusal {
            Refusal::Conflict { field: found } => same("conflict", field, *found),
            _ => other(name, refusal),
        };
    }
    match code(name) {
        Some(code) => same("code", code, &*refusal.code()),
        None => value(name, refusal),
    }
}

/// The code that a name in words stands for.
fn code(name: &str) -> Option<&'static str> {
    Some(match name {
        "credentialSource" => "credential_intent_invalid",
        "cliAuth needs type" => "backend_type_required",
        "cliAuth needs subscription" => "credentials_intent_required",
        "cliAuth harness" => "credentials_harness_mismatch",
        "managed profile with native credentials" => "managed_profile_native_credentials",
        "backend must be object" => "backend-value",
        _ => match name.rsplit_once(' ') {
            Some((_, "token" | "bundle" | "files")) => "credentials_channel_unsupported",
            _ => return None,
        },
    })
}

fn unknown(name: &str, place: &str, names: &str, refusal: &Refusal) -> Result<(), Wrong> {
    let refused = match refusal {
        Refusal::UnknownField(refused) => refused,
        // A profile and attachments have a shape of their own, and are named by it.
        Refusal::Input(refused)
        | Refusal::BackendProfile(refused)
        | Refusal::Backend(backend::Refusal::Attachments(attachments::Refusal::Invalid(refused))) =>
        {
            return same_names(names, refused);
        }
        _ => return other(name, refusal),
    };
    same_names(names, refused)?;
    let last = refused
        .path()
        .split('/')
        .rfind(|step| step.parse::<usize>().is_err());
    let last = match last {
        Some("authFiles") => "authFile",
        last => last.unwrap_or_default(),
    };
    same("the object with them", place, last)
}

/// Compares the names of unknown fields, in their order.
pub fn same_names(expected: &str, refused: &Refused) -> Result<(), Wrong> {
    same(
        "unknown fields",
        expected,
        &refused.unknown_fields().join(", "),
    )
}

/// A name such as `model.provider` or `metadata.traceAttributes key`: a field of the block with a wrong value.
fn value(name: &str, refusal: &Refusal) -> Result<(), Wrong> {
    let words = name.split(' ').next().unwrap_or_default();
    let Some((block, field)) = words.split_once('.') else {
        return Ok(());
    };
    if !["model", "authFile", "server", "interactions", "metadata"].contains(&block) {
        return Ok(());
    }
    let Refusal::BackendValue(refused) = refusal else {
        return other(name, refusal);
    };
    let block = if block == "authFile" {
        "authFiles"
    } else {
        block
    };
    let (path, rule) = (refused.path(), refused.rule());
    let there = path.contains(&format!("/{block}"))
        && (path.contains(&format!("/{field}")) || rule.contains(&format!("`{field}`")));
    if there { Ok(()) } else { other(name, refusal) }
}

fn other<T>(name: &str, refusal: &Refusal) -> Result<T, Wrong> {
    Err(Wrong(format!(
        "refusal: expected {name:?}, found `{}` at {:?}",
        refusal.code(),
        refusal.path()
    )))
}

/// `provider-runtime-request-digest`: by `group`.
pub fn digest(case: &Case) -> Result<(), Wrong> {
    match case.text("group")?.unwrap_or_default() {
        "material" | "backend" | "refused" => turn_digest(case),
        "sessionId" => derived_session(case),
        "controlRef" => minted(case),
        group => Err(Wrong(format!("unknown group `{group}`"))),
    }
}

fn part<T: FromStr>(of: &Value, key: &str) -> Result<T, Wrong> {
    let text = of.get(key).and_then(Value::as_str).unwrap_or_default();
    text.parse()
        .map_err(|_| Wrong(format!("`{key}` cannot be read")))
}

fn optional<T: FromStr>(of: &Value, key: &str) -> Result<Option<T>, Wrong> {
    of.get(key).map(|_| part(of, key)).transpose()
}

fn member(case: &Case, key: &str) -> Result<Value, Wrong> {
    let document = case
        .get(key)
        .ok_or_else(|| Wrong(format!("`{key}` is missing")))?;
    Ok(document.clone().into_value())
}

fn turn_digest(case: &Case) -> Result<(), Wrong> {
    let known = [
        "name",
        "group",
        "target",
        "input",
        "nonce",
        "executionId",
        "accept",
        "digest",
        "canonical",
        "derived",
        "reason",
    ];
    case.only(&known)?;
    let target = member(case, "target")?;
    let place = Place {
        provider: part(&target, "provider")?,
        environment_id: part(&target, "environmentId")?,
        session_id: part(&target, "sessionId")?,
        nonce: case.text("nonce")?.map(str::to_owned),
    };
    let found = resolved(case)?;
    same("accept", case.accept()?, found.is_ok())?;
    let turn = match found {
        Ok(turn) => turn,
        Err(refusal) => return reason(case, &refusal),
    };
    let execution: Option<ExecutionId> = match case.text("executionId")? {
        Some(text) => Some(
            text.parse()
                .map_err(|_| Wrong("`executionId` cannot be read".to_owned()))?,
        ),
        None => None,
    };
    let digest = match &execution {
        Some(execution) => turn.request_digest(&place, execution).to_string(),
        None => turn.digest(&place).to_string(),
    };
    same("digest", case.text("digest")?, Some(&*digest))?;
    if let Some(expected) = case.text("canonical")? {
        same(
            "canonical",
            expected,
            &canonical::to_text(&turn.material(&place, execution.as_ref())),
        )?;
    }
    if case.get("derived").is_some() {
        let derived = turn
            .execution_id(&place, None)
            .map_err(|refused| Wrong(refused.to_string()))?;
        let found = json!({
            "executionId": derived,
            "runRequestDigest": turn.request_digest(&place, &derived),
        });
        same("derived", member(case, "derived")?, found)?;
    }
    Ok(())
}

/// A reason is a code; one of the credentials and attachments of a block is `backend-value` here (credentials, 13).
fn reason(case: &Case, refusal: &Refusal) -> Result<(), Wrong> {
    let Some(expected) = case.text("reason")? else {
        return Err(Wrong("a refusal needs its `reason`".to_owned()));
    };
    let found = match refusal {
        Refusal::Backend(backend::Refusal::GivenTwice { .. }) => refusal.code(),
        Refusal::Backend(_) | Refusal::Profile(_) => "backend-value".into(),
        refusal => refusal.code(),
    };
    let profile = match refusal {
        Refusal::BackendProfile(_) => true,
        refusal => refusal.path().starts_with("/profile"),
    };
    if profile && within(expected, &found) {
        return Ok(());
    }
    same("reason", expected, &*found)
}

/// Whether one path leads to the other: a server of a profile is refused as a whole, or at a field.
fn within(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() < right.len() {
        (left, right)
    } else {
        (right, left)
    };
    short.len() > "path:".len()
        && long
            .strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn derived_session(case: &Case) -> Result<(), Wrong> {
    case.only(&["name", "group", "target", "turnId", "accept", "sessionId"])?;
    let target = member(case, "target")?;
    let turn = case.text("turnId")?.unwrap_or_default().parse();
    same("accept", case.accept()?, turn.is_ok())?;
    let Ok(turn) = turn else {
        return Ok(());
    };
    let (provider, environment) = (part(&target, "provider")?, part(&target, "environmentId")?);
    let found = session_id(&provider, &environment, &turn)
        .map_err(|refused: Refused| Wrong(refused.to_string()))?;
    same("sessionId", case.text("sessionId")?, Some(found.as_str()))
}

fn minted(case: &Case) -> Result<(), Wrong> {
    case.only(&["name", "group", "input", "accept", "output"])?;
    let input = member(case, "input")?;
    let known = [
        "provider",
        "environmentId",
        "sessionId",
        "executionId",
        "runId",
        "requestDigest",
    ];
    let members = input
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    if let Some(key) = members
        .into_iter()
        .find(|key| !known.contains(&key.as_str()))
    {
        return Err(Wrong(format!("unknown member `{key}` of `input`")));
    }
    let new = NewRef {
        provider: part(&input, "provider")?,
        environment_id: part(&input, "environmentId")?,
        session_id: part(&input, "sessionId")?,
        execution_id: part(&input, "executionId")?,
        run_id: optional(&input, "runId")?,
        request_digest: optional(&input, "requestDigest")?,
    };
    let found = mint_ref(new).map_err(|refused| Wrong(refused.to_string()))?;
    same("accept", case.accept()?, true)?;
    same("output", member(case, "output")?, json!(found))
}
