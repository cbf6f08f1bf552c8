//! A small service on loopback: it answers each route as a test scripts it, keeps exactly what it was sent, and can cut,
//! hold or refuse a connection at any byte.
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tangle_sandbox::sandbox::{Client, ClientBuilder, NewSandbox, Running, Sandbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The key of every client here.
pub const KEY: &str = "key-of-the-test";
/// The sandbox of most tests.
pub const ID: &str = "sbx_1";
/// The route of runs of that sandbox.
pub const RUN: &str = "POST /v1/sandboxes/sbx_1/runtime/agents/run/stream";
/// The route of cancels of that sandbox.
pub const CANCEL: &str = "POST /v1/sandboxes/sbx_1/runtime/agents/run/cancel";

/// One request as it came off the socket.
#[derive(Clone)]
pub struct Seen {
    /// The number of the request, over all routes.
    pub number: usize,
    /// Method and target as they stood in the request line.
    pub line: String,
    /// All header lines.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
    /// When it came, by the clock of the runtime.
    pub at: tokio::time::Instant,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.line, String::from_utf8_lossy(&self.body))
    }
}

impl Seen {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (header, value) = line.split_once(':')?;
            header.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn route(&self) -> &str {
        self.line.split('?').next().unwrap_or_default()
    }
}

/// What the service does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status with a JSON body.
    Json(u16, Value),
    /// A status with headers, each ended by CRLF, and any body.
    Whole(u16, &'static str, Vec<u8>),
    /// A stream of events, piece by piece; after the last piece the body ends as it should.
    Events(Vec<Piece>),
    /// Closes the connection without an answer.
    Drop,
    /// Never answers; ends when the client closes the connection.
    Never,
    /// Waits, then answers.
    After(Gate, Box<Answer>),
}

/// A piece of a stream.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes of the body.
    Send(Vec<u8>),
    /// A pause.
    Sleep(Duration),
    /// A wait until the test opens the gate.
    Wait(Gate),
    /// Counts how far the stream was written.
    Count(watch::Sender<usize>),
    /// Nothing more comes, and the connection stays open.
    Hold,
    /// The connection breaks.
    Cut,
}

/// Something that the service waits for.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Gate(watch::Sender::new(false))
    }

    /// Lets everyone through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn wait(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

type Script = Arc<dyn Fn(&Seen, usize) -> Answer + Send + Sync>;

#[derive(Default)]
struct Shared {
    scripts: Mutex<HashMap<String, Script>>,
    counts: Mutex<HashMap<String, usize>>,
    seen: Mutex<Vec<Seen>>,
    left: Mutex<Vec<usize>>,
    activity: AtomicU64,
}

/// The service; it ends when it is dropped.
pub struct Service {
    /// The base URL.
    pub base: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Service {
    /// A service without routes: it answers 404 about the route.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let kept = shared.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let shared = kept.clone();
                connections.spawn(async move { connection(socket, &shared).await });
            }
        });
        Service {
            base,
            shared,
            accepting,
        }
    }

    /// Scripts a route, `POST /v1/sandboxes` for example, without the query. The number counts its requests from 0.
    pub fn on(
        &self,
        route: &str,
        script: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static,
    ) -> &Self {
        let mut scripts = self.shared.scripts.lock().unwrap();
        scripts.insert(route.to_owned(), Arc::new(script));
        self
    }

    /// Answers a route the same way each time.
    pub fn always(&self, route: &str, answer: Answer) -> &Self {
        self.on(route, move |_, _| answer.clone())
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The requests of one route so far.
    pub fn seen_on(&self, route: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.route() == route);
        seen
    }

    /// The numbers of the requests whose connection the client closed while it was answered.
    pub fn left(&self) -> Vec<usize> {
        self.shared.left.lock().unwrap().clone()
    }

    /// Waits, in real time and at most 20 seconds, until there were so many requests of a route.
    pub async fn until_seen(&self, route: &str, count: usize) -> Vec<Seen> {
        until(|| self.seen_on(route).len() >= count).await;
        self.seen_on(route)
    }

    fn activity(&self) -> u64 {
        self.shared.activity.load(Ordering::SeqCst)
    }

    /// A builder of a client of this service.
    pub fn builder(&self) -> ClientBuilder {
        Client::builder(&self.base, KEY)
    }

    /// A client of this service.
    pub fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    /// A sandbox that is ready at once.
    pub async fn running(&self) -> Sandbox<Running> {
        self.running_by(&self.client()).await
    }

    /// The same for a client of the test's own.
    pub async fn running_by(&self, client: &Client) -> Sandbox<Running> {
        self.always("POST /v1/sandboxes", Answer::Json(201, ready(ID)));
        let sandbox = client.create(NewSandbox::new()).await.unwrap();
        let sandbox = sandbox.wait_ready().await.unwrap();
        self.shared.seen.lock().unwrap().clear();
        sandbox
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Waits, in real time and at most 20 seconds, until this holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let ends = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < ends, "it did not come within 20 seconds");
        real_pause().await;
    }
}

