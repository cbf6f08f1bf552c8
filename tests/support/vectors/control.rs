//! The topic of references, control requests, receipts and small translations, a function for each group.

use std::str::FromStr;

use serde_json::{Value, json};
use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::failure::FailureCause;
use tangle_sandbox::contract::retained::{
    CancelAcknowledgement, CancelRequest, ControlAcknowledgement, ControlRequest, LooseRunRef,
    Refusal, RunControlRef, Target, execution_status, read_receipt, same_run, session,
};
use tangle_sandbox::contract::types::{
    Creation, EnvironmentStatus, ExecResult, Placement, PlatformRead, ResourceRequest,
    SessionStatus,
};
use tangle_sandbox::contract::{canonical, from_value};

use super::{Case, Wrong, same, same_place};

/// `provider-runtime-control`: by `group`.
pub fn control(case: &Case) -> Result<(), Wrong> {
    match case.text("group")?.unwrap_or_default() {
        "ref" => reference(case, |input| from_value::<LooseRunRef>(input).map(drop)),
        "exact-ref" => reference(case, |input| from_value::<RunControlRef>(input).map(drop)),
        "same-run" => same_runs(case),
        "cancel-request" => request(case, |input| {
            from_value::<CancelRequest>(input).map(|request| request.digest().to_string())
        }),
        "control-request" => request(case, |input| {
            from_value::<ControlRequest>(input).map(|request| request.digest().to_string())
        }),
        "cancel-ack" => reference(case, |input| {
            from_value::<CancelAcknowledgement>(input).map(drop)
        }),
        "control-ack" => reference(case, |input| {
            from_value::<ControlAcknowledgement>(input).map(drop)
        }),
        "cancel-match" => cancel_match(case),
        "dispatch-receipt" => dispatch_receipt(case),
        "session-ref" => session_ref(case),
        "status" => status(case),
        "exact-status" => exact_status(case),
        "creation" => creation(case),
        "placement" => placement(case),
        "resources" => resources(case),
        "exec-result" => exec_result(case),
        "failure-reason" => failure_reason(case),
        group => Err(Wrong(format!("unknown group `{group}`"))),
    }
}

/// The members of every case, and those of its group.
fn only(case: &Case, own: &[&str]) -> Result<(), Wrong> {
    let known: Vec<&str> = ["name", "group", "accept"]
        .iter()
        .chain(own)
        .copied()
        .collect();
    case.only(&known)
}

fn value(case: &Case, key: &str) -> Result<Value, Wrong> {
    let document = case.get(key);
    document
        .map(|document| document.clone().into_value())
        .ok_or_else(|| Wrong(format!("`{key}` is missing")))
}

/// A text of the case that is no assertion: it has to be what its group works on.
fn part<T: FromStr>(case: &Case, key: &str) -> Result<T, Wrong> {
    let text = case.text(key)?.unwrap_or_default();
    text.parse()
        .map_err(|_| Wrong(format!("`{key}` cannot be read")))
}

/// The verdict and, where a place is named, its first step; a member that is missing is named in the rule.
fn verdict(case: &Case, found: Result<(), &Refused>) -> Result<(), Wrong> {
    same("accept", case.accept()?, found.is_ok())?;
    match (case.text("path")?, found) {
        (None, _) => Ok(()),
        (Some(_), Ok(())) => Err(Wrong("a path of what is taken".to_owned())),
        (Some(path), Err(refused)) => same_place(path, refused),
    }
}

/// Compares by canonical text, so that a number has one spelling.
fn same_value(what: &str, expected: &Value, found: &Value) -> Result<(), Wrong> {
    same(
        what,
        canonical::to_text(expected),
        canonical::to_text(found),
    )
}

/// What an accepted case asserts: `output`, which a refused one must not have.
fn output(case: &Case, found: Option<&Value>) -> Result<(), Wrong> {
    match (case.get("output"), found) {
        (None, None) => Ok(()),
        (Some(expected), Some(found)) => {
            same_value("output", &expected.clone().into_value(), found)
        }
        (None, Some(_)) => Err(Wrong("asserts nothing: `output` is missing".to_owned())),
        (Some(_), None) => Err(Wrong("an output of what is refused".to_owned())),
    }
}

