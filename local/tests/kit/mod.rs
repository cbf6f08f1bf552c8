//! What the tests of the server share: a server on a fresh directory, and a client that sees the exact bytes.
#![allow(dead_code)]

pub mod process;
mod wire;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tangle_sandbox_local::{Local, LocalBuilder};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

pub use wire::{Frame, Incoming, Stream};

/// How long a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The scripted agent as a program.
pub const AGENT: &str = env!("CARGO_BIN_EXE_scripted-agent");

/// A running deployment and its directory.
pub struct Server {
    pub local: Local,
    pub folder: TempDir,
    pub api: Api,
}

/// Starts a deployment with the scripted agent.
pub async fn server() -> Server {
    server_with(|builder| builder).await
}

/// The same with other settings.
pub async fn server_with(configure: impl FnOnce(LocalBuilder) -> LocalBuilder) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let local = configure(builder(folder.path())).start().await.unwrap();
    let api = Api::of(&local);
    Server { local, folder, api }
}

/// A deployment on this directory, not started yet.
pub fn builder(folder: &Path) -> LocalBuilder {
    Local::builder()
        .data_dir(folder.join("data"))
        .scripted_agent(AGENT)
}

impl Server {
    /// Ends the deployment and starts it again on the same directory.
    pub async fn restart(self) -> Server {
        let Server { local, folder, .. } = self;
        local.stop().await;
        let local = builder(folder.path()).start().await.unwrap();
        let api = Api::of(&local);
        Server { local, folder, api }
    }

    /// A sandbox that is running and ready.
    pub async fn sandbox(&self) -> String {
        self.api.sandbox(json!({})).await
    }

    /// The folder that commands and agents of a sandbox see.
    pub fn workspace(&self, id: &str) -> PathBuf {
        self.local
            .data_dir()
            .join("sandboxes")
            .join(id)
            .join("workspace")
    }
}

/// The client.
#[derive(Clone)]
pub struct Api {
    pub address: String,
    pub key: String,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The JSON, when the status is this one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self.json()
    }

    /// Status and code of an error in either envelope.
    #[track_caller]
    pub fn fault(&self) -> (u16, String) {
        let body = self.json();
        let code = body["error"]["code"].as_str().or(body["code"].as_str());
        (self.status, code.unwrap_or("none").to_owned())
    }
}

impl Api {
    pub fn of(local: &Local) -> Self {
        Self {
            address: local.base_url().trim_start_matches("http://").to_owned(),
            key: local.api_key().expose().to_owned(),
        }
    }

    /// Sends a request and returns its answer as far as the headers.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (Answer, Incoming) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses early may stop reading.
        let _ = stream.write_all(body).await;
        let mut incoming = Incoming::new(stream);
        let answer = incoming.head().await;
        (answer, incoming)
    }

    /// The whole answer to a request.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let exchange = async {
            let (mut answer, mut incoming) = self.open(method, path, headers, body).await;
            while let Some(chunk) = incoming.chunk().await {
                answer.body.extend(chunk);
            }
            answer
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .unwrap_or_else(|_| panic!("no whole answer to {method} {path}"))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let headers = [
            ("authorization", self.bearer()),
            ("content-type", "application/json".to_owned()),
        ];
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.raw(method, path, &headers, body.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(body)).await
    }

    /// A sandbox of this request (with the scripted agent unless it says otherwise), once it is ready.
    pub async fn sandbox(&self, mut request: Value) -> String {
        if request.get("backend").is_none() {
            request["backend"] = json!({"type": "scripted"});
        }
        let created = self.post("/v1/sandboxes", request).await.expect(201);
        let id = created["id"].as_str().unwrap().to_owned();
        self.ready(&id).await;
        id
    }

    /// Waits until the sandbox is running and ready.
    pub async fn ready(&self, id: &str) {
        until("the sandbox is ready", async || {
            let record = self.get(&format!("/v1/sandboxes/{id}")).await.expect(200);
            record["status"] == "running" && record["filesystemIncarnationReadiness"] == "ready"
        })
        .await;
    }

    /// The path of a runtime route.
    pub fn runtime(id: &str, path: &str) -> String {
        format!("/v1/sandboxes/{id}/runtime/{path}")
    }

    /// `POST` to a runtime route.
    pub async fn run_post(&self, id: &str, path: &str, body: Value) -> Answer {
        self.post(&Self::runtime(id, path), body).await
    }

    /// `GET` of a runtime route.
    pub async fn run_get(&self, id: &str, path: &str) -> Answer {
        self.get(&Self::runtime(id, path)).await
    }

    /// Opens the run stream; the answer must be a stream.
    pub async fn stream(&self, id: &str, body: Value) -> Stream {
        let path = Self::runtime(id, "agents/run/stream");
        self.events("POST", &path, body.to_string().as_bytes())
            .await
    }

    /// Opens a stream of events.
    pub async fn events(&self, method: &str, path: &str, body: &[u8]) -> Stream {
        let bearer = self.bearer();
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let (mut answer, mut incoming) = self.open(method, path, &headers, body).await;
        if answer.status != 200 {
            while let Some(chunk) = incoming.chunk().await {
                answer.body.extend(chunk);
            }
            panic!(
                "{} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Stream::new(incoming)
    }

    /// Runs a script to its end and returns every frame.
    pub async fn run(&self, id: &str, body: Value) -> Vec<Frame> {
        self.stream(id, body).await.all().await
    }
}

/// Sends a request on a connection that the caller may drop before the answer.
pub async fn send(api: &Api, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(&api.address).await.unwrap();
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        api.address,
        api.key,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The record of a deployment, opened beside it. A transaction on it holds every commit of the deployment back.
pub fn record(data: &Path) -> rusqlite::Connection {
    let record = rusqlite::Connection::open(data.join("state.db")).unwrap();
    record.busy_timeout(PATIENCE).unwrap();
    record
}

/// The agent's own id of a session, as it is recorded.
pub fn native_session(data: &Path, sandbox: &str, session: &str) -> Option<String> {
    record(data)
        .query_row(
            "SELECT native FROM sessions WHERE sandbox = ?1 AND id = ?2",
            [sandbox, session],
            |row| row.get(0),
        )
        .unwrap()
}

/// Looks again and again until it is true.
#[track_caller]
pub fn until<F>(what: &str, mut look: F) -> impl Future<Output = ()>
where
    F: AsyncFnMut() -> bool,
{
    let what = what.to_owned();
    async move {
        let begun = Instant::now();
        while !look().await {
            assert!(begun.elapsed() < PATIENCE, "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The text that the deltas of a stream give.
pub fn text_of(frames: &[Frame]) -> String {
    let deltas = frames
        .iter()
        .filter(|frame| frame.data["part"]["type"] == "text");
    deltas
        .filter_map(|frame| frame.data["delta"].as_str())
        .collect()
}

/// The events of a stream.
pub fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

/// The ids are 1, 2, 3, … from `first`.
#[track_caller]
pub fn assert_contiguous(frames: &[Frame], first: usize) {
    for (index, frame) in frames.iter().enumerate() {
        assert_eq!(frame.id, (first + index).to_string());
    }
}

/// Seconds to sleep that no other test on this machine sleeps: a mark for `alive`.
pub fn unique(number: u32) -> String {
    (std::process::id() * 10 + 10_000_000 + number).to_string()
}

/// How many processes run `sleep` with these seconds.
pub fn alive(seconds: &str) -> usize {
    let line = format!("sleep\0{seconds}\0").into_bytes();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|found| found == line)
        })
        .count()
}
