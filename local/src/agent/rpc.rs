//! Symmetric JSON-RPC 2.0 over newline-delimited JSON, with every line and every queue bounded.
//!
//! One task reads and one writes. What the other side sends on its own account reaches the owner through one bounded
//! queue in the order of arrival; while it is full the reader waits, the pipe fills and the other side is slowed down.
//! Answers travel through the same reader, so whoever awaits one must keep draining the queue.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
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
    /// Lines that wait for the other side.
    pub outbound: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            line: 16 << 20,
            inbound: 64,
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

/// Reads parameters into a type; absent parameters are an empty object.
///
/// # Errors
/// [`INVALID_PARAMS`] when they have another shape.
pub fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|_| RpcError::new(INVALID_PARAMS, "Invalid params"))
}

#[derive(Deserialize)]
struct Incoming {
    #[serde(default)]
    id: Option<Box<RawValue>>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcError>,
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

#[derive(Default)]
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
pub fn connect<R, W>(
    input: R,
    output: W,
    bounds: Bounds,
) -> (Peer, mpsc::Receiver<Inbound>, Connection)
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
        if let Err(error) = write(output, queued, closing).await {
            end(&waiting, Ended::Io(error.kind()));
        }
    });
    let waiting = peer.waiting.clone();
    let reader = tokio::spawn(async move {
        let ended = read(input, bounds.line, &waiting, &to_owner).await;
        end(&waiting, ended);
    });
    (
        peer,
        inbound,
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
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if let Some(ended) = waiting.ended {
                return Err(CallError::Ended(ended));
            }
            waiting.calls.insert(id, sender);
        }
        let _forget = Forget {
            id,
            waiting: &self.waiting,
        };
        let number = to_raw_value(&id).map_err(|_| CallError::Shape)?;
        let params = to_raw_value(params).map_err(|_| CallError::Shape)?;
        self.send(Outgoing {
            id: Some(&number),
            method: Some(method),
            params: Some(&params),
            ..Outgoing::EMPTY
        })
        .await;
        let result = answer.await.unwrap_or(Err(CallError::Ended(Ended::Eof)))?;
        serde_json::from_str(result.get()).map_err(|_| CallError::Shape)
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

/// Forgets a call whose future was dropped.
struct Forget<'a> {
    id: i64,
    waiting: &'a Mutex<Waiting>,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).calls.remove(&self.id);
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

async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queued: mpsc::Receiver<Write>,
    mut closing: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        let next = tokio::select! {
            biased;
            next = queued.recv() => next,
            _ = closing.wait_for(|close| *close) => None,
        };
        match next {
            None => return output.shutdown().await,
            Some(Write::Line(mut line)) => {
                line.push('\n');
                output.write_all(line.as_bytes()).await?;
                output.flush().await?;
            }
            Some(Write::Flushed(done)) => drop(done.send(())),
        }
    }
}

async fn read<R: AsyncRead + Unpin>(
    input: R,
    bound: usize,
    waiting: &Mutex<Waiting>,
    to_owner: &mpsc::Sender<Inbound>,
) -> Ended {
    let mut reader = BufReader::with_capacity(64 << 10, input);
    loop {
        let line = match bounded_line(&mut reader, bound).await {
            Ok(Some(line)) => line,
            Ok(None) => return Ended::Eof,
            Err(ended) => return ended,
        };
        let Some(message) = sort(line, waiting) else {
            continue;
        };
        if to_owner.send(message).await.is_err() {
            return Ended::Eof; // the owner has gone
        }
    }
}

/// Hands an answer to its call and returns everything else.
fn sort(line: String, waiting: &Mutex<Waiting>) -> Option<Inbound> {
    if !line.trim_start().starts_with('{') {
        return Some(Inbound::Stray(line)); // a list would fill the fields of a message by position
    }
    match serde_json::from_str::<Incoming>(&line) {
        Ok(Incoming {
            id: Some(id),
            method: Some(method),
            params,
            ..
        }) => Some(Inbound::Request { id, method, params }),
        Ok(Incoming {
            id: None,
            method: Some(method),
            params,
            ..
        }) => Some(Inbound::Notification { method, params }),
        Ok(Incoming {
            id: Some(id),
            method: None,
            result,
            error,
            ..
        }) => {
            let call = id
                .get()
                .parse()
                .ok()
                .and_then(|id| lock(waiting).calls.remove(&id))?;
            let _ = call.send(match (result, error) {
                (_, Some(error)) => Err(CallError::Refused(error)),
                (Some(result), None) => Ok(result),
                (None, None) => to_raw_value(&()).map_err(|_| CallError::Shape), // `"result": null`
            });
            None
        }
        Ok(_) | Err(_) => Some(Inbound::Stray(line)),
    }
}

