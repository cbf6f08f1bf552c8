//! A bench for the scripted agent: its folders, its turns, and what to look for in them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use serde_json::Value;
use tangle_sandbox_local::agent::launch::{AgentPrograms, KnownAgent, Launch, Place};
use tangle_sandbox_local::agent::{Agent, AgentEvent, Outcome, TurnEnd};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Far longer than any turn here is silent.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace, a home and a log for one agent.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// Makes the folders.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        Self { folder }
    }

    /// A path beside the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the workspace.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path("workspace").join(name)
    }

    /// How the scripted agent is started here.
    pub fn launch(&self) -> Launch {
        let programs = AgentPrograms {
            scripted: Some(env!("CARGO_BIN_EXE_scripted-agent").into()),
            ..AgentPrograms::default()
        };
        let place = Place {
            workspace: self.path("workspace"),
            home: self.path("home"),
            log: self.path("agent.log"),
            env: Vec::new(),
        };
        programs
            .find(KnownAgent::Scripted)
            .unwrap()
            .launch(place, None)
    }

    /// A started agent.
    pub async fn agent(&self) -> Agent {
        Agent::start(self.launch()).await.unwrap()
    }

    /// The agent's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("agent.log")).unwrap()
    }
}

/// Runs a turn to its end and collects its events.
pub async fn turn(agent: &mut Agent, script: &str) -> (TurnEnd, Vec<AgentEvent>) {
    turn_with(agent, script, CancellationToken::new(), PATIENCE).await
}

/// The same with a cancel and a watchdog.
pub async fn turn_with(
    agent: &mut Agent,
    script: &str,
    cancel: CancellationToken,
    watchdog: Duration,
) -> (TurnEnd, Vec<AgentEvent>) {
    let (sender, mut receiver) = mpsc::channel(8);
    let collect = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    tokio::join!(agent.prompt(script, sender, cancel, watchdog), collect)
}

/// All increments of the parts of one type.
pub fn deltas(events: &[AgentEvent], kind: &str) -> String {
    let parts = events.iter().filter(|event| {
        event
            .data
            .get("part")
            .is_some_and(|part| part["type"] == kind)
    });
    parts
        .filter_map(|event| event.data.get("delta").and_then(Value::as_str))
        .collect()
}

/// The newest part of one type.
pub fn last_part<'a>(events: &'a [AgentEvent], kind: &str) -> &'a Value {
    let mut parts = events
        .iter()
        .rev()
        .filter_map(|event| event.data.get("part"));
    parts.find(|part| part["type"] == kind).unwrap()
}

/// Code and message of a failed turn.
pub fn failed(end: &TurnEnd) -> (&str, &str) {
    match &end.outcome {
        Outcome::Failed { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

/// Waits for a process id that a command writes to a file.
pub async fn pid_in(path: &Path) -> Pid {
    for _ in 0..1000 {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no process id was written");
}

/// Waits until a process has gone.
pub async fn gone(pid: Pid) -> bool {
    for _ in 0..500 {
        if test_kill_process(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}