fn reference(case: &Case, read: impl FnOnce(Value) -> Result<(), Refused>) -> Result<(), Wrong> {
    only(case, &["input", "path"])?;
    verdict(case, read(value(case, "input")?).as_ref().copied())
}

fn same_runs(case: &Case) -> Result<(), Wrong> {
    only(case, &["left", "right", "adapterAgrees"])?;
    let (left, right) = (value(case, "left")?, value(case, "right")?);
    let loose = |value: &Value| from_value::<LooseRunRef>(value.clone());
    let found = match (loose(&left), loose(&right)) {
        (Ok(left), Ok(right)) => same_run(&left, &right),
        _ => false,
    };
    same("accept", case.accept()?, found)?;
    // An adapter holds exact references only.
    let exact = |value: &Value| from_value::<RunControlRef>(value.clone());
    let adapter = matches!((exact(&left), exact(&right)), (Ok(left), Ok(right)) if left == right);
    match case.get("adapterAgrees") {
        None => Ok(()),
        Some(agrees) => same_value(
            "adapterAgrees",
            &agrees.clone().into_value(),
            &json!(adapter == found),
        ),
    }
}

fn request(case: &Case, read: impl FnOnce(Value) -> Result<String, Refused>) -> Result<(), Wrong> {
    only(case, &["input", "path", "digest"])?;
    let found = read(value(case, "input")?);
    verdict(case, found.as_ref().map(drop))?;
    match (case.text("digest")?, found) {
        (Some(expected), Ok(found)) => same("digest", expected, &found),
        (None, Ok(_)) => Err(Wrong("asserts nothing: `digest` is missing".to_owned())),
        (Some(_), Err(_)) => Err(Wrong("a digest of what is refused".to_owned())),
        (None, Err(_)) => Ok(()),
    }
}

fn cancel_match(case: &Case) -> Result<(), Wrong> {
    only(case, &["request", "acknowledgement"])?;
    let request = from_value::<CancelRequest>(value(case, "request")?);
    let acknowledgement = from_value::<CancelAcknowledgement>(value(case, "acknowledgement")?);
    let found = match (request, acknowledgement) {
        (Ok(request), Ok(acknowledgement)) => acknowledgement.answers(&request).is_ok(),
        _ => false,
    };
    same("accept", case.accept()?, found)
}

fn dispatch_receipt(case: &Case) -> Result<(), Wrong> {
    only(
        case,
        &[
            "expected",
            "receipt",
            "callerControlRef",
            "output",
            "reason",
        ],
    )?;
    let expected: LooseRunRef = {
        // What was asked names no run id: the default one stands in.
        let mut expected = value(case, "expected")?;
        if expected.get("runId").is_none() {
            expected["runId"] = expected["executionId"].clone();
        }
        from_value(expected).map_err(|refused| Wrong(format!("`expected`: {refused}")))?
    };
    let asked = RunControlRef::try_from(expected)
        .map_err(|refused| Wrong(format!("`expected`: {refused}")))?;
    let given = match case.get("callerControlRef") {
        None => None,
        Some(given) => Some(
            from_value::<RunControlRef>(given.clone().into_value())
                .map_err(|refused| Wrong(format!("`callerControlRef`: {refused}")))?,
        ),
    };
    let found = read_receipt(&value(case, "receipt")?, &asked, given.as_ref());
    same("accept", case.accept()?, found.is_ok())?;
    let reason = found.as_ref().err().map(Refusal::code);
    same("reason", case.text("reason")?, reason)?;
    output(case, found.ok().map(|found| json!(found)).as_ref())
}

