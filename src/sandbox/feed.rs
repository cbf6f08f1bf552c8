//! The events of one run over as many connections as it takes.
//!
//! A feed is a state machine:
//!
//! | state | meaning | on failure |
//! |---|---|---|
//! | `Open` | frames come | the body ends or breaks before a terminal event: `Waiting`; a frame breaks the protocol: error, `Closed` |
//! | `Waiting` | pause before the next rejoin | – |
//! | `Joining` | the rejoin is under way | transient: `Waiting`, until three in a row brought no frame, then the event `STREAM_INTERRUPTED`, `Closed`; refused: error, `Closed` |
//! | `Closed` | nothing more comes | – |
//!
//! The cursor is the id of the newest frame that was handed out. It never moves back, and a frame that was seen is not
//! handed out again.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;

use crate::contract::limits;
use crate::contract::types::{EventId, ExecutionId, RunControlRef, RunRequest, SessionId};
use crate::transport::EventStream;

use super::error::Error;
use super::event::{Event, EventKind};
use super::inner::Inner;
use super::prompt::{INTERRUPTED, Rejoin};

/// Waits before the rejoins that follow each other without a new frame.
const REJOIN_WAITS: [Duration; limits::REJOIN_ATTEMPTS] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// What answers a rejoin: a stream, or that nothing comes after the cursor.
pub(crate) enum Joined {
    Stream(Box<EventStream>),
    Over,
}

enum Link {
    Open(Box<EventStream>),
    Waiting(Pin<Box<tokio::time::Sleep>>),
    Joining(BoxFuture<'static, Result<Joined, Error>>),
    Closed,
}

/// What is known of a run.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub session: Option<SessionId>,
    pub execution: ExecutionId,
    /// The exact reference, once the service has admitted the run under one.
    pub reference: Option<RunControlRef>,
    pub admitted: bool,
}

pub(crate) struct Feed {
    inner: Inner,
    link: Link,
    rejoin: Rejoin,
    attempts: usize,
    pub identity: Identity,
    cursor: Option<EventId>,
    seen: Seen,
    /// Events that were read ahead, to be handed out first.
    ahead: VecDeque<Event>,
}

/// Which ends of the run were seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    terminal: bool,
    done: bool,
    broken_step: bool,
    /// A rejoin said that the run is over, but no terminal event was handed out.
    over: bool,
}

impl Feed {
    pub fn new(inner: Inner, stream: Box<EventStream>, rejoin: Rejoin, identity: Identity) -> Self {
        Feed {
            inner,
            link: Link::Open(stream),
            rejoin,
            attempts: 0,
            identity,
            cursor: None,
            seen: Seen::default(),
            ahead: VecDeque::new(),
        }
    }

    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    pub fn cursor(&self) -> Option<&EventId> {
        self.cursor.as_ref()
    }

    /// Whether the run has ended, as far as the events tell.
    pub fn is_over(&self) -> bool {
        self.seen.terminal || self.seen.over
    }

    /// Whether the service said that the run is over without a terminal event; the recorded result tells how.
    pub fn ended_unseen(&self) -> bool {
        self.seen.over && !self.seen.terminal
    }

    /// Puts an event back, to be handed out next.
    pub fn put_back(&mut self, event: Event) {
        self.ahead.push_back(event);
    }

