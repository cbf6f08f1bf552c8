//! Stopping runs (wire protocol, 7.7 and 9.8).

use axum::response::Response;
use serde_json::{Value, json};
use tangle_sandbox::contract::types::{
    AbortAnswer, AbortRequest, BoundedText, CancelAcknowledgement, CancelEffect, CancelRequest,
    CancelStatus,
};

use super::Shared;
use super::answer::{Fault, data};
use super::call::Call;
use super::request::{checked, value_or_empty};
use super::sessions;
use crate::run::Ending;
use crate::store::cancels::{self, CancelRow};
use crate::store::executions;

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
    simple(&deployment, &sandbox.id, &body).await
}

async fn simple(deployment: &Shared, sandbox: &str, body: &Value) -> Result<Response, Fault> {
    let members = body
        .as_object()
        .ok_or_else(|| Fault::field("body", "must be an object"))?;
    for (name, value) in members {
        if !matches!(name.as_str(), "sessionId" | "executionId") {
            return Err(Fault::field(name, "is not a known field"));
        }
        if !value.is_string() {
            return Err(Fault::field(name, "must be a string"));
        }
    }
    let session = members.get("sessionId").and_then(Value::as_str);
    let execution = members.get("executionId").and_then(Value::as_str);
    if let Some(session) = session {
        sessions::find(deployment, sandbox, session).await?;
    }
    let runs = deployment.runs.of(sandbox, |live| {
        session.is_none_or(|session| live.session == session)
            && execution.is_none_or(|execution| live.execution == execution)
    });
    for live in &runs {
        live.end(Ending::Cancelled);
    }
    let reason = runs.is_empty().then_some("not-running");
    Ok(data(&AbortAnswer {
        cancelled: !runs.is_empty(),
        reason: reason.map(str::to_owned),
        noop_reason: None,
    }))
}

/// What the ledger says of a request, and whether its run is to be ended.
struct Decision {
    status: CancelStatus,
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
    let (owner, asked) = (sandbox.to_owned(), request.clone());
    let decision = deployment
        .store
        .write::<_, Fault>(move |db| decide(db, &owner, &asked))
        .await?;
    // Recorded, so that it may act.
    if let Some(live) = decision.end.and_then(|pk| deployment.runs.get(pk)) {
        live.end(Ending::Cancelled);
    }
    let existing = decision.existing.map(|digest| digest.parse()).transpose()?;
    Ok(CancelAcknowledgement {
        operation_id: request.operation_id,
        request_digest: request.request_digest,
        run: request.run,
        status: decision.status,
        effect: decision.effect,
        retryable: decision.message.is_some().then_some(false),
        message: decision.message.map(BoundedText::new).transpose()?,
        existing_request_digest: existing,
    })
}

fn decide(
    db: &rusqlite::Connection,
    sandbox: &str,
    request: &CancelRequest,
) -> Result<Decision, Fault> {
    let digest = request.request_digest.to_string();
    if let Some(known) = cancels::get(db, sandbox, &request.operation_id)? {
        return Ok(if known.digest == digest {
            Decision {
                status: CancelStatus::Replayed,
                effect: effect(&known.effect),
                existing: None,
                message: None,
                end: None,
            }
        } else {
            Decision {
                status: CancelStatus::Conflict,
                effect: CancelEffect::Unknown,
                existing: Some(known.digest),
                message: None,
                end: None,
            }
        });
    }
    let run = &request.run;
    if crate::store::sessions::get(db, sandbox, &run.session_id)?.is_none() {
        return Err(Fault::not_found("session", &run.session_id));
    }
    let execution = executions::get(db, sandbox, &run.session_id, &run.execution_id)?;
    let reference = serde_json::to_string(run).unwrap_or_default();
    let Some(execution) = execution.filter(|execution| execution.reference == reference) else {
        return Ok(Decision {
            status: CancelStatus::Unknown,
            effect: CancelEffect::Unknown,
            existing: None,
            message: Some("no run of this session has this exact reference"),
            end: None,
        });
    };
    let (effect, name) = match execution.ended() {
        true => (CancelEffect::NotLive, "not_live"),
        false => (CancelEffect::CancelRequested, "cancel_requested"),
    };
    let row = CancelRow {
        digest,
        effect: name.to_owned(),
    };
    cancels::insert(db, sandbox, &request.operation_id, &row)?;
    Ok(Decision {
        status: CancelStatus::Accepted,
        effect,
        existing: None,
        message: None,
        end: (!execution.ended()).then_some(execution.pk),
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
    sessions::find(&deployment, &sandbox.id, &session).await?;
    let active = deployment.runs.of(&sandbox.id, |live| {
        live.session == session && !live.follow().borrow().ended
    });
    let named = request.execution_id.as_deref();
    let reason = match active.first() {
        None => Some("not-running"),
        Some(live) if named.is_some_and(|named| live.execution != named) => {
            Some("execution-mismatch")
        }
        Some(live) => {
            live.end(Ending::Cancelled);
            None
        }
    };
    let record = sessions::record(&deployment, &sandbox.id, &session).await?;
    let mut answer = json!({ "cancelled": reason.is_none(), "session": record });
    if let Some(reason) = reason {
        answer["reason"] = reason.into();
    }
    Ok(data(&answer))
}
