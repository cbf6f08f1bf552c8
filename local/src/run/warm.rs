//! Agent processes that are kept for the next turn of their session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tangle_sandbox::contract::digest::Digest;

use crate::agent::{Agent, ModelProxy};

/// How long a process is kept without a turn.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// How many processes are kept at most, in all sandboxes together.
const MOST: usize = 16;

/// An agent between two turns.
pub(crate) struct Kept {
    pub(crate) agent: Agent,
    /// Its way to the model; it ends with the agent.
    pub(crate) proxy: Option<ModelProxy>,
    /// Of everything that the process was started with.
    pub(crate) identity: Digest,
}

impl Kept {
    /// Ends the agent in order, then its proxy.
    pub(crate) async fn end(self) {
        self.agent.end().await;
        if let Some(proxy) = self.proxy {
            proxy.stop().await;
        }
    }
}

/// The kept agents by sandbox and session.
#[derive(Default)]
pub(crate) struct Warm(Mutex<HashMap<(String, String), (Kept, Instant)>>);

impl Warm {
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), (Kept, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the session's agent out; one with another identity is ended.
    pub(crate) async fn take(
        &self,
        sandbox: &str,
        session: &str,
        identity: Digest,
    ) -> Option<Kept> {
        let key = (sandbox.to_owned(), session.to_owned());
        let kept = self.lock().remove(&key).map(|(kept, _)| kept)?;
        if kept.identity == identity && kept.agent.is_alive() {
            return Some(kept);
        }
        kept.end().await;
        None
    }

    /// Keeps an agent whose process is alive; above the most that are kept the one that waits longest goes.
    pub(crate) async fn keep(&self, sandbox: &str, session: &str, kept: Kept) {
        if !kept.agent.is_alive() {
            return kept.end().await;
        }
        let key = (sandbox.to_owned(), session.to_owned());
        let gone: Vec<Kept> = {
            let mut all = self.lock();
            let before = all.insert(key, (kept, Instant::now()));
            let oldest = (all.len() > MOST)
                .then(|| all.iter().min_by_key(|(_, (_, since))| *since))
                .flatten()
                .map(|(key, _)| key.clone());
            let oldest = oldest.and_then(|key| all.remove(&key));
            before
                .into_iter()
                .chain(oldest)
                .map(|(kept, _)| kept)
                .collect()
        };
        futures_util::future::join_all(gone.into_iter().map(Kept::end)).await;
    }

    async fn end_those(&self, goes: impl Fn(&(String, String), Instant) -> bool) {
        let gone: Vec<Kept> = {
            let mut kept = self.lock();
            let keys: Vec<_> = kept
                .iter()
                .filter(|(key, (_, since))| goes(key, *since))
                .map(|(key, _)| key.clone())
                .collect();
            keys.iter()
                .filter_map(|key| kept.remove(key))
                .map(|(kept, _)| kept)
                .collect()
        };
        futures_util::future::join_all(gone.into_iter().map(Kept::end)).await;
    }

    /// Ends the agent of a session.
    pub(crate) async fn end_session(&self, sandbox: &str, session: &str) {
        self.end_those(|key, _| key.0 == sandbox && key.1 == session)
            .await;
    }

    /// Ends the agents of a sandbox.
    pub(crate) async fn end_of(&self, sandbox: &str) {
        self.end_those(|key, _| key.0 == sandbox).await;
    }

    /// Ends every agent.
    pub(crate) async fn end_all(&self) {
        self.end_those(|_, _| true).await;
    }

    /// Ends those that had no turn for a while.
    pub(crate) async fn end_idle(&self) {
        self.end_those(|_, since| since.elapsed() > IDLE).await;
    }
}
