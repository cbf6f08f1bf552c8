//! A run: attached to its events, or detached from them.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;

use crate::contract::limits;
use crate::contract::types::{ExecutionId, RunControlRef, SessionId};

use super::error::{Error, Kept};
use super::event::Event;
use super::feed::Feed;
use super::inner::Settled;
use super::prompt::{PromptResult, Verdict};

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
///   ended is only let go.
/// * [`Run<Detached>`](Detached) goes on without a reader. It holds the exact reference of the run
///   ([`control_ref`](Run::control_ref)), which can be stored and used from another process. It has no events: replay them
///   from an environment that proves `Replay`.
#[must_use = "dropping an attached run cancels it"]
pub struct Run<A: Attachment> {
    held: A::Held,
    attachment: PhantomData<fn() -> A>,
}

/// An attached run's feed, and what was gathered from it.
#[doc(hidden)]
pub struct Watched {
    /// `None` once the run was handed over; then dropping cancels nothing.
    feed: Option<Feed>,
    verdict: Verdict,
    started: Instant,
}

impl Run<Attached> {
    pub(crate) fn attached(feed: Feed) -> Self {
        let watched = Watched {
            feed: Some(feed),
            verdict: Verdict::default(),
            started: Instant::now(),
        };
        Run {
            held: Box::new(watched),
            attachment: PhantomData,
        }
    }

    /// The execution. It is known from the start and stays, except that the repeat of a turn gets the execution that ran
    /// it first.
    pub fn execution_id(&self) -> &ExecutionId {
        &self.feed().identity.execution
    }

    /// The session; `None` until the service has named it.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.feed().identity.session.as_ref()
    }

    /// The id of the newest event, with which this stream could be resumed.
    pub fn cursor(&self) -> Option<&str> {
        self.feed().cursor().map(|cursor| cursor.as_str())
    }

    /// The next event; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// When the service refuses to go on (`EVENT_CURSOR_UNKNOWN`, `NOT_FOUND`) or breaks the protocol. A lost connection
    /// is no error: the client comes back by itself, and when it may not or cannot, the last event is `error` with
    /// `STREAM_INTERRUPTED`.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Reads the rest of the events and gives the result of the run (wire protocol, 7.8 and 8.4). A lost stream is settled
    /// from the service's record before the result says [`Unknown`](super::PromptStatus::Unknown).
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn result(mut self) -> Result<PromptResult, Error> {
        loop {
            while let Some(event) = self.next().await {
                event?;
            }
            if !self.settle().await {
                break;
            }
        }
        let elapsed = self.held.started.elapsed().as_secs_f64() * 1000.0;
        Ok(std::mem::take(&mut self.held.verdict).finish(elapsed))
    }

    /// Lets the run go on without a reader. The service has to agree before this side lets go; while it does not, the run
    /// comes back with the error.
    ///
    /// # Errors
    ///
    /// [`Kept`] with the attached run: the call failed, or the deployment names no exact reference (`NOT_SUPPORTED`).
    pub async fn detach(mut self) -> Result<Run<Detached>, Kept<Self>> {
        match self.hand_over().await {
            Ok(reference) => {
                self.held.feed = None;
                Ok(Run::detached(reference))
            }
            Err(error) => Err(Kept::new(self, error)),
        }
    }

    /// Cancels the run and waits until the service has taken the cancel.
    ///
    /// # Errors
    ///
    /// When the cancel could not be sent or was refused; the run may then go on.
    pub async fn cancel(mut self) -> Result<(), Error> {
        match self.held.feed.take() {
            Some(feed) if !feed.is_over() => feed.inner().cancel(&feed.identity).await,
            _ => Ok(()),
        }
    }

    async fn hand_over(&mut self) -> Result<RunControlRef, Error> {
        let mut ahead = Vec::new();
        while !self.feed().identity.admitted {
            match self.next().await {
                Some(Ok(event)) => ahead.push(event),
                Some(Err(error)) => return Err(error),
                None => break,
            }
        }
        let feed = self.feed_mut();
        for event in ahead {
            feed.put_back(event);
        }
        let Some(reference) = feed.identity.reference.clone() else {
            return Err(Error::Unsupported {
                operation: "detach",
                needs: "an exact run reference",
            });
        };
        let request = feed.rejoin_request(true);
        feed.inner().clone().rejoin(request).await?;
        Ok(reference)
    }

    /// Asks the service's record about a run whose stream was lost; `true` when the run goes on and can be read again.
    async fn settle(&mut self) -> bool {
        let watched = &mut *self.held;
        let Some(feed) = &mut watched.feed else {
            return false;
        };
        let lost = watched.verdict.is_interrupted();
        if !lost && !feed.ended_unseen() {
            return false;
        }
        let settled = feed.inner().clone().settle(&feed.identity, lost).await;
        match settled {
            Settled::Running => {
                watched.verdict.forget_interruption();
                feed.reopen();
                true
            }
            Settled::Over(outcome) => {
                watched.verdict.forget_interruption();
                watched.verdict.settle(*outcome);
                false
            }
            Settled::Unknown => false,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        let watched = &mut *self.held;
        let Some(feed) = &mut watched.feed else {
            return Poll::Ready(None);
        };
        let event = std::task::ready!(feed.poll_event(cx));
        if let Some(Ok(event)) = &event {
            watched.verdict.take(event);
        }
        Poll::Ready(event)
    }

    fn feed(&self) -> &Feed {
        match &self.held.feed {
            Some(feed) => feed,
            // Only `detach` and `cancel` take the feed out, and both consume the run.
            None => unreachable!("a run without its feed is never handed out"),
        }
    }

    fn feed_mut(&mut self) -> &mut Feed {
        match &mut self.held.feed {
            Some(feed) => feed,
            None => unreachable!("a run without its feed is never handed out"),
        }
    }
}

impl Stream for Run<Attached> {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some(feed) = self.feed.take().filter(|feed| !feed.is_over()) else {
            return;
        };
        let (inner, identity) = (feed.inner().clone(), feed.identity.clone());
        // The body is closed with the feed; the cancel says that the reader left on purpose.
        drop(feed);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            tracing::warn!(execution = %identity.execution, "a run was dropped outside of a runtime; the service ends it after its grace");
            return;
        };
        runtime.spawn(async move {
            let limit = Duration::from_millis(limits::INTERACTION_TIMEOUT_MS as u64);
            let cancel = inner.cancel(&identity);
            match tokio::time::timeout(limit, cancel).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(execution = %identity.execution, %error, "the cancel of a dropped run failed");
                }
                Err(_) => {
                    tracing::warn!(execution = %identity.execution, "the cancel of a dropped run took too long");
                }
            }
        });
    }
}

impl Run<Detached> {
    pub(crate) fn detached(reference: RunControlRef) -> Self {
        Run {
            held: Box::new(reference),
            attachment: PhantomData,
        }
    }

    /// The exact reference of this run: store it, and control the run from wherever it is read again.
    pub fn control_ref(&self) -> &RunControlRef {
        &self.held
    }
}

impl<A: Attachment> std::fmt::Debug for Run<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
