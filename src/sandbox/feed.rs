//! The events of one run over as many connections as it takes.
//!
//! A feed is a state machine:
//!
//! | state | meaning | on failure |
//! |---|---|---|
//! | `Open` | frames come | the body ends or breaks before the run has ended: `Waiting`; a frame breaks the protocol: error, `Closed` |
//! | `Waiting` | pause before the next rejoin | – |
//! | `Joining` | the rejoin is under way | transient: `Waiting`, until three in a row brought no frame, then the event `STREAM_INTERRUPTED`, `Closed`; refused: error, `Closed` |
//! | `Settling` | the service said that nothing comes after the cursor; the recorded result is read and stands in for the end | none on record: the event `STREAM_INTERRUPTED`, `Closed` |
//! | `Closed` | nothing more comes | – |
//!
//! The cursor is the id of the newest frame that was read. A service that sends frames again that lie before it, although
//! it was named, changes nothing: they are not handed out, do not move it and do not count as new.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::time::Sleep;

use crate::contract::limits;
use crate::contract::types::{
    EventId, ExecutionId, ExecutionStarted, RunControlRef, RunRequest, SessionId,
};
use crate::transport::{EventStream, RawFrame};

use super::error::Error;
use super::event::{Event, EventKind};
use super::inner::{Identity, Inner, Joined, Settled};
use super::prompt::Rejoin;
use super::replay::Replay;
use super::verdict::INTERRUPTED;

/// Waits before the rejoins that follow each other without a new frame.
const REJOIN_WAITS: [Duration; limits::REJOIN_ATTEMPTS] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Events that may come without an id on each connection anew; to see one twice tells nothing twice.
const OF_THE_CONNECTION: [&str; 8] = [
    "connection.established",
    "start",
    "execution.started",
    "status",
    "heartbeat",
    "tool-heartbeat",
    "tool-slow",
    "model-processing",
];

enum Link {
    Open(Box<EventStream>),
    Waiting(Pin<Box<Sleep>>),
    Joining(BoxFuture<'static, Result<Joined, Error>>),
    Settling(BoxFuture<'static, Settled>),
    Closed,
}

pub(crate) struct Feed {
    inner: Inner,
    link: Link,
    rejoin: Rejoin,
    attempts: usize,
    pub identity: Identity,
    /// What the service said when it admitted the run.
    pub receipt: Option<Box<ExecutionStarted>>,
    cursor: Option<EventId>,
    replay: Replay,
    /// The id of the newest event that was handed out, while it is not the cursor.
    given: Option<Option<EventId>>,
    seen: Seen,
    /// Events that were read ahead, to be handed out first.
    ahead: VecDeque<Event>,
    /// When the caller stops waiting.
    limit: Option<Pin<Box<Sleep>>>,
}

/// Which ends of the run were seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    result: bool,
    error: bool,
    done: bool,
    /// The newest part is a step that broke off.
    broken_step: bool,
    /// An event of the run had no id and there was no cursor: a rejoin would repeat it.
    unnumbered: bool,
    /// The service's record says that the run is over.
    over: bool,
    /// The service refused a rejoin.
    refused: bool,
}

impl Feed {
    pub fn new(inner: Inner, stream: Box<EventStream>, rejoin: Rejoin, identity: Identity) -> Self {
        Feed {
            inner,
            link: Link::Open(stream),
            rejoin,
            attempts: 0,
            identity,
            receipt: None,
            cursor: None,
            replay: Replay::default(),
            given: None,
            seen: Seen::default(),
            ahead: VecDeque::new(),
            limit: None,
        }
    }

    /// Ends the feed with the event `TIMEOUT` when this time has passed.
    pub fn limited(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit.map(|limit| Box::pin(tokio::time::sleep(limit)));
        self
    }

    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The id of the newest event that was handed out.
    pub fn cursor(&self) -> Option<&EventId> {
        match &self.given {
            Some(given) => given.as_ref(),
            None => self.cursor.as_ref(),
        }
    }

    /// Whether the run has ended, as far as the events or the service's record tell.
    pub fn is_over(&self) -> bool {
        let seen = self.seen;
        seen.result || seen.error || seen.done || seen.over
    }