/// One line of at most `bound` bytes; no more than that is ever held. An unfinished last line is no message.
async fn bounded_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    bound: usize,
) -> Result<Option<String>, Ended> {
    let mut line = Vec::new();
    loop {
        let chunk = reader
            .fill_buf()
            .await
            .map_err(|error| Ended::Io(error.kind()))?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(chunk.len());
        if line.len() + take > bound {
            return Err(Ended::LineTooLong);
        }
        line.extend_from_slice(&chunk[..take]);
        reader.consume(take + usize::from(end.is_some()));
        if end.is_some() {
            return String::from_utf8(line)
                .map(Some)
                .map_err(|_| Ended::NotUtf8);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::{Bounds, CallError, Connection, Ended, Inbound, Peer, connect};

    struct Ours {
        peer: Peer,
        inbound: tokio::sync::mpsc::Receiver<Inbound>,
        _connection: Connection,
        to_us: DuplexStream,
        from_us: DuplexStream,
    }

    fn ours(bounds: Bounds) -> Ours {
        let (to_us, input) = tokio::io::duplex(1024);
        let (output, from_us) = tokio::io::duplex(1024);
        let (peer, inbound, connection) = connect(input, output, bounds);
        Ours {
            peer,
            inbound,
            _connection: connection,
            to_us,
            from_us,
        }
    }

    #[tokio::test]
    async fn an_escaped_method_is_the_same_method() {
        let mut ours = ours(Bounds::default());
        ours.to_us
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"session\\/update\",\"params\":{}}\n")
            .await
            .unwrap();
        let Some(Inbound::Notification { method, .. }) = ours.inbound.recv().await else {
            panic!()
        };
        assert_eq!(method, "session/update");
    }

    #[tokio::test]
    async fn a_stray_line_does_not_disturb_what_follows() {
        let mut ours = ours(Bounds::default());
        ours.to_us
            .write_all(b"Welcome!\n[1]\n{}\n{\"method\":\"x\",\"id\":\"a\"}\n")
            .await
            .unwrap();
        for expected in ["Welcome!", "[1]", "{}"] {
            let Some(Inbound::Stray(line)) = ours.inbound.recv().await else {
                panic!()
            };
            assert_eq!(line, expected);
        }
        let Some(Inbound::Request { id, .. }) = ours.inbound.recv().await else {
            panic!()
        };
        assert_eq!(id.get(), "\"a\"");
    }

    #[tokio::test]
    async fn a_line_over_the_bound_ends_the_connection_and_its_calls() {
        let mut ours = ours(Bounds {
            line: 100,
            ..Bounds::default()
        });
        let peer = ours.peer.clone();
        let call = tokio::spawn(async move { peer.call::<_, Value>("wait", &json!({})).await });
        let mut line = [0; 10];
        ours.from_us.read_exact(&mut line).await.unwrap();
        ours.to_us.write_all(&[b'x'; 101]).await.unwrap();
        assert!(matches!(
            call.await.unwrap(),
            Err(CallError::Ended(Ended::LineTooLong))
        ));
        assert!(ours.inbound.recv().await.is_none());
        assert!(matches!(
            ours.peer.call::<_, Value>("late", &json!({})).await,
            Err(CallError::Ended(_))
        ));
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_bound_passes() {
        let mut ours = ours(Bounds {
            line: 100,
            ..Bounds::default()
        });
        ours.to_us
            .write_all(&[&[b'x'; 100][..], b"\n"].concat())
            .await
            .unwrap();
        assert!(
            matches!(ours.inbound.recv().await, Some(Inbound::Stray(line)) if line.len() == 100)
        );
    }

    #[tokio::test]
    async fn a_dropped_call_is_forgotten_and_its_late_answer_dropped() {
        let mut ours = ours(Bounds::default());
        {
            let nothing = json!({});
            let call = ours.peer.call::<_, Value>("slow", &nothing);
            tokio::pin!(call);
            let mut line = vec![0; 44];
            tokio::select! {
                _ = &mut call => panic!("nobody answered"),
                read = ours.from_us.read_exact(&mut line) => { read.unwrap(); }
            }
        }
        assert!(super::lock(&ours.peer.waiting).calls.is_empty());
        ours.to_us
            .write_all(b"{\"id\":0,\"result\":1}\nnext\n")
            .await
            .unwrap();
        assert!(matches!(ours.inbound.recv().await, Some(Inbound::Stray(line)) if line == "next"));
    }

    #[tokio::test]
    async fn a_full_queue_slows_the_sender_down_and_loses_nothing() {
        let mut ours = ours(Bounds {
            inbound: 2,
            ..Bounds::default()
        });
        let mut to_us = ours.to_us;
        let sender = tokio::spawn(async move {
            for n in 0..5000 {
                to_us
                    .write_all(format!("{{\"method\":\"m{n}\"}}\n").as_bytes())
                    .await
                    .unwrap();
            }
        });
        tokio::task::yield_now().await;
        for n in 0..5000 {
            let Some(Inbound::Notification { method, .. }) = ours.inbound.recv().await else {
                panic!()
            };
            assert_eq!(method, format!("m{n}"));
        }
        sender.await.unwrap();
    }
}
