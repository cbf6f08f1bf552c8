//! A server on loopback that answers as a test scripts it and keeps what it was sent.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// One request as it came off the socket.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// The request line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (header, value) = line.split_once(':')?;
            header.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// What the server does with a request.
pub enum Reply {
    /// Writes these bytes and waits for the next request.
    Whole(Vec<u8>),
    /// Writes pieces, each after a wait, then closes the connection.
    Pieces(Vec<(Duration, Vec<u8>)>),
    /// Writes these bytes, then nothing more, and keeps the connection open.
    Hold(Vec<u8>),
    /// Closes the connection.
    Close,
}

/// The server; it ends when it is dropped.
pub struct Server {
    /// The base URL.
    pub base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a server that asks `reply` for each request; the number counts from 0.
    pub async fn start(reply: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let kept = seen.clone();
        let reply = Arc::new(reply);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (kept, reply) = (kept.clone(), reply.clone());
                connections.spawn(async move { serve(socket, &kept, &*reply).await });
            }
        });
        Self {
            base,
            seen,
            accepting,
        }
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut socket: TcpStream,
    kept: &Mutex<Vec<Seen>>,
    reply: &(dyn Fn(&Seen, usize) -> Reply + Send + Sync),
) -> Option<()> {
    let mut input = Vec::new();
    loop {
        let seen = read(&mut socket, &mut input).await?;
        let number = {
            let mut kept = kept.lock().unwrap();
            kept.push(seen.clone());
            kept.len() - 1
        };
        match reply(&seen, number) {
            Reply::Whole(bytes) => socket.write_all(&bytes).await.ok()?,
            Reply::Pieces(pieces) => {
                for (wait, bytes) in pieces {
                    tokio::time::sleep(wait).await;
                    socket.write_all(&bytes).await.ok()?;
                }
                return None;
            }
            Reply::Hold(bytes) => {
                socket.write_all(&bytes).await.ok()?;
                std::future::pending::<()>().await;
            }
            Reply::Close => return None,
        }
    }
}

async fn read(socket: &mut TcpStream, input: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(input).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(input.drain(..end).collect()).ok()?;
    let mut seen = Seen {
        head,
        body: Vec::new(),
    };
    let length: usize = seen
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while input.len() < length {
        if socket.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = input.drain(..length).collect();
    Some(seen)
}

/// A JSON answer.
pub fn answer(status: u16, body: &str) -> Reply {
    answer_with(status, "", body)
}

/// A JSON answer with further header lines, each ended by CRLF.
pub fn answer_with(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Whole(
        format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

/// The head of a stream of events that ends with its connection.
pub const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

/// A stream of events, whole, that ends with its connection.
pub fn events(body: &str) -> Reply {
    Reply::Pieces(vec![(
        Duration::ZERO,
        format!("{EVENTS}{body}").into_bytes(),
    )])
}