    /// Notes that the service's record says that the run is over.
    pub fn note_over(&mut self) {
        self.seen.over = true;
    }

    /// Whether the service refused to let this reader come back.
    pub fn is_refused(&self) -> bool {
        self.seen.refused
    }

    /// Puts events back that were read ahead, to be handed out next. `before` is the cursor from before they were read.
    pub fn put_back(&mut self, events: Vec<Event>, before: Option<EventId>) {
        if !events.is_empty() {
            self.given = Some(before);
            self.ahead.extend(events);
        }
    }

    /// Starts anew after the stream was given up, since the run was found to go on.
    pub fn reopen(&mut self) {
        self.attempts = 0;
        self.link = Link::Joining(self.join());
    }

    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Some(event) = self.ahead.pop_front() {
            let id = event.id.as_deref().and_then(|id| EventId::new(id).ok());
            self.given = match self.ahead.is_empty() {
                true => None,
                false => id.map(Some).or(self.given.take()),
            };
            return Poll::Ready(Some(Ok(event)));
        }
        if self.is_late(cx) {
            self.link = Link::Closed;
            self.limit = None;
            let event = self.ending("TIMEOUT", "the turn took longer than its deadline");
            return Poll::Ready(Some(Ok(event)));
        }
        loop {
            let step = match &mut self.link {
                Link::Closed => return Poll::Ready(None),
                Link::Open(stream) => match ready!(Pin::new(&mut **stream).poll_next(cx)) {
                    Some(Ok(frame)) => self.frame(&frame),
                    Some(Err(error)) if is_cut(&error) => self.cut(),
                    Some(Err(error)) => Step::Fail(error.into()),
                    None => self.cut(),
                },
                Link::Waiting(pause) => {
                    ready!(pause.as_mut().poll(cx));
                    Step::Link(Link::Joining(self.join()))
                }
                Link::Joining(joining) => {
                    let joined = ready!(joining.as_mut().poll(cx));
                    self.joined(joined)
                }
                Link::Settling(settling) => {
                    let settled = ready!(settling.as_mut().poll(cx));
                    self.settled(settled)
                }
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

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let open = !matches!(self.link, Link::Closed) && !self.is_over();
        let limit = self.limit.as_mut().filter(|_| open);
        limit.is_some_and(|limit| limit.as_mut().poll(cx).is_ready())
    }

    /// One frame came.
    fn frame(&mut self, frame: &RawFrame) -> Step {
        if let Some(id) = frame.id() {
            match EventId::new(id) {
                Ok(id) if self.replay.repeats(&id, self.cursor.as_ref()) => return Step::Skip,
                Ok(id) => self.cursor = Some(id),
                Err(refused) => return Step::Fail(Error::protocol("stream", refused.to_string())),
            }
            self.attempts = 0;
        } else if self.cursor.is_none() && !OF_THE_CONNECTION.contains(&frame.kind()) {
            self.seen.unnumbered = true;
        }
        let Ok(data) = frame.object() else {
            let rule = "the data of an event is not JSON";
            return Step::Fail(Error::protocol("stream", rule));
        };
        let id = frame.id().map(str::to_owned);
        let event = Event::read(id, frame.kind().to_owned(), data);
        self.note(&event);
        if let Err(error) = self.admit(&event) {
            return Step::Fail(error);
        }
        match self.seen.done {
            true => Step::Last(Box::new(event)),
            false => Step::Give(Box::new(event)),
        }
    }

    fn note(&mut self, event: &Event) {
        match event.name.as_str() {
            "result" => self.seen.result = true,
            "error" => self.seen.error = true,
            "done" => self.seen.done = true,
            _ => {}
        }
        if let EventKind::PartUpdated(update) = &event.kind {
            let reason = update.part.reason.as_deref();
            self.seen.broken_step = update.part.type_ == "step-finish"
                && matches!(reason, Some("error" | "other" | "unknown"));
        }
    }

    /// Takes the identity of the run from its admission. Another run than the one asked for is an error, unless it is the
    /// one that ran this turn first; it is ended on leaving only if the receipt proves that this call started it.
    fn admit(&mut self, event: &Event) -> Result<(), Error> {
        let EventKind::ExecutionStarted(started) = &event.kind else {
            return Ok(());
        };
        let identity = &mut self.identity;
        let same = started.execution_id == identity.execution;
        let session_is_same = started.session_id == identity.session;
        let replayed = started.dispatched == Some(false);
        let started_here = started.dispatched == Some(true);
        identity.owned = match same && session_is_same {
            true => identity.minted || !replayed,
            false => started_here && started.already_existed != Some(true),
        };
        identity.execution = started.execution_id.clone();
        identity.session = started.session_id.clone();
        identity.reference = None;
        self.receipt = Some(started.clone());
        let no = |rule: &str| Err(Error::protocol("stream", rule));
        if !session_is_same {
            return no("the admission names another session");
        }
        if !same && !replayed {
            return no("the admission names another execution");
        }
        let reference = started.run_control_ref.as_ref();
        if reference
            .is_some_and(|reference| !names(reference, &started.session_id, &started.execution_id))
        {
            return no("the reference of the admission names another run");
        }
        identity.reference = reference.cloned();
        Ok(())
    }

    /// The connection was lost or has ended.
    fn cut(&mut self) -> Step {
        let seen = self.seen;
        if seen.error || seen.done || (seen.result && !seen.broken_step) {
            return Step::End;
        }
        let wait = match self.rejoin {
            Rejoin::Automatic if !seen.unnumbered => REJOIN_WAITS.get(self.attempts),
            _ => None,
        };
        match wait {
            Some(wait) => {
                self.attempts += 1;
                Step::Link(Link::Waiting(Box::pin(tokio::time::sleep(*wait))))
            }
            None => self.interrupted(),
        }
    }

    fn joined(&mut self, joined: Result<Joined, Error>) -> Step {
        match joined {
            Ok(Joined::Stream(stream)) => {
                self.replay.rejoined();
                Step::Link(Link::Open(stream))
            }
            Ok(Joined::Over) => {
                let (inner, identity) = (self.inner.clone(), self.identity.clone());
                Step::Link(Link::Settling(Box::pin(async move {
                    inner.recorded(&identity).await
                })))
            }
            Err(error) if error.is_retryable() => self.cut(),
            Err(error) => {
                self.seen.refused = true;
                Step::Fail(error)
            }
        }
    }

    fn settled(&mut self, settled: Settled) -> Step {
        match settled {
            Settled::Over(outcome) => {
                self.seen.over = true;
                Step::Last(Box::new(Event {
                    id: None,
                    name: "result".to_owned(),
                    kind: EventKind::Result(outcome),
                }))
            }
            Settled::Running | Settled::Unknown => self.interrupted(),
        }
    }

    fn interrupted(&self) -> Step {
        let message = "the connection was lost before the run had ended";
        Step::Last(Box::new(self.ending(INTERRUPTED, message)))
    }

    /// The event that stands in for the end of a run that is not seen.
    fn ending(&self, code: &str, message: &str) -> Event {
        let mut data: Map<String, Value> = Map::new();
        let mut put = |key: &str, value: &str| data.insert(key.to_owned(), value.into());
        put("code", code);
        put("message", message);
        put("executionId", &self.identity.execution);
        if let Some(cursor) = &self.cursor {
            put("lastEventId", cursor);
        }
        Event::read(None, "error".to_owned(), data)
    }

    fn join(&self) -> BoxFuture<'static, Result<Joined, Error>> {
        let (inner, request) = (self.inner.clone(), self.rejoin_request(false));
        Box::pin(async move { inner.rejoin(&request).await })
    }

    /// The request for the frames after the cursor.
    pub fn rejoin_request(&self, detach: bool) -> RunRequest {
        RunRequest {
            session_id: Some(self.identity.session.clone()),
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

fn names(reference: &RunControlRef, session: &SessionId, execution: &ExecutionId) -> bool {
    reference.session_id == *session && reference.execution_id == *execution
}

/// Whether a stream's error means that the connection was lost, rather than that the peer breaks the protocol.
fn is_cut(error: &crate::transport::Error) -> bool {
    use crate::transport::Error as E;
    matches!(error, E::Network { .. } | E::Timeout { .. })
}
