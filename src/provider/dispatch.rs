//! Dispatching a turn that outlives its reader (provider runtime, 8.2).

use std::future::IntoFuture;

use futures_util::future::BoxFuture;

use crate::contract::types::{RunControlRef, RunRequest, TurnId};
use crate::sandbox::{Detached, Error, Feed, Identity, Inner, Joined, Rejoin, Run};

use super::digest;
use super::turn::Turn;

/// A turn that is dispatched when it is awaited; gives a [`Run<Detached>`](Detached) with the exact reference of the run.
///
/// # Errors
///
/// A broken rule of the turn (nothing was sent), `TURN_CONFLICT` and `RUN_CONFLICT` for another turn under the same key,
/// `SESSION_BUSY`, `STREAM_INTERRUPTED` when the answer was lost before the run was admitted (repeat with the same turn
/// id), `PROTOCOL_ERROR` when the receipt names another run.
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
        let key = match turn.turn.take() {
            Some(key) => key,
            None => TurnId::new(format!("turn-{}", uuid::Uuid::new_v4()))?,
        };
        let session = match turn.session.take() {
            Some(session) => session,
            None => digest::session_id(inner.id(), &key)?,
        };
        turn.turn = Some(key);
        let reference = digest::mint(inner.id(), &session, &turn)?;
        let request = request(turn, &reference)?;
        request.rules()?;
        let Joined::Stream(stream) = inner.run_stream(&request).await? else {
            return Err(Error::protocol("dispatch", "a run answers with events"));
        };
        let identity = Identity {
            session: Some(session),
            execution: reference.execution_id.clone(),
            reference: None,
            admitted: false,
        };
        let mut feed = Feed::new(inner.clone(), stream, Rejoin::Automatic, identity);
        let admitted = admission(&mut feed).await?;
        Ok(Run::detached(check_receipt(&reference, admitted)?))
    }
}

impl<'a> IntoFuture for Dispatch<'a> {
    type Output = Result<Run<Detached>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

fn request(turn: Turn, reference: &RunControlRef) -> Result<RunRequest, Error> {
    let timeout = turn
        .deadline
        .map(|deadline| u64::try_from(deadline.get().as_millis()).unwrap_or(u64::MAX));
    let mut backend = turn.backend;
    if let Some(model) = turn.model {
        let block = backend.get_or_insert_default();
        let slot = &mut block.model.get_or_insert_default().model;
        let model = model.parse()?;
        if slot.as_ref().is_some_and(|given| *given != model) {
            return Err(crate::contract::check::Refused::new(
                "/model",
                "must be the model of the backend, when both are given",
            )
            .into());
        }
        *slot = Some(model);
    }
    Ok(RunRequest {
        message: Some(turn.prompt),
        session_id: Some(reference.session_id.clone()),
        execution_id: Some(reference.execution_id.clone()),
        turn_id: turn.turn,
        run_control_ref: Some(reference.clone()),
        detach: Some(true),
        backend,
        metadata: turn.context,
        interactions: turn.interactions,
        timeout_ms: timeout.map(TryInto::try_into).transpose()?,
        ..RunRequest::default()
    })
}

/// Reads until the run is admitted; what comes after stays with the service.
async fn admission(feed: &mut Feed) -> Result<Identity, Error> {
    loop {
        let event = std::future::poll_fn(|cx| feed.poll_event(cx)).await;
        if feed.identity.admitted {
            return Ok(feed.identity.clone());
        }
        match event.transpose()? {
            Some(event) if event.name == "error" => {
                return Err(Error::protocol(
                    "dispatch",
                    "the stream ended before the run was admitted",
                ));
            }
            Some(_) => {}
            None => {
                return Err(Error::protocol(
                    "dispatch",
                    "the stream ended before the run was admitted",
                ));
            }
        }
    }
}

/// The receipt has to name the run that was asked for; a run id of the platform's own is kept.
fn check_receipt(asked: &RunControlRef, admitted: Identity) -> Result<RunControlRef, Error> {
    let Some(mut receipt) = admitted.reference else {
        return Err(Error::protocol(
            "dispatch",
            "the receipt has no run reference",
        ));
    };
    let run_id = std::mem::replace(&mut receipt.run_id, asked.run_id.clone());
    if receipt != *asked {
        return Err(Error::protocol("dispatch", "the receipt names another run"));
    }
    receipt.run_id = run_id;
    Ok(receipt)
}
