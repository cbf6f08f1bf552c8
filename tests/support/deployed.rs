//! An embedded deployment on a fresh directory with a client, and what the tests of the two together look for.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tangle_sandbox::sandbox::{
    Attached, Client, Event, EventKind, NewSandbox, PromptResult, Run, Running, Sandbox,
};
use tangle_sandbox_local::{Local, LocalBuilder};
use tempfile::TempDir;

/// How long a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running deployment, its directory and a client.
pub struct Deployed {
    /// The deployment.
    pub local: Local,
    /// Its client.
    pub client: Client,
    folder: TempDir,
}

impl Deployed {
    /// A deployment with its usual settings.
    pub async fn start() -> Self {
        Self::start_with(|builder| builder).await
    }

    /// A deployment with other settings.
    pub async fn start_with(configure: impl FnOnce(LocalBuilder) -> LocalBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let builder = Local::builder().data_dir(folder.path().join("data"));
        let local = configure(builder).start().await.unwrap();
        let client = client(local.base_url(), &local);
        Self {
            local,
            client,
            folder,
        }
    }

    /// A client that reaches the deployment under another base URL.
    pub fn through(&self, base: &str) -> Client {
        client(base, &self.local)
    }

    /// A sandbox of the scripted agent that is ready.
    pub async fn sandbox(&self) -> Sandbox<Running> {
        let request = NewSandbox::new().backend("scripted");
        let made = self.client.create(request).await.unwrap();
        made.wait_ready().await.unwrap()
    }

    /// The same sandbox, reached through another client.
    pub async fn seen_through(&self, base: &str, sandbox: &Sandbox<Running>) -> Sandbox<Running> {
        let found = self.through(base).get(sandbox.id()).await.unwrap();
        found.unwrap().into_running().await.unwrap()
    }

    /// A file in the workspace of a sandbox, as this machine sees it.
    pub fn file(&self, sandbox: &Sandbox<Running>, name: &str) -> PathBuf {
        let folder = self.local.data_dir().join("sandboxes");
        folder
            .join(sandbox.id().as_str())
            .join("workspace")
            .join(name)
    }

    /// The content of `data` in the answer of a route of the sandbox's runtime.
    pub async fn data(&self, sandbox: &str, path: &str) -> Value {
        let path = format!("/v1/sandboxes/{sandbox}/runtime{path}");
        let answer = self.client.fetch("GET", &path, &[], None).await.unwrap();
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["success"], true, "{path}: {body}");
        body["data"].take()
    }

    /// The record of a run.
    pub async fn run_record(&self, sandbox: &str, session: &str, execution: &str) -> Value {
        let path = format!("/agents/sessions/{session}/runs/{execution}");
        self.data(sandbox, &path).await
    }

    /// All frames of a run that is over, read anew from the deployment's record.
    pub async fn replay(&self, sandbox: &str, session: &str, execution: &str) -> Vec<Frame> {
        let path = format!(
            "/v1/sandboxes/{sandbox}/runtime/agents/sessions/{session}/events?executionId={execution}"
        );
        let answer = self.client.fetch("GET", &path, &[], None).await.unwrap();
        assert_eq!(answer.status, 200);
        frames(&answer.body)
    }

    /// Ends the deployment.
    pub async fn stop(self) {
        self.local.stop().await;
    }
}

fn client(base: &str, local: &Local) -> Client {
    Client::builder(base, local.api_key().clone())
        .build()
        .unwrap()
}

/// A frame as it stands on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its id.
    pub id: String,
    /// Its event type.
    pub event: String,
    /// Its data.
    pub data: Value,
}

/// The frames of a whole body, comments left out; every frame has to be as the embedded deployment writes it.
pub fn frames(body: &[u8]) -> Vec<Frame> {
    let text = std::str::from_utf8(body).unwrap();
    let blocks = text.split_terminator("\n\n");
    blocks
        .filter(|block| !block.starts_with(':'))
        .map(|block| {
            let mut lines = block.lines();
            let mut field = |name: &str| {
                let line = lines.next().unwrap_or_default();
                let value = line.strip_prefix(name);
                value.unwrap_or_else(|| panic!("{block}")).to_owned()
            };
            let (id, event) = (field("id: "), field("event: "));
            let data = serde_json::from_str(&field("data: ")).unwrap();
            Frame { id, event, data }
        })
        .collect()
}

/// Reads a run to its end.
pub async fn drain(run: &mut Run<Attached>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event.unwrap());
    }
    events
}

/// Reads a run to its end and takes its result.
pub async fn finish(mut run: Run<Attached>) -> (Vec<Event>, PromptResult) {
    let events = drain(&mut run).await;
    let result = run.result().await.unwrap();
    (events, result)
}

/// Panics unless the events are numbered 1, 2, 3 … and end with the only `result` and the only `done`.
#[track_caller]
pub fn assert_whole(events: &[Event]) {
    let ids: Vec<_> = events.iter().map(|event| event.id.clone()).collect();
    let wanted: Vec<_> = (1..=events.len()).map(|id| Some(id.to_string())).collect();
    assert_eq!(ids, wanted);
    let count = |name: &str| events.iter().filter(|event| event.name == name).count();
    assert_eq!((count("result"), count("done"), count("error")), (1, 1, 0));
    assert_eq!(events.last().unwrap().name, "done");
}

/// Panics unless the events are the frames of the record: ids, types, and every piece of text.
#[track_caller]
pub fn assert_recorded(events: &[Event], frames: &[Frame]) {
    assert_eq!(events.len(), frames.len());
    for (event, frame) in events.iter().zip(frames) {
        assert_eq!(event.id.as_deref(), Some(&*frame.id));
        assert_eq!(event.name, frame.event);
        if frame.data["part"]["type"] == "text" {
            assert_eq!(event.text_delta(), frame.data["delta"].as_str());
        }
    }
}

/// The text that the deltas add up to.
pub fn text(events: &[Event]) -> String {
    events.iter().filter_map(Event::text_delta).collect()
}

/// The status of a tool part, when the event is about that tool.
pub fn tool_status<'a>(event: &'a Event, tool: &str) -> Option<&'a str> {
    match &event.kind {
        EventKind::PartUpdated(update) if update.part.tool.as_deref() == Some(tool) => {
            update.part.state.as_ref().map(|state| &*state.status)
        }
        _ => None,
    }
}

/// Polls until `found` gives something; panics after a minute, naming what was waited for.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The process id that a command writes into a file, with a line end.
pub async fn pid_in(path: &Path) -> u32 {
    until("a process id in a file", async || {
        let text = std::fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
    .await
}

/// Whether a process lives; one that only waits to be reaped does not.
pub fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until none of the processes lives; how long that took.
pub async fn gone(pids: &[u32]) -> Duration {
    let begun = Instant::now();
    until("the end of processes", async || {
        pids.iter().all(|pid| !alive(*pid)).then_some(())
    })
    .await;
    begun.elapsed()
}

/// Numbers that look random and are the same each time.
pub struct Seeded(u64);

impl Seeded {
    /// The numbers of a seed other than 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of `least..most`.
    pub fn within(&mut self, least: usize, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + (self.0 % (most - least) as u64) as usize
    }
}
