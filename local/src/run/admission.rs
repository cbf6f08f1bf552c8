//! Whether a request starts a run, joins one, or is refused: one transaction decides (wire protocol, 2, 7.1, 7.6, 8.2).

use std::sync::{Arc, OnceLock};

use rusqlite::Connection;
use serde_json::{Map, Value};
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::retained::{NewRef, mint_ref};
use tangle_sandbox::contract::types::{
    ExecutionId, ExecutionStarted, Identifier, RunControlRef, SessionId, Status,
};

use super::backend::Chosen;
use super::live::{Live, Progress};
use super::reader::{self, Position};
use super::recorder::{frame, own_frame};
use crate::api::Shared;
use crate::api::answer::Fault;
use crate::ids::{mint, now};
use crate::store::executions::{self, ExecutionRow};
use crate::store::frames::{NewFrame, append};
use crate::store::sandboxes;
use crate::store::sessions::{self, SessionRow};

/// The provider in references that the deployment mints.
const PROVIDER: &str = "tangle-sandbox";

/// A request to run or to rejoin, as far as admission is concerned.
pub(crate) struct Asked {
    pub(crate) sandbox: String,
    pub(crate) session: Option<String>,
    pub(crate) execution: Option<String>,
    pub(crate) turn: Option<String>,
    pub(crate) reference: Option<RunControlRef>,
    /// Digest of the prompt; `None` when there is none, so that nothing can be started.
    pub(crate) input: Option<Digest>,
    /// The cursor of a rejoin. With one nothing is started.
    pub(crate) cursor: Option<String>,
    pub(crate) detach: bool,
    /// The agent of a new run, or why there is none. A run that was there needs no agent.
    pub(crate) chosen: Result<Chosen, Fault>,
    pub(crate) trace: Option<String>,
    /// The caller's context, as JSON.
    pub(crate) context: Option<String>,
}

/// A run that was recorded with its first frames, and is to be started.
pub(crate) struct Fresh {
    pub(crate) live: Arc<Live>,
    pub(crate) execution: ExecutionRow,
    pub(crate) session: SessionRow,
    pub(crate) chosen: Chosen,
}

/// What became of it.
pub(crate) enum Admitted {
    /// A new run.
    Fresh(Box<Fresh>),
    /// A run that was there, and where its reader begins.
    Known(Box<ExecutionRow>, Position),
}

/// Decides, and records the decision.
///
/// # Errors
///
/// 400 without input, 404 for an unknown execution, 409 `RUN_CONFLICT`, `TURN_CONFLICT`, `SESSION_BUSY`, 410 for a cursor
/// that was never issued. A request that is refused changes nothing.
pub(crate) async fn admit(deployment: &Shared, asked: Asked) -> Result<Admitted, Fault> {
    let decider = deployment.clone();
    let detach = asked.detach;
    let begun = Arc::new(OnceLock::new());
    let beginning = begun.clone();
    let decided = deployment
        .store
        .write(move |db| {
            let decided = decide(db, &asked);
            if let Ok(Admitted::Fresh(fresh)) = &decided {
                // Known before it is committed, so that nobody ever sees a running execution without its run.
                decider.runs.insert(fresh.execution.pk, fresh.live.clone());
                let _ = beginning.set(fresh.live.clone()); // this is the only place that sets it
            }
            decided
        })
        .await;
    if let (Err(_), Some(live)) = (&decided, begun.get()) {
        deployment.runs.forget(live); // it could not be committed
    }
    if let Ok(Admitted::Known(execution, _)) = &decided
        && detach
        && let Some(live) = deployment.runs.get(execution.pk)
    {
        live.detach();
    }
    decided
}

fn decide(db: &Connection, asked: &Asked) -> Result<Admitted, Fault> {
    if let Some(execution) = known(db, asked)? {
        let position = reader::position(db, &execution, asked.cursor.as_deref())?;
        if asked.detach && !execution.ended() {
            executions::set_detached(db, execution.pk)?;
        }
        return Ok(Admitted::Known(Box::new(execution), position));
    }
    let input = match asked.input {
        Some(input) if asked.cursor.is_none() => input,
        _ if asked.execution.is_some() => {
            let id = asked.execution.as_deref().unwrap_or_default();
            return Err(Fault::not_found("execution", id));
        }
        _ => return Err(Fault::field("message", "must not be empty for a new run")),
    };
    start(db, asked, input)
}

/// The execution that the request names, by its id or by its turn.
fn known(db: &Connection, asked: &Asked) -> Result<Option<ExecutionRow>, Fault> {
    let by_id = match (&asked.execution, &asked.session) {
        (Some(id), Some(session)) => executions::get(db, &asked.sandbox, session, id)?,
        (Some(id), None) => executions::find(db, &asked.sandbox, id)?,
        (None, _) => None,
    };
    if let Some(execution) = by_id {
        let other_turn = asked.turn.is_some() && asked.turn != execution.turn;
        if other_turn {
            let message = "the execution belongs to another turn";
            return Err(Fault::conflict("TURN_CONFLICT", message));
        }
        same_run(asked, &execution)?;
        same_prompt(asked, &execution)?;
        return Ok(Some(execution));
    }
    let (Some(turn), Some(session)) = (&asked.turn, &asked.session) else {
        return Ok(None);
    };
    let Some(execution) = executions::of_turn(db, &asked.sandbox, session, turn)? else {
        return Ok(None);
    };
    if asked.cursor.is_some() {
        return Ok(None); // a cursor names frames of one execution, which is not the turn's
    }
    same_prompt(asked, &execution)?;
    Ok(Some(execution))
}