fn session_ref(case: &Case) -> Result<(), Wrong> {
    only(case, &["candidate", "target", "output", "path"])?;
    let target = value(case, "target")?;
    // The target is a reference that names no run: only its place is read.
    let member = |key: &str| target[key].as_str().unwrap_or_default();
    let wrong = |refused: Refused| Wrong(format!("`target`: {refused}"));
    let place = Target {
        provider: member("provider").parse().map_err(wrong)?,
        environment_id: member("environmentId").parse().map_err(wrong)?,
        session_id: Some(member("sessionId").parse().map_err(wrong)?),
        execution_id: None,
        request_digest: None,
    };
    let candidate = case.get("candidate").map(|it| it.clone().into_value());
    let found = session::open(candidate.as_ref(), &place);
    same("accept", case.accept()?, found.is_ok())?;
    match (case.text("path")?, &found) {
        (None, _) => {}
        (Some("mismatch"), Err(refusal)) => {
            same("code", "reference-other-target", refusal.code())?;
        }
        (Some(path), Err(Refusal::Document(refused))) => same_place(path, refused)?,
        (Some(_), found) => return Err(Wrong(format!("a path of {found:?}"))),
    }
    output(case, found.ok().map(|found| json!(found)).as_ref())
}

fn status(case: &Case) -> Result<(), Wrong> {
    only(case, &["input", "environment", "session"])?;
    same("accept", case.accept()?, true)?;
    let raw = value(case, "input")?;
    let (environment, session) = (EnvironmentStatus::of(&raw), SessionStatus::of(&raw));
    same_value(
        "environment",
        &value(case, "environment")?,
        &json!(environment),
    )?;
    same_value("session", &value(case, "session")?, &json!(session))
}

fn exact_status(case: &Case) -> Result<(), Wrong> {
    only(case, &["payload", "executionId", "status"])?;
    same("accept", case.accept()?, true)?;
    let execution = part(case, "executionId")?;
    let found = execution_status(&value(case, "payload")?, &execution);
    same_value("status", &value(case, "status")?, &json!(found))
}

fn creation(case: &Case) -> Result<(), Wrong> {
    only(case, &["input", "output"])?;
    let found = Creation::verdict(&value(case, "input")?);
    verdict(case, found.as_ref().map(drop))?;
    output(case, found.ok().map(|found| json!(found)).as_ref())
}

fn placement(case: &Case) -> Result<(), Wrong> {
    only(case, &["input", "boxId", "output"])?;
    let own = part(case, "boxId")?;
    let found = Placement::read(&value(case, "input")?, &own);
    verdict(case, found.as_ref().map(drop))?;
    output(case, found.ok().map(|found| json!(found)).as_ref())
}

fn resources(case: &Case) -> Result<(), Wrong> {
    only(case, &["input", "output", "requested"])?;
    let found = from_value::<ResourceRequest>(value(case, "input")?);
    verdict(case, found.as_ref().map(drop))?;
    let Ok(request) = found else {
        return output(case, None);
    };
    let shown = |refused: Refused| Wrong(refused.to_string());
    let wire = request.to_wire().map_err(shown)?;
    let requested = request.requested().map_err(shown)?;
    output(case, Some(&json!(wire)))?;
    same_value("requested", &value(case, "requested")?, &json!(requested))
}

/// A result that is too long to be repeated as the output comes back as it went in.
fn exec_result(case: &Case) -> Result<(), Wrong> {
    only(case, &["input", "output"])?;
    let input = value(case, "input")?;
    let found = from_value::<ExecResult>(input.clone());
    verdict(case, found.as_ref().map(drop))?;
    match (found, case.get("output")) {
        (Ok(found), None) => {
            let kept =
                ["exitCode", "stdout", "stderr"].map(|key| (key.to_owned(), input[key].clone()));
            same_value(
                "output",
                &Value::Object(kept.into_iter().collect()),
                &json!(found),
            )
        }
        (found, _) => output(case, found.ok().map(|found| json!(found)).as_ref()),
    }
}

fn failure_reason(case: &Case) -> Result<(), Wrong> {
    only(case, &["read", "error", "reason"])?;
    same("accept", case.accept()?, true)?;
    let read: PlatformRead = part(case, "read")?;
    let cause = FailureCause::read(&value(case, "error")?);
    let reason = cause.reason(read);
    same_value("reason", &value(case, "reason")?, &json!(reason))?;
    let inner = reason.split_once('(').map_or("", |(_, inner)| inner);
    same("short cause", true, inner.starts_with(&cause.to_string()))
}