/// Gives whatever is under way some real time; for proofs that something does not come.
pub async fn a_moment() {
    for _ in 0..30 {
        real_pause().await;
    }
}

async fn real_pause() {
    let pause = || std::thread::sleep(Duration::from_millis(1));
    tokio::task::spawn_blocking(pause).await.unwrap();
}

/// The clock of the runtime, stopped: it moves only in [`Clock::drive`], while nothing is under way on the sockets.
pub struct Clock {
    _release: std::sync::mpsc::Sender<()>,
}

impl Clock {
    /// Stops the clock.
    pub fn stop() -> Self {
        let (release, released) = std::sync::mpsc::channel();
        // A blocking task keeps the runtime from moving the clock by itself, which it would do while an answer is on its
        // way through the kernel.
        tokio::task::spawn_blocking(move || released.recv());
        tokio::time::pause();
        Clock { _release: release }
    }

    /// Runs `work` to its end, moving the clock by `step` whenever the service is quiet.
    pub async fn drive<T>(
        &self,
        service: &Service,
        step: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let ends = Instant::now() + Duration::from_secs(30);
        let mut quiet = 0;
        let mut last = service.activity();
        loop {
            tokio::select! {
                biased;
                output = &mut work => return output,
                () = real_pause() => {}
            }
            assert!(
                Instant::now() < ends,
                "it hangs after {:#?}",
                service.seen()
            );
            let now = service.activity();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            if quiet >= 2 {
                quiet = 0;
                tokio::time::advance(step).await;
            }
        }
    }
}

/// Shows that these times lie so far apart, each wait being at most one `step` of the clock late.
pub fn waits(seen: &[Seen], expected: &[Duration], step: Duration) {
    let at = seen.iter().map(|seen| seen.at);
    let waits: Vec<_> = at
        .clone()
        .skip(1)
        .zip(at)
        .map(|(late, early)| late - early)
        .collect();
    let close = |(wait, expected): (&Duration, &Duration)| {
        wait >= expected && *wait <= *expected + step * 2
    };
    let all = waits.len() == expected.len() && waits.iter().zip(expected).all(close);
    assert!(all, "waited {waits:?} instead of {expected:?}");
}

async fn connection(mut socket: TcpStream, shared: &Shared) -> Option<()> {
    let _ = socket.set_nodelay(true);
    let mut input = Vec::new();
    loop {
        let (line, head, body) = read(&mut socket, &mut input).await?;
        let answer = {
            shared.activity.fetch_add(1, Ordering::SeqCst);
            let mut kept = shared.seen.lock().unwrap();
            let seen = Seen {
                number: kept.len(),
                line,
                head,
                body,
                at: tokio::time::Instant::now(),
            };
            kept.push(seen.clone());
            drop(kept);
            let nth = {
                let mut counts = shared.counts.lock().unwrap();
                let count = counts.entry(seen.route().to_owned()).or_default();
                *count += 1;
                *count - 1
            };
            let script = shared.scripts.lock().unwrap().get(seen.route()).cloned();
            let answer = match script {
                Some(script) => script(&seen, nth),
                None => refusal(404, "NOT_FOUND", json!({ "resourceType": "route" })),
            };
            (seen.number, answer)
        };
        let (number, answer) = answer;
        let went_on = reply(&mut socket, answer, shared).await;
        shared.activity.fetch_add(1, Ordering::SeqCst);
        match went_on {
            Ok(true) => {}
            Ok(false) => return None,
            Err(Left) => {
                shared.left.lock().unwrap().push(number);
                return None;
            }
        }
    }
}

/// The client closed the connection.
struct Left;

impl From<std::io::Error> for Left {
    fn from(_: std::io::Error) -> Self {
        Left
    }
}

/// Answers; says whether the connection goes on.
async fn reply(socket: &mut TcpStream, answer: Answer, shared: &Shared) -> Result<bool, Left> {
    match answer {
        Answer::Json(status, body) => {
            let headers = "content-type: application/json\r\n";
            whole(socket, status, headers, body.to_string().as_bytes()).await?;
            Ok(true)
        }
        Answer::Whole(status, headers, body) => {
            whole(socket, status, headers, &body).await?;
            Ok(true)
        }
        Answer::Drop => Ok(false),
        Answer::Never => {
            gone(socket).await;
            Err(Left)
        }
        Answer::After(gate, answer) => {
            tokio::select! {
                () = gate.wait() => {}
                () = gone(socket) => return Err(Left),
            }
            Box::pin(reply(socket, *answer, shared)).await
        }
        Answer::Events(pieces) => send_events(socket, pieces, shared).await,
    }
}