/// A reference that is given must be the stored one.
fn same_run(asked: &Asked, execution: &ExecutionRow) -> Result<(), Fault> {
    let Some(reference) = &asked.reference else {
        return Ok(());
    };
    if serde_json::to_string(reference).is_ok_and(|text| text == execution.reference) {
        return Ok(());
    }
    Err(Fault::conflict(
        "RUN_CONFLICT",
        "the execution was admitted under another control reference",
    ))
}

/// Under a turn id a prompt that is given must be the first one.
fn same_prompt(asked: &Asked, execution: &ExecutionRow) -> Result<(), Fault> {
    match (&asked.turn, asked.input) {
        (Some(_), Some(input)) if input.to_string() != execution.input => Err(Fault::conflict(
            "TURN_CONFLICT",
            "the turn was run with another prompt",
        )),
        _ => Ok(()),
    }
}

fn start(db: &Connection, asked: &Asked, input: Digest) -> Result<Admitted, Fault> {
    let chosen = asked.chosen.clone()?;
    let id = asked.execution.clone().unwrap_or_else(|| mint("exe_"));
    let session = asked.session.clone().unwrap_or_else(|| mint("ses_"));
    let sandbox = sandboxes::get(db, &asked.sandbox)?;
    let sandbox = sandbox.ok_or_else(|| Fault::not_found("sandbox", &asked.sandbox))?;
    crate::api::must_run(&sandbox)?;
    let latest = executions::latest(db, &asked.sandbox, &session)?;
    if latest.is_some_and(|latest| !latest.ended()) {
        let message = "a turn of this session is running";
        return Err(Fault::conflict("SESSION_BUSY", message));
    }
    let reference = match &asked.reference {
        Some(reference) => reference.clone(),
        None => minted(&asked.sandbox, &session, &id)?,
    };
    let (record, existed) = enter_session(db, asked, &chosen, &session)?;
    let mut execution = ExecutionRow {
        pk: 0,
        sandbox: asked.sandbox.clone(),
        session,
        id,
        turn: asked.turn.clone(),
        input: input.to_string(),
        reference: serde_json::to_string(&reference)
            .map_err(|_| Fault::field("runControlRef", "cannot be written"))?,
        status: "running".to_owned(),
        detached: asked.detach,
        started_at: now(),
        completed_at: None,
        newest: 0,
        context: asked.context.clone(),
        failure: None,
    };
    let frames = first_frames(asked, &execution, &reference, existed);
    execution.pk = executions::insert(db, &execution)?;
    execution.newest = append(db, execution.pk, 0, &frames)?;
    sandboxes::set_activity(db, &asked.sandbox, execution.started_at)?;
    let e = &execution;
    let live = Arc::new(Live::new(&e.sandbox, &e.session, &e.id, e.detached));
    live.publish(Progress {
        newest: e.newest,
        ended: false,
    });
    Ok(Admitted::Fresh(Box::new(Fresh {
        live,
        execution,
        session: record,
        chosen,
    })))
}

/// The session of the run, and whether it was there before.
fn enter_session(
    db: &Connection,
    asked: &Asked,
    chosen: &Chosen,
    session: &str,
) -> Result<(SessionRow, bool), Fault> {
    let model = chosen.model.as_deref();
    if sessions::get(db, &asked.sandbox, session)?.is_some() {
        sessions::set_backend(db, &asked.sandbox, session, &chosen.name, model, now())?;
        let changed = sessions::get(db, &asked.sandbox, session)?;
        let changed = changed.ok_or_else(|| Fault::not_found("session", session))?;
        return Ok((changed, true));
    }
    let fresh = SessionRow {
        id: session.to_owned(),
        title: None,
        backend: chosen.name.clone(),
        model: chosen.model.clone(),
        native: None,
        created_at: now(),
        updated_at: now(),
    };
    sessions::insert(db, &asked.sandbox, &fresh)?;
    Ok((fresh, false))
}

/// A reference for a request that brings none.
fn minted(sandbox: &str, session: &str, execution: &str) -> Result<RunControlRef, Fault> {
    Ok(mint_ref(NewRef {
        provider: Identifier::new(PROVIDER)?,
        environment_id: Identifier::new(sandbox)?,
        session_id: SessionId::new(session)?,
        execution_id: ExecutionId::new(execution)?,
        run_id: None,
        request_digest: None,
    })?)
}

fn first_frames(
    asked: &Asked,
    execution: &ExecutionRow,
    reference: &RunControlRef,
    existed: bool,
) -> Vec<NewFrame> {
    let started = ExecutionStarted {
        execution_id: reference.execution_id.clone(),
        session_id: reference.session_id.clone(),
        request_digest: Some(reference.request_digest),
        run_control_ref: Some(reference.clone()),
        already_existed: Some(existed),
        dispatched: Some(true),
        status: Some("running".to_owned()),
        extra: Map::new(),
    };
    let mut frames = vec![
        own_frame("execution.started", &started),
        status_frame("running", execution),
    ];
    if let Some(trace) = &asked.trace {
        let data = Map::from_iter([("traceId".to_owned(), Value::from(trace.clone()))]);
        frames.push(frame("trace.id", data));
    }
    frames
}

/// `status` about an execution.
pub(super) fn status_frame(status: &str, execution: &ExecutionRow) -> NewFrame {
    let status = Status {
        status: status.to_owned(),
        execution_id: Some(execution.id.clone()),
        session_id: Some(execution.session.clone()),
        detail: None,
        extra: Map::new(),
    };
    own_frame("status", &status)
}
