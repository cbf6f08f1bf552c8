//! What every part of the running deployment shares, and where its files are.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tangle_sandbox::contract::Secret;
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::limits;
use tangle_sandbox::contract::types::SentBackend;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backends::Backends;
use crate::occupancy::Occupancy;
use crate::run::{Runs, Warm};
use crate::store::Store;

/// Limits and times of a deployment. A limit can be lowered, never raised above the protocol's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) reader_grace: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) watchdog: Duration,
    pub(crate) create_body: usize,
    pub(crate) run_body: usize,
    pub(crate) other_body: usize,
    pub(crate) exec_output: usize,
    pub(crate) read: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reader_grace: Duration::from_millis(limits::READER_GRACE_MS as u64),
            keep_alive: Duration::from_millis(limits::KEEP_ALIVE_MS as u64),
            watchdog: Duration::from_secs(15 * 60),
            create_body: limits::MAX_CREATE_BODY,
            run_body: limits::MAX_RUN_BODY,
            other_body: limits::MAX_BODY,
            exec_output: limits::MAX_EXEC_OUTPUT,
            read: limits::MAX_READ,
        }
    }
}

/// The deployment.
pub(crate) struct Deployment {
    pub(crate) settings: Settings,
    pub(crate) base_url: String,
    /// The base URL as records tell it; absent when clients may be on other machines, which know it better.
    pub(crate) announced_url: Option<String>,
    pub(crate) key: Secret,
    pub(crate) store: Store,
    pub(crate) places: Places,
    pub(crate) occupancy: Occupancy,
    pub(crate) backends: Backends,
    pub(crate) credentials: Credentials,
    pub(crate) runs: Runs,
    pub(crate) warm: Warm,
    /// Counts the changes of sandboxes, for those who follow one.
    pub(crate) changes: watch::Sender<u64>,
    /// Wakes the timer of the lifecycle when a deadline may have moved.
    pub(crate) deadlines: Notify,
    /// Every task of the deployment.
    pub(crate) tasks: TaskTracker,
    /// Fires when the deployment is to end.
    pub(crate) closing: CancellationToken,
    pub(crate) started_at: std::time::Instant,
    /// Milliseconds since 1970.
    pub(crate) serving_since: i64,
    /// Of the data directory.
    pub(crate) lock: Mutex<Option<File>>,
}

impl Deployment {
    /// Lets another server use the directory. Without this call it happens when the last task of the deployment is gone.
    pub(crate) fn unlock(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(lock.take());
    }

    /// A sandbox changed: deadlines may have moved, and followers look again.
    pub(crate) fn sandbox_changed(&self) {
        self.changes.send_modify(|count| *count += 1);
        self.deadlines.notify_one();
    }
}

/// Backend blocks of creates, with their credentials. They are kept in memory only.
#[derive(Default)]
pub(crate) struct Credentials(Mutex<HashMap<String, SentBackend>>);

impl Credentials {
    pub(crate) fn keep(&self, sandbox: &str, backend: SentBackend) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(sandbox.to_owned(), backend);
    }

    pub(crate) fn get(&self, sandbox: &str) -> Option<SentBackend> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(sandbox).cloned()
    }

    pub(crate) fn forget(&self, sandbox: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(sandbox);
    }
}

/// The folders of the data directory.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    root: PathBuf,
}

impl Places {
    /// `root` is the canonical path of the data directory.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Everything of one sandbox.
    pub(crate) fn sandbox(&self, id: &str) -> PathBuf {
        self.root.join("sandboxes").join(id)
    }

    /// The root that files, commands and agents see.
    pub(crate) fn workspace(&self, id: &str) -> PathBuf {
        self.sandbox(id).join("workspace")
    }

    /// The home of commands.
    pub(crate) fn home(&self, id: &str) -> PathBuf {
        self.sandbox(id).join("home")
    }

    /// The home of agents.
    pub(crate) fn agent_home(&self, id: &str) -> PathBuf {
        self.sandbox(id).join("agent")
    }

    /// The log of the agent of one session.
    pub(crate) fn agent_log(&self, id: &str, session: &str) -> PathBuf {
        let name = Digest::of_bytes(session.as_bytes()).hex();
        self.sandbox(id)
            .join("logs")
            .join(format!("{}.log", &name[..32]))
    }
}