async fn send_events(
    socket: &mut TcpStream,
    pieces: Vec<Piece>,
    shared: &Shared,
) -> Result<bool, Left> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    for piece in pieces {
        shared.activity.fetch_add(1, Ordering::SeqCst);
        match piece {
            Piece::Send(bytes) if bytes.is_empty() => {}
            Piece::Send(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(&bytes);
                chunk.extend_from_slice(b"\r\n");
                socket.write_all(&chunk).await?;
            }
            Piece::Sleep(pause) => tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = gone(socket) => return Err(Left),
            },
            Piece::Wait(gate) => tokio::select! {
                () = gate.wait() => {}
                () = gone(socket) => return Err(Left),
            },
            Piece::Count(counter) => counter.send_modify(|count| *count += 1),
            Piece::Hold => {
                gone(socket).await;
                return Err(Left);
            }
            Piece::Cut => return Ok(false),
        }
    }
    socket.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// Ends when the client closes the connection.
async fn gone(socket: &mut TcpStream) {
    let mut byte = [0];
    while matches!(socket.read(&mut byte).await, Ok(read) if read > 0) {}
}

async fn whole(
    socket: &mut TcpStream,
    status: u16,
    headers: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let length = match status {
        204 => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let head = format!("HTTP/1.1 {status} Status\r\n{headers}{length}\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    socket.write_all(&bytes).await
}

async fn read(socket: &mut TcpStream, input: &mut Vec<u8>) -> Option<(String, String, Vec<u8>)> {
    let end = loop {
        if let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(input).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(input.drain(..end).collect()).ok()?;
    let line = head
        .lines()
        .next()?
        .trim_end_matches(" HTTP/1.1")
        .to_owned();
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, length)| length.trim().parse().unwrap());
    while input.len() < length {
        if socket.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
    Some((line, head, input.drain(..length).collect()))
}

/// The record of a sandbox in this status, without facts about its file system.
pub fn record(id: &str, status: &str) -> Value {
    json!({ "id": id, "status": status, "createdAt": "2026-01-01T00:00:00Z" })
}

/// The record of a sandbox that runs and is ready.
pub fn ready(id: &str) -> Value {
    incarnation(id, "running", "ready")
}

/// A record with the three facts of the file system.
pub fn incarnation(id: &str, status: &str, readiness: &str) -> Value {
    let mut record = record(id, status);
    record["filesystemIncarnationId"] = json!("fs_1");
    record["filesystemIncarnationProvenance"] = json!("fresh");
    record["filesystemIncarnationReadiness"] = json!(readiness);
    record
}

/// An error answer of a control route.
pub fn refusal(status: u16, code: &str, details: Value) -> Answer {
    let mut body = json!({ "error": "refused by the test", "code": code });
    if let Value::Object(details) = details {
        body.as_object_mut().unwrap().extend(details);
    }
    Answer::Json(status, body)
}

/// An answer of a runtime route.
pub fn data(value: Value) -> Answer {
    Answer::Json(200, json!({ "success": true, "data": value }))
}

/// A frame of a stream.
pub fn frame(id: usize, event: &str, data: Value) -> String {
    format!("id: {id}\nevent: {event}\ndata: {data}\n\n")
}

/// The admission of the run that `request` asks for, as frame 1.
pub fn admission(request: &Seen) -> String {
    let request = request.json();
    let data = json!({
        "executionId": request["executionId"], "sessionId": request["sessionId"],
        "dispatched": true, "alreadyExisted": false, "status": "running",
    });
    frame(1, "execution.started", data)
}

/// An increment of the answer's text.
pub fn text(id: usize, delta: &str) -> String {
    let part = json!({ "id": "p", "type": "text" });
    frame(
        id,
        "message.part.updated",
        json!({ "part": part, "delta": delta }),
    )
}

/// A whole stream.
pub fn events(body: &str) -> Answer {
    Answer::Events(vec![Piece::Send(body.into())])
}

/// A stream that breaks after these bytes.
pub fn cut(body: &str) -> Answer {
    Answer::Events(vec![Piece::Send(body.into()), Piece::Cut])
}

/// A stream that stays open after these bytes.
pub fn held(body: &str) -> Answer {
    Answer::Events(vec![Piece::Send(body.into()), Piece::Hold])
}
