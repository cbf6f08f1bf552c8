//! Sessions, their runs and results (wire protocol, 8.3, 9.1 to 9.3, 9.5, 9.7, 9.9).

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};
use tangle_sandbox::contract::types::{
    ActiveExecution, CreateSession, FailureReason, RunControlRef, RunList, RunRecord, SessionId,
    SessionList, SessionRecord, TurnRecord,
};

use super::Shared;
use super::answer::{Fault, data, success, with_status};
use super::call::Call;
use super::create::known;
use super::request::{document, flag, header_text, parameter, query};
use crate::ids::{mint, now, rfc3339};
use crate::run::backend::choose;
use crate::run::reader::{self, Position};
use crate::store::StoreError;
use crate::store::executions::{self, ExecutionRow};
use crate::store::sessions::{self, SessionRow};

/// How long a forced delete waits for the run to end: longer than an agent may take for it.
const END_OF_RUN: Duration = Duration::from_secs(20);

/// The session, or 404.
pub(super) async fn find(
    deployment: &Shared,
    sandbox: &str,
    session: &str,
) -> Result<SessionRow, Fault> {
    let (owner, wanted) = (sandbox.to_owned(), session.to_owned());
    let found = deployment
        .store
        .read::<_, StoreError>(move |db| sessions::get(db, &owner, &wanted))
        .await?;
    found.ok_or_else(|| Fault::not_found("session", session))
}

/// The execution of a session, or 404.
pub(super) async fn find_execution(
    deployment: &Shared,
    sandbox: &str,
    session: &str,
    execution: &str,
) -> Result<ExecutionRow, Fault> {
    let (owner, of, wanted) = (sandbox.to_owned(), session.to_owned(), execution.to_owned());
    let found = deployment
        .store
        .read::<_, StoreError>(move |db| executions::get(db, &owner, &of, &wanted))
        .await?;
    found.ok_or_else(|| Fault::not_found("execution", execution))
}

/// The record of a session as it is now.
pub(super) async fn record(
    deployment: &Shared,
    sandbox: &str,
    session: &str,
) -> Result<SessionRecord, Fault> {
    let row = find(deployment, sandbox, session).await?;
    let (owner, wanted) = (sandbox.to_owned(), session.to_owned());
    let latest = deployment
        .store
        .read::<_, StoreError>(move |db| executions::latest(db, &owner, &wanted))
        .await?;
    described(deployment, &row, latest.as_ref())
}

/// Whether the execution goes on. One that has ended without a record of its end, since the disk is full, does not: who
/// waits for it would wait for room.
fn goes_on(deployment: &Shared, execution: &ExecutionRow) -> bool {
    let live = deployment.runs.get(execution.pk);
    !execution.ended() && live.is_none_or(|live| !live.follow().borrow().ended)
}

fn described(
    deployment: &Shared,
    row: &SessionRow,
    latest: Option<&ExecutionRow>,
) -> Result<SessionRecord, Fault> {
    let active = latest.filter(|execution| goes_on(deployment, execution));
    let state = match (active, latest) {
        (Some(_), _) => "running",
        (None, Some(latest)) if latest.status == "failed" => "failed",
        _ => "idle",
    };
    let reference: Option<RunControlRef> =
        latest.and_then(|execution| serde_json::from_str(&execution.reference).ok());
    let mut extra = Map::new();
    extra.insert("terminalReason".to_owned(), Value::Null);
    extra.insert("registryAuthority".to_owned(), Value::Null);
    extra.insert("lastEventAt".to_owned(), rfc3339(row.updated_at).into());
    if let Some(model) = &row.model {
        extra.insert("effectiveBackend".to_owned(), json!({ "model": model }));
    }
    Ok(SessionRecord {
        id: SessionId::new(&*row.id)?,
        title: row.title.clone(),
        backend: Some(json!(row.backend)),
        model: row.model.clone(),
        state: Some(state.to_owned()),
        status: Some(state.to_owned()),
        active_execution_id: Some(json!(active.map(|execution| &execution.id))),
        active_execution: Some(match active {
            Some(execution) => json!(ActiveExecution {
                id: execution.id.clone(),
                status: Some(execution.status.clone()),
                extra: Map::new(),
            }),
            None => Value::Null,
        }),
        latest_execution_id: latest.map(|execution| execution.id.clone()),
        run_control_ref: reference,
        failure_reason: latest.and_then(failure),
        reconnectable: Some(active.is_some()),
        last_event_id: latest.map(|execution| execution.newest.to_string()),
        outstanding_interactions: Some(Vec::new()),
        interactions: None,
        created_at: Some(rfc3339(row.created_at)),
        updated_at: Some(rfc3339(row.updated_at)),
        extra,
    })
}

fn failure(execution: &ExecutionRow) -> Option<FailureReason> {
    let failure = execution.failure.as_ref()?;
    Some(FailureReason {
        execution_id: Some(execution.id.clone()),
        code: failure.code.clone(),
        message: failure.message.clone(),
        extra: Map::new(),
    })
}

