//! Symmetric JSON-RPC 2.0 over newline-delimited JSON, with every line and every queue bounded.
//!
//! One task reads and one writes. What the other side sends on its own account reaches the owner through one bounded
//! queue in the order of arrival; while it is full the reader waits, the pipe fills and the other side is slowed down.
//! Answers travel through the same reader, so whoever awaits one must keep draining the queue.

mod pipes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The code of the answer to a method that nobody serves.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The code of the answer to parameters of another shape.
pub const INVALID_PARAMS: i64 = -32602;
/// The code of the answer to a failure of the method itself.
pub const INTERNAL_ERROR: i64 = -32603;

/// Bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one line from the other side, without its end.
    pub line: usize,
    /// Messages that wait for the owner.
    pub inbound: usize,
    /// Bytes of the messages that wait for the owner. The longest line passes whatever it takes.
    pub inbound_bytes: usize,
    /// Lines that wait for the other side.
    pub outbound: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            line: 16 << 20,
            inbound: 64,
            inbound_bytes: 32 << 20,
            outbound: 16,
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The other side closed its output, usually because its process ended.
    Eof,
    /// A line was longer than [`Bounds::line`].
    LineTooLong,
    /// A line is not UTF-8.
    NotUtf8,
    /// Reading or writing failed.
    Io(io::ErrorKind),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("its output was closed"),
            Self::LineTooLong => f.write_str("it sent a line longer than allowed"),
            Self::NotUtf8 => f.write_str("it sent a line that is not UTF-8"),
            Self::Io(kind) => write!(f, "{kind}"),
        }
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The other side answered with an error.
    Refused(RpcError),
    /// The connection ended first.
    Ended(Ended),
    /// The answer has another shape than the method's result.
    Shape,
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// More, in a shape of the method's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            data: None,
        }
    }

    /// The answer to an unknown request.
    #[must_use]
    pub fn method_not_found() -> Self {
        Self::new(METHOD_NOT_FOUND, "Method not found")
    }
}

/// What the other side sent on its own account.
#[derive(Debug)]
pub enum Inbound {
    /// A notification.
    Notification {
        /// The parsed method name: `session\/update` and `session/update` are the same.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// A request, to be answered with [`Peer::answer`] or [`Peer::refuse`].
    Request {
        /// The id to answer with.
        id: Box<RawValue>,
        /// The parsed method name.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// A line that is no JSON-RPC message: a banner, a log line. It is for the log only.
    Stray(String),
}

/// The receiving half: what the other side sent on its own account, in the order of arrival.
#[derive(Debug)]
pub struct Inbox(mpsc::Receiver<(Inbound, OwnedSemaphorePermit)>);

impl Inbox {
    /// Waits for the next message; `None` when the connection has ended. Cancel safe.
    pub async fn recv(&mut self) -> Option<Inbound> {
        self.0.recv().await.map(|(message, _)| message)
    }

    /// A message that is already there.
    ///
    /// # Errors
    /// When there is none, or none will come.
    pub fn try_recv(&mut self) -> Result<Inbound, TryRecvError> {
        self.0.try_recv().map(|(message, _)| message)
    }
}

/// Reads parameters into a type; absent parameters are an empty object.
///
/// # Errors
/// [`INVALID_PARAMS`] when they have another shape.
pub fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|_| RpcError::new(INVALID_PARAMS, "Invalid params"))
}

#[derive(Serialize)]
struct Outgoing<'a> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

impl Outgoing<'_> {
    const EMPTY: Self = Self {
        jsonrpc: "2.0",
        id: None,
        method: None,
        params: None,
        result: None,
        error: None,
    };
}

enum Write {
    Line(String),
    Flushed(oneshot::Sender<()>),
}

type Answer = Result<Box<RawValue>, CallError>;

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<i64, oneshot::Sender<Answer>>,
    ended: Option<Ended>,
}

/// The sending half; cheap to clone.
#[derive(Clone)]
pub struct Peer {
    writes: mpsc::Sender<Write>,
    waiting: Arc<Mutex<Waiting>>,
    next: Arc<AtomicI64>,
}

/// Both tasks of a connection. Dropping it ends them; the pipes close with them.
#[derive(Debug)]
pub struct Connection {
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    close: watch::Sender<bool>,
}

impl Connection {
    /// Writes what is queued, then closes the pipe to the other side. Reading goes on.
    pub fn close_output(&self) {
        self.close.send_replace(true);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
    }
}

