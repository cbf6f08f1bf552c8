//! Answers and streams as they come off the socket.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;

use super::{Answer, PATIENCE};

/// A frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub id: String,
    pub event: String,
    pub data: Value,
}

/// The body of an answer, as it comes.
pub struct Incoming {
    reader: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
}

impl Incoming {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            reader: BufReader::new(stream),
            chunked: false,
            left: 0,
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap_or(0);
        line.trim_end().to_owned()
    }

    pub(super) async fn head(&mut self) -> Answer {
        let status = self.line().await;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut answer = Answer {
            status: status.unwrap_or(0),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            answer
                .headers
                .push((name.to_ascii_lowercase(), value.to_owned()));
        }
        self.chunked = answer.header("transfer-encoding") == Some("chunked");
        self.left = answer
            .header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        answer
    }

    /// The next bytes of the body; `None` at its end or when it was cut.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        if self.chunked {
            let size = usize::from_str_radix(&self.line().await, 16).ok()?;
            if size == 0 {
                return None;
            }
            let mut chunk = vec![0; size];
            self.reader.read_exact(&mut chunk).await.ok()?;
            self.line().await;
            return Some(chunk);
        }
        if self.left == 0 {
            return None;
        }
        let mut chunk = vec![0; self.left.min(64 << 10)];
        let read = self.reader.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        self.left -= read;
        chunk.truncate(read);
        Some(chunk)
    }
}

/// A stream of events.
pub struct Stream {
    incoming: Incoming,
    buffer: Vec<u8>,
    /// Comments so far.
    pub comments: usize,
    /// Bytes of the body so far.
    pub bytes: usize,
}

impl Stream {
    pub(super) fn new(incoming: Incoming) -> Self {
        Self {
            incoming,
            buffer: Vec::new(),
            comments: 0,
            bytes: 0,
        }
    }

    /// The next frame; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let block = String::from_utf8(block).unwrap();
                if block.starts_with(':') {
                    self.comments += 1;
                    continue;
                }
                return Some(frame(&block));
            }
            let chunk = tokio::time::timeout(PATIENCE, self.incoming.chunk())
                .await
                .expect("the stream went silent")?;
            self.bytes += chunk.len();
            self.buffer.extend(chunk);
        }
    }

    /// Frames up to and with the first of this event.
    pub async fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let found = frame.event == event;
            frames.push(frame);
            if found {
                return frames;
            }
        }
        panic!("the stream ended without `{event}`: {frames:?}");
    }

    /// Every frame to the end of the stream.
    pub async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn frame(block: &str) -> Frame {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no `{name}` in {block:?}"))
    };
    Frame {
        id: field("id: ").to_owned(),
        event: field("event: ").to_owned(),
        data: serde_json::from_str(field("data: ")).unwrap(),
    }
}
