//! An open stream of events: the body of a response, its idle limit and the decoder, as one `Stream`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep};

use super::code::Code;
use super::error::{Error, Failure};
use super::frame::RawFrame;
use super::sse::{Decoder, Frames, ReadError};

type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// The events of a response, in order.
///
/// It ends with `None` at the end of the body, and after its first error:
///
/// * `NETWORK_ERROR` or `TIMEOUT` (the idle limit) mean that the stream was severed: rejoin.
/// * `PROTOCOL_ERROR` means that what comes is not the protocol; a rejoin would meet it again.
///
/// Whether the end of the body is the end of a run is for the reader of the events to say. Dropping the stream closes
/// the connection.
pub struct EventStream {
    frames: Frames<Idle<Body>>,
    failure: Box<Failure>,
    idle_limit: Duration,
    ended: bool,
}

impl EventStream {
    pub(super) fn new(
        answer: reqwest::Response,
        decoder: Decoder,
        idle_limit: Duration,
        failure: Box<Failure>,
    ) -> Self {
        let body: Body = Box::pin(answer.bytes_stream());
        Self {
            frames: Frames::new(Idle::new(body, idle_limit), decoder),
            failure,
            idle_limit,
            ended: false,
        }
    }

    /// Whether the body ended inside a frame, which was dropped. Then the stream is severed for sure.
    pub fn is_mid_frame(&self) -> bool {
        self.frames.is_mid_frame()
    }

    fn error(&self, error: ReadError<Severed>) -> Error {
        match error {
            ReadError::Body(Severed::Http(error)) => Error::Network {
                at: self.failure.clone(),
                source: error.without_url().into(),
            },
            ReadError::Body(Severed::Idle) => Error::Timeout {
                at: self.failed(Code::Timeout, "the stream was silent"),
                limit: self.idle_limit,
            },
            ReadError::Frame(rule) => self.protocol(&rule.to_string()),
        }
    }

    fn protocol(&self, rule: &str) -> Error {
        Error::Protocol {
            at: self.failed(Code::ProtocolError, rule),
        }
    }

    fn failed(&self, code: Code, message: &str) -> Box<Failure> {
        let mut at = self.failure.clone();
        at.code = code;
        at.message = message.into();
        at
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream")
            .field("path", &self.failure.path())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Stream for EventStream {
    type Item = Result<RawFrame, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended {
            let error = match ready!(Pin::new(&mut self.frames).poll_next(context)) {
                None => {
                    self.ended = true;
                    break;
                }
                Some(Ok(frame)) => match RawFrame::read(frame) {
                    Ok(None) => continue,
                    Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                    Err(rule) => self.protocol(&rule.to_string()),
                },
                Some(Err(error)) => self.error(error),
            };
            self.ended = true;
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(None)
    }
}

/// What cuts a body.
#[derive(Debug, thiserror::Error)]
enum Severed {
    #[error("the connection failed")]
    Http(#[source] reqwest::Error),
    #[error("no byte within the idle limit")]
    Idle,
}

/// A body that fails when no byte comes for `limit`. The time counts only while the reader waits, so that a slow reader
/// never severs its own stream.
#[derive(Debug)]
struct Idle<S> {
    body: S,
    limit: Duration,
    waiting_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl<S> Idle<S> {
    fn new(body: S, limit: Duration) -> Self {
        Self {
            body,
            limit,
            waiting_since: None,
            timer: Box::pin(tokio::time::sleep(limit)),
        }
    }
}

impl<S> Stream for Idle<S>
where
    S: Stream<Item = reqwest::Result<Bytes>> + Unpin,
{
    type Item = Result<Bytes, Severed>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Poll::Ready(chunk) = Pin::new(&mut this.body).poll_next(context) {
            this.waiting_since = None;
            return Poll::Ready(chunk.map(|chunk| chunk.map_err(Severed::Http)));
        }
        let ends = *this.waiting_since.get_or_insert_with(Instant::now) + this.limit;
        // The timer is moved only when it fires early: a busy stream does not pay for it.
        while this.timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= ends {
                return Poll::Ready(Some(Err(Severed::Idle)));
            }
            this.timer.as_mut().reset(ends);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use tokio::sync::mpsc;

    struct Chunks(mpsc::Receiver<Bytes>);

    impl Stream for Chunks {
        type Item = reqwest::Result<Bytes>;

        fn poll_next(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            self.0.poll_recv(context).map(|chunk| chunk.map(Ok))
        }
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn wire_7_12_comments_keep_a_silent_run_alive() {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(15)).await;
                sender.send(": keep-alive\n\n".into()).await.unwrap();
            }
            sender.send("data: {}\n\n".into()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let mut frames = Frames::new(Idle::new(Chunks(receiver), LIMIT), Decoder::default());
        let started = Instant::now();
        assert_eq!(frames.next().await.unwrap().unwrap().data(), "{}");
        assert_eq!(started.elapsed(), Duration::from_secs(300));
        let error = frames.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Body(Severed::Idle)));
        assert_eq!(started.elapsed(), Duration::from_secs(360));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_does_not_sever_its_stream() {
        let (sender, receiver) = mpsc::channel(1);
        let mut idle = Idle::new(Chunks(receiver), LIMIT);
        sender.send("a".into()).await.unwrap();
        assert_eq!(idle.next().await.unwrap().unwrap(), "a");
        tokio::time::sleep(LIMIT * 3).await;
        sender.send("b".into()).await.unwrap();
        assert_eq!(idle.next().await.unwrap().unwrap(), "b");
        tokio::time::sleep(LIMIT * 3).await;
        let started = Instant::now();
        assert!(idle.next().await.unwrap().is_err());
        assert!(started.elapsed() >= LIMIT);
    }
}
