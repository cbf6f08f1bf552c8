//! A run: attached to its events, or detached from them.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::time::Instant;

use crate::contract::types::{ExecutionId, RunControlRef, SessionId};
use crate::transport::Waits;

use super::error::{Error, Kept};
use super::event::Event;
use super::feed::Feed;
use super::inner::Settled;
use super::prompt::PromptResult;
use super::verdict::Verdict;

mod sealed {
    pub trait Sealed {}
}

/// Whether a run is attached to its events. Sealed: [`Attached`] and [`Detached`].
pub trait Attachment: sealed::Sealed + 'static {
    /// What a run in this state holds.
    #[doc(hidden)]
    type Held: Send;
}

/// The run yields events, and is cancelled when it is dropped.
pub struct Attached(());
/// The run goes on by itself; it has a reference to keep and no events.
pub struct Detached(());

impl sealed::Sealed for Attached {}
impl sealed::Sealed for Detached {}
impl Attachment for Attached {
    type Held = Box<Watched>;
}
impl Attachment for Detached {
    type Held = Box<RunControlRef>;
}

/// One run of an agent.
///
/// * [`Run<Attached>`](Attached) is a [`Stream`] of [`Event`]s. Dropping it says that the reader leaves: a task of the
///   client sends the cancel for exactly this execution, within 5 seconds; a failure of that is logged. A run that has
///   ended, or that another caller started, is only let go.
/// * [`Run<Detached>`](Detached) goes on without a reader. It holds the exact reference of the run
///   ([`control_ref`](Run::control_ref)) to store. It has no events. This version keeps the reference and names the run
///   with it; it has no member yet that controls or replays a run by a stored reference.
#[must_use = "an attached run is cancelled when it is dropped, and a detached one is known by its reference only"]
pub struct Run<A: Attachment> {
    held: A::Held,
    attachment: PhantomData<fn() -> A>,
}

/// An attached run's feed, and what was gathered from it. Dropping it cancels the run, unless it has ended, another
/// caller started it, or it was handed over.
#[doc(hidden)]
pub struct Watched {
    feed: Feed,
    verdict: Verdict,
    started: Instant,
    cancels: bool,
}

/// Events that may come before the one that admits a run.
const BEFORE_ADMISSION: usize = 64;

impl Run<Attached> {
    pub(crate) fn attached(feed: Feed) -> Self {
        let watched = Watched {
            verdict: Verdict::new(&feed.identity),
            feed,
            started: Instant::now(),
            cancels: true,
        };
        Run {
            held: Box::new(watched),
            attachment: PhantomData,
        }
    }

    /// The execution. It is known from the start and stays, except that the repeat of a turn gets the execution that ran
    /// it first.
    pub fn execution_id(&self) -> &ExecutionId {
        &self.held.feed.identity.execution
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.held.feed.identity.session
    }

    /// The id of the newest event that was handed out, with which this stream could be resumed.
    pub fn cursor(&self) -> Option<&str> {
        self.held.feed.cursor().map(|cursor| cursor.as_str())
    }

