//! Dispatching a turn that outlives its reader (provider runtime, 8.2).

use std::future::IntoFuture;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::contract::check::Refused;
use crate::contract::retained::Target;
use crate::contract::turn::ResolvedTurn;
use crate::contract::types::{ExecutionStarted, RunControlRef, RunRequest, TurnId};
use crate::contract::verify;
use crate::sandbox::{
    Detached, Error, Event, EventKind, Feed, INTERRUPTED, Identity, Inner, Joined, Rejoin, Run,
};
use crate::transport::{self, Code};

use super::digest;
use super::turn::Turn;

const OPERATION: &str = "dispatch";

/// A turn that is dispatched when it is awaited; gives a [`Run<Detached>`](Detached) with the exact reference of the run.
///
/// # Errors
///
/// A broken rule of the turn (nothing was sent), `TURN_CONFLICT` and `RUN_CONFLICT` for another turn under the same key,
/// `SESSION_BUSY`, `STREAM_INTERRUPTED` when the answer was lost before the run was admitted (repeat with the same turn
/// id), `PROTOCOL_ERROR` when the receipt names no run or another one. A run that such a receipt proves to be started by
/// this call is cancelled. Dropping the future leaves a run that may have started, under the same turn id.
#[must_use = "nothing is dispatched until this is awaited"]
#[derive(Debug)]
pub struct Dispatch<'a> {
    inner: &'a Inner,
    turn: Turn,
}

impl<'a> Dispatch<'a> {
    pub(crate) fn new(inner: &'a Inner, turn: Turn) -> Self {
        Dispatch { inner, turn }
    }

    /// The key of this turn; without one, each dispatch is a turn of its own.
    pub fn turn_id(mut self, turn: TurnId) -> Self {
        self.turn.turn = Some(turn);
        self
    }

    async fn send(self) -> Result<Run<Detached>, Error> {
        let Dispatch { inner, mut turn } = self;
        if turn.prompt.is_empty() {
            // An empty text would ask for the frames of a run that exists.
            return Err(Refused::new("/prompt", "must not be empty").into());
        }
        let key = match turn.turn.take() {
            Some(key) => key,
            None => TurnId::new(format!("turn-{}", uuid::Uuid::new_v4()))?,
        };
        let session = match turn.session.take() {
            Some(session) => session,
            None => digest::session_id(inner.id(), &key)?,
        };
        turn.turn = Some(key.clone());
        let turn = turn.into_input()?.resolve().map_err(Refused::from)?;
        let reference = digest::mint(inner.id(), &session, &turn)?;
        let request = request(&turn, &reference)?;
        verify(&request)?;
        request.rules()?;
        let Joined::Stream(stream) = inner.start(&request).await? else {
            return Err(Error::protocol(OPERATION, "a run answers with events"));
        };
        let identity = Identity {
            session,
            execution: reference.execution_id.clone(),
            turn: Some(key),
            reference: None,
            minted: false,
            owned: false,
        };
        let mut feed = Feed::new(inner.clone(), stream, Rejoin::Automatic, identity);
        let admitted = match admission(&mut feed).await {
            Ok(()) => check_receipt(&reference, feed.receipt.as_deref()),
            Err(error) => Err(error),
        };
        if admitted.is_err() {
            interrupt(feed);
        }
        Ok(Run::detached(admitted?))
    }
}

impl<'a> IntoFuture for Dispatch<'a> {
    type Output = Result<Run<Detached>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The body of a turn. The wire has no model beside the backend block, so that the model of the turn goes into it.
fn request(turn: &ResolvedTurn, reference: &RunControlRef) -> Result<RunRequest, Refused> {
    let mut backend = turn.backend();
    let turn = turn.input();
    if let Some(model) = &turn.model {
        let model = model
            .parse()
            .map_err(|refused: Refused| refused.under("/model"))?;
        let block = backend.get_or_insert_default();
        block.model.get_or_insert_default().model = Some(model);
    }
    Ok(RunRequest {
        message: turn.prompt.as_ref().map(ToString::to_string),
        session_id: Some(reference.session_id.clone()),
        execution_id: Some(reference.execution_id.clone()),
        turn_id: turn.turn_id.clone(),
        run_control_ref: Some(reference.clone()),
        detach: Some(true),
        backend,
        metadata: turn.context.clone(),
        interactions: turn.interactions.clone(),
        timeout_ms: turn.timeout_ms,
        ..RunRequest::default()
    })
}

/// Reads until the run is admitted; what comes after stays with the service.
async fn admission(feed: &mut Feed) -> Result<(), Error> {
    loop {
        let event = std::future::poll_fn(|cx| feed.poll_event(cx)).await;
        if feed.receipt.is_some() {
            return event.transpose().map(drop);
        }
        match event {
            Some(Ok(event)) => unadmitted(&event)?,
            // A run that the service does not know was never admitted.
            Some(Err(Error::Call(transport::Error::NotFound { .. }))) | None => {
                return Err(Error::Interrupted {
                    operation: OPERATION,
                });
            }
            Some(Err(error)) => return Err(error),
        }
    }
}

/// An event that says that the admission will not come.
fn unadmitted(event: &Event) -> Result<(), Error> {
    match &event.kind {
        EventKind::Error(error) if error.code.as_deref() == Some(INTERRUPTED) => {
            Err(Error::Interrupted {
                operation: OPERATION,
            })
        }
        EventKind::Error(error) => Err(Error::NotAdmitted {
            operation: OPERATION,
            code: Code::from(error.code.as_deref().unwrap_or("UNKNOWN_ERROR")),
            message: error.message.clone(),
        }),
        kind if names_an_execution(kind) => Err(Error::protocol(
            OPERATION,
            "the receipt has no run reference that can be read",
        )),
        _ => Ok(()),
    }
}

/// An older service admits a run by any event that names its execution.
fn names_an_execution(kind: &EventKind) -> bool {
    match kind {
        EventKind::Status(status) => status.execution_id.is_some(),
        EventKind::Result(_) | EventKind::Done(_) => true,
        EventKind::Raw(data) => data.get("executionId").is_some_and(Value::is_string),
        _ => false,
    }
}

/// The receipt has to name the run that was asked for; a run id of the platform's own is kept.
fn check_receipt(
    asked: &RunControlRef,
    receipt: Option<&ExecutionStarted>,
) -> Result<RunControlRef, Error> {
    let no = |rule: &str| Err(Error::protocol(OPERATION, rule));
    let Some(reference) = receipt.and_then(|receipt| receipt.run_control_ref.clone()) else {
        return no("the receipt has no run reference");
    };
    match Target::from(asked).difference(&reference) {
        None => Ok(reference),
        Some(_) => no("the receipt names another run"),
    }
}

/// Ends a run whose receipt was refused, if the receipt proves that this call started it: nobody could reach it any more.
fn interrupt(feed: Feed) {
    let started = feed.receipt.as_ref().is_some_and(|receipt| {
        receipt.dispatched == Some(true) && receipt.already_existed != Some(true)
    });
    if started {
        let mut identity = feed.identity.clone();
        identity.reference = None;
        feed.inner().cancel_in_background(identity);
    }
}