/// Starts a connection over two pipes: the sending half, what arrives, and the owner of the tasks.
pub fn connect<R, W>(input: R, output: W, bounds: Bounds) -> (Peer, Inbox, Connection)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (writes, queued) = mpsc::channel(bounds.outbound.max(1));
    let (to_owner, inbound) = mpsc::channel(bounds.inbound.max(1));
    let (close, closing) = watch::channel(false);
    let peer = Peer {
        writes,
        waiting: Arc::default(),
        next: Arc::default(),
    };
    let waiting = peer.waiting.clone();
    let writer = tokio::spawn(async move {
        if let Err(error) = pipes::write(output, queued, closing).await {
            end(&waiting, Ended::Io(error.kind()));
        }
    });
    let waiting = peer.waiting.clone();
    let reader = tokio::spawn(async move {
        let ended = pipes::read(input, bounds, &waiting, &to_owner).await;
        end(&waiting, ended);
    });
    (
        peer,
        Inbox(inbound),
        Connection {
            reader,
            writer,
            close,
        },
    )
}

impl Peer {
    /// Sends a request and waits for its result. Dropping the future forgets the answer; it does not cancel the request.
    ///
    /// # Errors
    /// When the other side refuses, the connection ends first, or the result has another shape.
    pub async fn call<P: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<T, CallError> {
        self.request(method, params).await?.result().await
    }

    /// Queues a request. What is sent after this has returned arrives after it.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn request<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<Call, CallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let number = to_raw_value(&id).map_err(|_| CallError::Shape)?;
        let params = to_raw_value(params).map_err(|_| CallError::Shape)?;
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if let Some(ended) = waiting.ended {
                return Err(CallError::Ended(ended));
            }
            waiting.calls.insert(id, sender);
        }
        let call = Call {
            id,
            answer,
            waiting: self.waiting.clone(),
        };
        self.send(Outgoing {
            id: Some(&number),
            method: Some(method),
            params: Some(&params),
            ..Outgoing::EMPTY
        })
        .await;
        Ok(call)
    }

    /// Sends a notification.
    pub async fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        if let Ok(params) = to_raw_value(params) {
            self.send(Outgoing {
                method: Some(method),
                params: Some(&params),
                ..Outgoing::EMPTY
            })
            .await;
        }
    }

    /// Answers a request.
    pub async fn answer<T: Serialize + ?Sized>(&self, id: &RawValue, result: &T) {
        match to_raw_value(result) {
            Ok(result) => {
                self.send(Outgoing {
                    id: Some(id),
                    result: Some(&result),
                    ..Outgoing::EMPTY
                })
                .await
            }
            Err(_) => {
                self.refuse(id, &RpcError::new(INTERNAL_ERROR, "Internal error"))
                    .await
            }
        }
    }

    /// Answers a request with an error.
    pub async fn refuse(&self, id: &RawValue, error: &RpcError) {
        self.send(Outgoing {
            id: Some(id),
            error: Some(error),
            ..Outgoing::EMPTY
        })
        .await;
    }

    /// Why the connection ended; `None` while it lives.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        lock(&self.waiting).ended
    }

    /// Waits until everything that was sent so far has reached the pipe.
    pub async fn flushed(&self) {
        let (done, flushed) = oneshot::channel();
        if self.writes.send(Write::Flushed(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }

    /// Sends a line as it is, for the scripted agent's ways to misbehave.
    pub(crate) async fn raw_line(&self, line: String) {
        let _ = self.writes.send(Write::Line(line)).await;
    }

    async fn send(&self, message: Outgoing<'_>) {
        if let Ok(line) = serde_json::to_string(&message) {
            self.raw_line(line).await; // a closed pipe shows as the end of the connection
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("ended", &self.ended())
            .finish_non_exhaustive()
    }
}

/// A request that waits for its answer. Dropping it forgets the answer.
#[derive(Debug)]
pub struct Call {
    id: i64,
    answer: oneshot::Receiver<Answer>,
    waiting: Arc<Mutex<Waiting>>,
}

impl Call {
    /// Waits for the result.
    ///
    /// # Errors
    /// When the other side refuses, the connection ends first, or the result has another shape.
    pub async fn result<T: DeserializeOwned>(mut self) -> Result<T, CallError> {
        let answer = (&mut self.answer).await;
        let result = answer.unwrap_or(Err(CallError::Ended(Ended::Eof)))?;
        serde_json::from_str(result.get()).map_err(|_| CallError::Shape)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.waiting).calls.remove(&self.id);
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first end counts; every waiting call learns of it.
fn end(waiting: &Mutex<Waiting>, ended: Ended) {
    let calls = {
        let mut waiting = lock(waiting);
        waiting.ended.get_or_insert(ended);
        std::mem::take(&mut waiting.calls)
    };
    for sender in calls.into_values() {
        let _ = sender.send(Err(CallError::Ended(ended)));
    }
}