/// `POST R/agents/sessions`.
pub(super) async fn create(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let wanted: CreateSession = document(call.request, deployment.settings.run_body).await?;
    let (sandbox, _stay) = running.await?;
    if !sandbox.managed {
        return Err(Fault::not_supported(
            "sessions in a sandbox that was made with `agent: false`",
        ));
    }
    if wanted
        .retention
        .as_deref()
        .is_some_and(|kept| kept != "workspace")
    {
        return Err(Fault::field_not_supported(
            "retention",
            "a session is kept as long as its sandbox, which is `workspace`",
        ));
    }
    let backend = match &wanted.backend {
        Some(backend) => Some(known(&deployment, backend, true)?),
        None => None,
    };
    let named = backend
        .as_ref()
        .and_then(|backend| backend.type_.as_deref())
        .map(str::to_owned);
    let chosen = choose(&deployment, &sandbox, backend.as_ref())?;
    let fresh = SessionRow {
        id: wanted.session_id.map_or_else(|| mint("ses_"), String::from),
        title: wanted.title.map(String::from),
        backend: chosen.name,
        model: chosen.model,
        native: None,
        created_at: now(),
        updated_at: now(),
    };
    let (owner, row) = (sandbox.id.clone(), fresh.clone());
    let existing = deployment
        .store
        .write::<_, StoreError>(move |db| {
            let existing = sessions::get(db, &owner, &row.id)?;
            if existing.is_none() {
                sessions::insert(db, &owner, &row)?;
            }
            Ok(existing)
        })
        .await?;
    let status = match &existing {
        None => StatusCode::CREATED,
        Some(known) if named.is_some_and(|named| named != known.backend) => {
            return Err(Fault::conflict(
                "INVALID_STATE",
                "the session exists with another backend",
            )
            .with("currentState", "existing"));
        }
        Some(_) => StatusCode::OK,
    };
    let record = record(&deployment, &sandbox.id, &fresh.id).await?;
    Ok(with_status(status, "data", &json!({ "session": record })))
}

/// `GET R/agents/sessions?status=&backend=`.
pub(super) async fn list(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let query = query(&call.request)?;
    let (status, backend) = (parameter(&query, "status"), parameter(&query, "backend"));
    let owner = sandbox.id.clone();
    let rows = call
        .deployment
        .store
        .read::<_, StoreError>(move |db| {
            let rows = sessions::list(db, &owner)?;
            rows.into_iter()
                .map(|row| Ok((executions::latest(db, &owner, &row.id)?, row)))
                .collect::<Result<Vec<_>, StoreError>>()
        })
        .await?;
    let mut records = Vec::with_capacity(rows.len());
    for (latest, row) in &rows {
        let record = described(&call.deployment, row, latest.as_ref())?;
        let fits = status.is_none_or(|status| record.state.as_deref() == Some(status))
            && backend.is_none_or(|backend| row.backend == backend);
        if fits {
            records.push(record);
        }
    }
    Ok(data(&SessionList { sessions: records }))
}

/// `GET R/agents/sessions/{id}`.
pub(super) async fn get(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let session = call.parameter("session_id");
    Ok(data(&record(&call.deployment, &sandbox.id, session).await?))
}

/// `DELETE R/agents/sessions/{id}`: its frames and results go with it.
pub(super) async fn remove(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let force = flag(&query(&call.request)?, "force")?;
    let (deployment, session) = (&call.deployment, call.parameter("session_id").to_owned());
    find(deployment, &sandbox.id, &session).await?;
    let runs = deployment
        .runs
        .of(&sandbox.id, |live| live.session == session);
    for live in runs {
        if !force {
            return Err(
                Fault::conflict("INVALID_STATE", "a run of the session is active")
                    .with("currentState", "running"),
            );
        }
        live.end(crate::run::Ending::Cancelled);
        let mut progress = live.follow();
        let over = progress.wait_for(|progress| progress.ended); // a run that is gone has ended too
        if tokio::time::timeout(END_OF_RUN, over).await.is_err() {
            break; // it is refused below
        }
    }
    deployment.warm.end_session(&sandbox.id, &session).await;
    let owner = sandbox.id.clone();
    deployment
        .store
        .write::<_, Fault>(move |db| {
            let latest = executions::latest(db, &owner, &session)?;
            if latest.is_some_and(|latest| !latest.ended()) {
                return Err(
                    Fault::conflict("INVALID_STATE", "a run of the session is active")
                        .with("currentState", "running"),
                );
            }
            Ok(sessions::erase(db, &owner, &session)?)
        })
        .await?;
    Ok(success())
}