    /// The next event; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// When the service refuses to go on (`EVENT_CURSOR_UNKNOWN`, `NOT_FOUND`) or breaks the protocol. A lost connection
    /// is no error: the client comes back by itself, and when it may not or cannot, the last event is `error` with
    /// `STREAM_INTERRUPTED`.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| self.held.poll_event(cx)).await
    }

    /// Reads the rest of the events and gives the result of the run (wire protocol, 7.8 and 8.4). A lost stream is settled
    /// from the service's record, for as long as that says that the run goes on, before the result says
    /// [`Unknown`](super::PromptStatus::Unknown).
    ///
    /// # Errors
    ///
    /// When the service breaks the protocol.
    pub async fn result(mut self) -> Result<PromptResult, Error> {
        let mut settling = Settling::default();
        loop {
            while let Some(event) = self.next().await {
                match event {
                    Ok(_) => {}
                    Err(error) if self.held.feed.is_refused() => {
                        self.held.verdict.interrupt(error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
            if !self.held.settle(&mut settling).await {
                break;
            }
        }
        let elapsed = self.held.started.elapsed().as_secs_f64() * 1000.0;
        Ok(std::mem::take(&mut self.held.verdict).finish(elapsed))
    }

    /// Lets the run go on without a reader. The service has to agree before this side lets go; while it does not, the run
    /// comes back with the error. Dropping the future before that cancels the run.
    ///
    /// # Errors
    ///
    /// [`Kept`] with the attached run, which can be read on: the call failed, or the deployment names no exact reference
    /// (`NOT_SUPPORTED`).
    pub async fn detach(mut self) -> Result<Run<Detached>, Kept<Self>> {
        match self.held.hand_over().await {
            Ok(reference) => {
                self.held.cancels = false;
                Ok(Run::detached(reference))
            }
            Err(error) => Err(Kept::new(self, error)),
        }
    }

    /// Cancels the run and waits until the service has taken the cancel. Dropping the future before that leaves it to the
    /// background, as dropping the run does.
    ///
    /// # Errors
    ///
    /// When the cancel could not be sent or was refused; the run may then go on.
    pub async fn cancel(mut self) -> Result<(), Error> {
        let feed = &self.held.feed;
        let outcome = match feed.is_over() {
            true => Ok(()),
            false => feed.inner().cancel(&feed.identity).await,
        };
        self.held.cancels = false;
        outcome
    }
}

/// How often a run was found to go on without a new event.
#[derive(Default)]
struct Settling {
    fruitless: u32,
    cursor: Option<String>,
}

impl Settling {
    /// The wait before the run is looked at again: none after progress, then 5 seconds growing to 60.
    fn pause(&mut self, cursor: Option<&str>) -> Duration {
        if self.cursor.as_deref() != cursor {
            *self = Settling {
                fruitless: 0,
                cursor: cursor.map(str::to_owned),
            };
        }
        self.fruitless += 1;
        match self.fruitless {
            1 => Duration::ZERO,
            again => Waits::LIFECYCLE.wait(again - 1, 1.0),
        }
    }
}

impl Watched {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        let event = std::task::ready!(self.feed.poll_event(cx));
        if let Some(Ok(event)) = &event {
            self.verdict.take(event);
        }
        Poll::Ready(event)
    }

    async fn hand_over(&mut self) -> Result<RunControlRef, Error> {
        self.read_admission().await?;
        let feed = &self.feed;
        let Some(reference) = feed.identity.reference.clone() else {
            return Err(Error::Unsupported {
                operation: "detach",
                needs: "an exact run reference",
            });
        };
        feed.inner().rejoin(&feed.rejoin_request(true)).await?;
        Ok(reference)
    }

    /// Reads ahead until the run is admitted; what was read is handed out later.
    async fn read_admission(&mut self) -> Result<(), Error> {
        let feed = &mut self.feed;
        let before = feed.cursor().cloned();
        let mut read = Vec::new();
        let mut outcome = Ok(());
        while feed.receipt.is_none() && read.len() < BEFORE_ADMISSION {
            match std::future::poll_fn(|cx| feed.poll_event(cx)).await {
                Some(Ok(event)) => read.push(event),
                Some(Err(error)) => {
                    outcome = Err(error);
                    break;
                }
                None => break,
            }
        }
        feed.put_back(read, before);
        outcome
    }

    /// Asks the service's record about a run whose stream was lost; `true` when the run goes on and can be read again.
    async fn settle(&mut self, settling: &mut Settling) -> bool {
        while self.verdict.is_interrupted() {
            let feed = &mut self.feed;
            match feed.inner().clone().settle(&feed.identity).await {
                Settled::Running => {
                    let pause = settling.pause(feed.cursor().map(|cursor| cursor.as_str()));
                    tokio::time::sleep(pause).await;
                    // Events that the service does not hold cannot be read; the record still tells the end.
                    if !feed.is_refused() {
                        self.verdict.forget_interruption();
                        feed.reopen();
                        return true;
                    }
                }
                Settled::Over(outcome) => {
                    feed.note_over();
                    self.verdict.settle(*outcome);
                }
                Settled::Unknown => return false,
            }
        }
        false
    }
}

impl Stream for Run<Attached> {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.held.poll_event(cx)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let feed = &self.feed;
        if self.cancels && feed.identity.owned && !feed.is_over() {
            feed.inner().cancel_in_background(feed.identity.clone());
        }
    }
}

impl Run<Detached> {
    pub(crate) fn detached(reference: RunControlRef) -> Self {
        Run {
            held: Box::new(reference),
            attachment: PhantomData,
        }
    }

    /// The exact reference of this run, all six fields; store it.
    pub fn control_ref(&self) -> &RunControlRef {
        &self.held
    }
}

impl<A: Attachment> std::fmt::Debug for Run<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