    /// Starts anew after the stream was given up, since the run was found to go on.
    pub fn reopen(&mut self) {
        self.attempts = 0;
        self.link = Link::Joining(self.join());
    }

    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(event) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        loop {
            let step = match &mut self.link {
                Link::Closed => return Poll::Ready(None),
                Link::Open(stream) => {
                    match std::task::ready!(Pin::new(&mut **stream).poll_next(cx)) {
                        Some(Ok(frame)) => self.frame(frame),
                        Some(Err(error)) if is_cut(&error) => self.cut(),
                        Some(Err(error)) => Step::Fail(error.into()),
                        None => self.cut(),
                    }
                }
                Link::Waiting(pause) => {
                    std::task::ready!(pause.as_mut().poll(cx));
                    Step::Link(Link::Joining(self.join()))
                }
                Link::Joining(joining) => match std::task::ready!(joining.as_mut().poll(cx)) {
                    Ok(Joined::Stream(stream)) => Step::Link(Link::Open(stream)),
                    Ok(Joined::Over) => {
                        self.seen.over = true;
                        Step::End
                    }
                    Err(error) if error.is_retryable() => self.cut(),
                    Err(error) => Step::Fail(error),
                },
            };
            match step {
                Step::Skip => {}
                Step::Link(link) => self.link = link,
                Step::Give(event) => return Poll::Ready(Some(Ok(*event))),
                Step::Last(event) => {
                    self.link = Link::Closed;
                    return Poll::Ready(Some(Ok(*event)));
                }
                Step::Fail(error) => {
                    self.link = Link::Closed;
                    return Poll::Ready(Some(Err(error)));
                }
                Step::End => {
                    self.link = Link::Closed;
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// One frame came.
    fn frame(&mut self, frame: crate::transport::RawFrame) -> Step {
        if self.seen.done {
            return Step::End;
        }
        let (id, name) = (frame.id().map(str::to_owned), frame.kind().to_owned());
        if let Some(id) = &id {
            match EventId::new(id.as_str()) {
                Ok(id) if self.cursor.as_ref() == Some(&id) => return Step::Skip,
                Ok(id) => self.cursor = Some(id),
                Err(refused) => return Step::Fail(Error::protocol("stream", refused.to_string())),
            }
        }
        let Ok(data) = frame.object() else {
            return Step::Fail(Error::protocol(
                "stream",
                "the data of an event is not JSON",
            ));
        };
        self.attempts = 0;
        let event = Event::read(id, name, data);
        self.note(&event);
        if let Err(error) = self.admit(&event) {
            return Step::Fail(error);
        }
        if self.seen.done {
            Step::Last(Box::new(event))
        } else {
            Step::Give(Box::new(event))
        }
    }

    fn note(&mut self, event: &Event) {
        self.seen.terminal |= event.is_terminal();
        self.seen.done |= event.name == "done";
        if let EventKind::PartUpdated(update) = &event.kind {
            let reason = update.part.reason.as_deref();
            self.seen.broken_step = update.part.type_ == "step-finish"
                && matches!(reason, Some("error" | "other" | "unknown"));
        }
    }

    /// Takes the identity of the run from its admission; another run than the one asked for is an error.
    fn admit(&mut self, event: &Event) -> Result<(), Error> {
        let EventKind::ExecutionStarted(started) = &event.kind else {
            return Ok(());
        };
        let identity = &mut self.identity;
        // A turn that was repeated answers with the execution that ran it first.
        let replayed = started.dispatched == Some(false);
        if started.execution_id != identity.execution && !replayed {
            return Err(Error::protocol(
                "stream",
                "the admission names another execution",
            ));
        }
        if identity
            .session
            .as_ref()
            .is_some_and(|id| *id != started.session_id)
        {
            return Err(Error::protocol(
                "stream",
                "the admission names another session",
            ));
        }
        identity.execution = started.execution_id.clone();
        identity.session = Some(started.session_id.clone());
        identity.reference = started.run_control_ref.clone();
        identity.admitted = true;
        Ok(())
    }

    /// The connection was lost or has ended.
    fn cut(&mut self) -> Step {
        let whole = self.seen.terminal && !self.seen.broken_step;
        if whole {
            return Step::End;
        }
        let wait = match self.rejoin {
            Rejoin::Automatic => REJOIN_WAITS.get(self.attempts),
            Rejoin::Off => None,
        };
        match wait {
            Some(wait) => {
                self.attempts += 1;
                Step::Link(Link::Waiting(Box::pin(tokio::time::sleep(*wait))))
            }
            None => Step::Last(Box::new(self.interrupted())),
        }
    }

    /// The event that stands in for the end of a stream that was lost.
    fn interrupted(&self) -> Event {
        let mut data = serde_json::Map::new();
        let mut put = |key: &str, value: &str| data.insert(key.to_owned(), value.into());
        put("code", INTERRUPTED);
        put(
            "message",
            "the connection was lost before the run had ended",
        );
        put("executionId", &self.identity.execution);
        if let Some(cursor) = &self.cursor {
            put("lastEventId", cursor);
        }
        Event::read(None, "error".into(), data)
    }

    fn join(&self) -> BoxFuture<'static, Result<Joined, Error>> {
        let (inner, request) = (self.inner.clone(), self.rejoin_request(false));
        Box::pin(async move { inner.rejoin(request).await })
    }

    /// The request for the frames after the cursor.
    pub fn rejoin_request(&self, detach: bool) -> RunRequest {
        RunRequest {
            session_id: self.identity.session.clone(),
            execution_id: Some(self.identity.execution.clone()),
            last_event_id: self.cursor.clone(),
            message: Some(String::new()),
            detach: detach.then_some(true),
            ..RunRequest::default()
        }
    }
}

enum Step {
    /// Nothing to hand out.
    Skip,
    Link(Link),
    Give(Box<Event>),
    Last(Box<Event>),
    Fail(Error),
    End,
}

/// Whether a stream's error means that the connection was lost, rather than that the peer breaks the protocol.
fn is_cut(error: &crate::transport::Error) -> bool {
    use crate::transport::Error as E;
    matches!(error, E::Network { .. } | E::Timeout { .. })
}