/// `GET R/agents/sessions/{id}/runs`, newest first.
pub(super) async fn runs(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let session = call.parameter("session_id").to_owned();
    find(&call.deployment, &sandbox.id, &session).await?;
    let rows = call
        .deployment
        .store
        .read::<_, StoreError>(move |db| executions::list(db, &sandbox.id, &session))
        .await?;
    Ok(data(&RunList {
        runs: rows.iter().map(run_record).collect(),
    }))
}

fn run_record(execution: &ExecutionRow) -> RunRecord {
    RunRecord {
        execution_id: execution.id.clone(),
        session_id: execution.session.clone(),
        status: execution.status.clone(),
        started_at: Some(rfc3339(execution.started_at)),
        completed_at: execution.completed_at.map(rfc3339),
        event_count: Some(execution.newest),
        last_event_id: (execution.newest > 0).then(|| execution.newest.to_string()),
        extra: Map::new(),
    }
}

/// The execution that the path names.
fn named(call: &Call) -> impl Future<Output = Result<ExecutionRow, Fault>> + Send + use<> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let session = call.parameter("session_id").to_owned();
    let execution = call.parameter("execution_id").to_owned();
    async move {
        let (sandbox, _stay) = running.await?;
        find(&deployment, &sandbox.id, &session).await?;
        find_execution(&deployment, &sandbox.id, &session, &execution).await
    }
}

/// `GET R/agents/sessions/{id}/runs/{executionId}`.
pub(super) async fn run(call: Call) -> Result<Response, Fault> {
    Ok(data(&run_record(&named(&call).await?)))
}

/// `GET R/agents/sessions/{id}/runs/{executionId}/result`: 202 while it runs.
pub(super) async fn result(call: Call) -> Result<Response, Fault> {
    let deployment = call.deployment.clone();
    let execution = named(&call).await?;
    let result = result_of(&deployment, &execution).await?;
    let status = match execution.ended() {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    Ok(with_status(status, "data", &result))
}

/// The result exactly as it is recorded; only ids and the status while the execution runs.
pub(super) async fn result_of(
    deployment: &Shared,
    execution: &ExecutionRow,
) -> Result<Value, Fault> {
    let pk = execution.pk;
    let recorded = match execution.ended() {
        true => {
            let result = deployment
                .store
                .read::<_, StoreError>(move |db| executions::result(db, pk));
            result.await?
        }
        false => None,
    };
    let recorded = recorded.and_then(|result| serde_json::from_str(&result).ok());
    Ok(recorded.unwrap_or_else(|| {
        json!({
            "status": execution.status,
            "executionId": execution.id,
            "sessionId": execution.session,
        })
    }))
}

/// `GET R/agents/sessions/{id}/turns/{turnId}`.
pub(super) async fn turn(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let deployment = call.deployment.clone();
    let (session, turn) = (
        call.parameter("session_id").to_owned(),
        call.parameter("turn_id").to_owned(),
    );
    find(&call.deployment, &sandbox.id, &session).await?;
    let (of, wanted) = (session.clone(), turn.clone());
    let found = call
        .deployment
        .store
        .read::<_, StoreError>(move |db| executions::of_turn(db, &sandbox.id, &of, &wanted))
        .await?;
    let execution = found.ok_or_else(|| Fault::not_found("turn", &turn))?;
    let record = TurnRecord {
        turn_id: turn,
        session_id: session,
        execution_id: execution.id.clone(),
        status: execution.status.clone(),
        result: None,
    };
    if !execution.ended() {
        return Ok(data(&record));
    }
    // The result stands there as the result route gives it, number by number.
    let mut record = json!(record);
    record["result"] = result_of(&deployment, &execution).await?;
    Ok(data(&record))
}

/// `GET R/agents/sessions/{id}/events?executionId=&lastEventId=`: the events of one execution.
pub(super) async fn events(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let query = query(&call.request)?;
    let session = call.parameter("session_id");
    find(&call.deployment, &sandbox.id, session).await?;
    let id = parameter(&query, "executionId").ok_or_else(|| {
        Fault::not_supported(
            "the live tail of a session: name one of its executions with `executionId`",
        )
    })?;
    let header = header_text(call.request.headers(), "last-event-id")?;
    let cursor = match (parameter(&query, "lastEventId"), header) {
        (Some(query), Some(header)) if query != header => {
            return Err(Fault::field(
                "lastEventId",
                "must be the cursor of the header `Last-Event-ID`",
            ));
        }
        (query, header) => query.or(header).map(str::to_owned),
    };
    let deployment = call.deployment.clone();
    let execution = find_execution(&deployment, &sandbox.id, session, id).await?;
    let attached = deployment.runs.get(execution.pk);
    let attached = attached.map(|live| live.attach(&deployment));
    let joined = execution.clone();
    let position = deployment
        .store
        .read(move |db| reader::position(db, &joined, cursor.as_deref()));
    match position.await? {
        Position::Over => Ok(StatusCode::NO_CONTENT.into_response()),
        Position::After(number) => Ok(reader::answer(
            &deployment,
            &execution,
            number,
            attached,
            false,
        )),
    }
}
