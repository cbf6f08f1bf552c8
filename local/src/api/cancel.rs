//! Stopping runs (wire protocol, 7.7 and 9.8).

use axum::response::Response;
use serde_json::{Value, json};
use tangle_sandbox::contract::types::{
    AbortAnswer, AbortRequest, CancelAcknowledgement, CancelEffect, CancelRequest, ControlStatus,
    NonEmptyText, SimpleCancel,
};

use super::Shared;
use super::answer::{Fault, data};
use super::call::Call;
use super::request::{checked, value_or_empty};
use super::sessions;
use crate::lifecycle;
use crate::run::Ending;
use crate::store::cancels::{self, CancelRow};
use crate::store::executions;

/// Why nothing was stopped.
const NOT_RUNNING: &str = "not-running";

/// `POST R/agents/run/cancel`: the canonical form when there is an `operationId`, else the simple one.
pub(super) async fn run(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let body = value_or_empty(call.request, deployment.settings.run_body).await?;
    let (sandbox, _stay) = running.await?;
    if body.get("operationId").is_some() {
        let request: CancelRequest = checked(body)?;
        request.rules()?;
        let acknowledgement = canonical(&deployment, &sandbox.id, request).await?;
        return Ok(data(&acknowledgement));
    }
    simple(&deployment, &sandbox.id, checked(body)?).await
}

async fn simple(
    deployment: &Shared,
    sandbox: &str,
    request: SimpleCancel,
) -> Result<Response, Fault> {
    if let Some(session) = &request.session_id {
        sessions::find(deployment, sandbox, session).await?;
    }
    let runs = deployment.runs.of(sandbox, |live| {
        let session = request.session_id.as_deref();
        let execution = request.execution_id.as_deref();
        session.is_none_or(|session| live.session == session)
            && execution.is_none_or(|execution| live.execution == execution)
    });
    for live in &runs {
        live.end(Ending::Cancelled);
    }
    let reason = runs.is_empty().then_some(NOT_RUNNING);
    Ok(data(&AbortAnswer {
        cancelled: !runs.is_empty(),
        reason: reason.map(str::to_owned),
        noop_reason: None,
        session: None,
    }))
}

/// What the ledger says of a request, and whether its run is to be ended.
struct Decision {
    status: ControlStatus,
    effect: CancelEffect,
    existing: Option<String>,
    message: Option<&'static str>,
    end: Option<i64>,
}

async fn canonical(
    deployment: &Shared,
    sandbox: &str,
    request: CancelRequest,
) -> Result<CancelAcknowledgement, Fault> {
    let (owner, sandbox, asked) = (deployment.clone(), sandbox.to_owned(), request.clone());
    // Whole: what the ledger says was requested is requested, although the caller may leave.
    let decision = lifecycle::whole(deployment, async move {
        let decided = owner
            .store
            .write::<_, Fault>(move |db| decide(db, &sandbox, &asked));
        let decision = decided.await?;
        if let Some(live) = decision.end.and_then(|pk| owner.runs.get(pk)) {
            live.end(Ending::Cancelled);
        }
        Ok(decision)
    })
    .await?;
    let existing = decision.existing.map(|digest| digest.parse()).transpose()?;
    Ok(CancelAcknowledgement {
        operation_id: request.operation_id,
        request_digest: request.request_digest,
        run: request.run,
        status: decision.status,
        effect: decision.effect,
        retryable: decision.message.is_some().then_some(false),
        message: decision.message.map(NonEmptyText::new).transpose()?,
        existing_request_digest: existing,
    })
}

impl Decision {
    fn new(status: ControlStatus, effect: CancelEffect) -> Self {
        Self {
            status,
            effect,
            existing: None,
            message: None,
            end: None,
        }
    }
}

fn decide(
    db: &rusqlite::Connection,
    sandbox: &str,
    request: &CancelRequest,
) -> Result<Decision, Fault> {
    let digest = request.request_digest.to_string();
    let run = &request.run;
    let known = cancels::get(db, sandbox, &request.operation_id)?;
    if let Some(known) = &known
        && known.digest != digest
    {
        return Ok(Decision {
            existing: Some(known.digest.clone()),
            ..Decision::new(ControlStatus::Conflict, CancelEffect::Unknown)
        });
    }
    let reference = serde_json::to_string(run).unwrap_or_default();
    let execution = executions::get(db, sandbox, &run.session_id, &run.execution_id)?
        .filter(|execution| execution.reference == reference);
    let end = execution
        .as_ref()
        .filter(|execution| !execution.ended())
        .map(|execution| execution.pk);
    if let Some(known) = known {
        // A run that still goes on is asked again; that changes nothing for one that is ending.
        return Ok(Decision {
            end,
            ..Decision::new(ControlStatus::Replayed, effect(&known.effect))
        });
    }
    if crate::store::sessions::get(db, sandbox, &run.session_id)?.is_none() {
        return Err(Fault::not_found("session", &run.session_id));
    }
    if execution.is_none() {
        return Ok(Decision {
            message: Some("no run of this session has this exact reference"),
            ..Decision::new(ControlStatus::Unknown, CancelEffect::Unknown)
        });
    }
    let name = match end {
        Some(_) => "cancel_requested",
        None => "not_live",
    };
    let row = CancelRow {
        digest,
        effect: name.to_owned(),
    };
    cancels::insert(db, sandbox, &request.operation_id, &row)?;
    Ok(Decision {
        end,
        ..Decision::new(ControlStatus::Accepted, effect(name))
    })
}

fn effect(name: &str) -> CancelEffect {
    match name {
        "not_live" => CancelEffect::NotLive,
        _ => CancelEffect::CancelRequested,
    }
}

/// `POST R/agents/sessions/{id}/abort`: stops what the session runs now, or only the named execution.
pub(super) async fn abort(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let session = call.parameter("session_id").to_owned();
    let body = value_or_empty(call.request, deployment.settings.run_body).await?;
    let (sandbox, _stay) = running.await?;
    let request: AbortRequest = checked(body)?;
    // Read before anything is stopped: an answer that says `cancelled` shows the session with the run that is ending, and
    // not by chance the end.
    let before = sessions::record(&deployment, &sandbox.id, &session).await?;
    let running = deployment
        .runs
        .of(&sandbox.id, |live| live.session == session);
    let running = running
        .first()
        .filter(|live| before.active_execution_id == Some(Value::from(live.execution.as_str())));
    let named = request.execution_id.as_deref();
    let (reason, session) = match running {
        None => {
            let after = sessions::record(&deployment, &sandbox.id, &session).await?;
            (Some(NOT_RUNNING), after)
        }
        Some(live) if named.is_some_and(|named| live.execution != named) => {
            (Some("execution-mismatch"), before)
        }
        Some(live) => {
            live.end(Ending::Cancelled);
            (None, before)
        }
    };
    Ok(data(&AbortAnswer {
        cancelled: reason.is_none(),
        reason: reason.map(str::to_owned),
        noop_reason: None,
        session: Some(json!(session)),
    }))
}
