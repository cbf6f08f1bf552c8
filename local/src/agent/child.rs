//! One agent process: its pipes, its log, and the orderly and the sudden way to end it.

use std::process::Stdio;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::error::AgentError;
use super::launch::{Launch, Limits};
use super::log::AgentLog;
use super::rpc::{self, Connection, Ended, Inbound, Inbox, Peer, RpcError};
use crate::process::sweep::SweepOnDrop;
use crate::process::{Group, Home, Marker, sweep};

/// A running agent. Dropping it kills its group and sweeps its marker.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) peer: Peer,
    pub(super) inbound: Inbox,
    pub(super) log: Arc<AgentLog>,
    connection: Connection,
    stderr: AbortOnDropHandle<()>,
    marker: Marker,
    pub(super) group: Group,
    sweep: SweepOnDrop,
    limits: Limits,
}

impl Child {
    pub(super) fn spawn(launch: &Launch) -> Result<Self, AgentError> {
        let home = Home::create(&launch.place.home).map_err(AgentError::Place)?;
        let log = AgentLog::create(&launch.place.log, launch.limits.log_bytes)
            .map_err(AgentError::Place)?;
        let (marker, log) = (Marker::run(), Arc::new(log));
        let mut group = Group::spawn(
            Command::new(&launch.program)
                .args(&launch.args)
                .current_dir(&launch.place.workspace)
                .env_clear()
                .envs(home.environment_with(launch.place.env.iter().cloned()))
                .envs(launch.env.iter().cloned())
                .envs([marker.entry()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )
        .map_err(AgentError::Spawn)?;
        let sweep = SweepOnDrop::new(marker.clone());
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (group.stdin(), group.stdout(), group.stderr())
        else {
            return Err(AgentError::Ended(Ended::Eof));
        };
        let (peer, inbound, connection) = rpc::connect(stdout, stdin, launch.limits.bounds);
        let followed = log.clone();
        let stderr =
            AbortOnDropHandle::new(tokio::spawn(async move { followed.follow(stderr).await }));
        Ok(Self {
            peer,
            inbound,
            log,
            connection,
            stderr,
            marker,
            group,
            sweep,
            limits: launch.limits,
        })
    }

    /// False when the process or its connection has ended.
    pub(super) fn is_alive(&self) -> bool {
        self.peer.ended().is_none() && !self.group.has_exited()
    }

    pub(super) fn marker(&self) -> &Marker {
        &self.marker
    }

    /// A call outside of a turn, at most the start limit long. What arrives meanwhile never reaches a run stream.
    pub(super) async fn call<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<T, AgentError> {
        let answered = {
            let Self {
                peer, inbound, log, ..
            } = self;
            let call = peer.call(method, params);
            tokio::pin!(call);
            timeout(self.limits.start, async {
                loop {
                    tokio::select! {
                        biased;
                        result = &mut call => break result,
                        Some(message) = inbound.recv() => discard(peer, log, message).await,
                    }
                }
            })
            .await
        };
        match answered {
            Ok(result) => result.map_err(|error| AgentError::of_call(method, error)),
            Err(_) => Err(AgentError::Timeout { method }),
        }
    }

    /// Refuses a request that arrived outside of a turn; an agent that does not read is not waited for.
    pub(super) async fn refuse(&self, id: &RawValue) {
        let _ = timeout(
            self.limits.close,
            self.peer.refuse(id, &RpcError::method_not_found()),
        )
        .await;
    }

    /// Ends what a turn left behind outside of the agent's own group.
    pub(super) async fn sweep_strays(&self) {
        sweep(&self.marker, Some(self.group.id())).await;
    }

    /// The polite end: close stdin, wait, `TERM`, wait, `KILL`, sweep.
    pub(super) async fn end(mut self) {
        self.connection.close_output();
        let close = self.limits.close;
        let Self {
            group,
            inbound,
            peer,
            log,
            ..
        } = &mut self;
        let _ = timeout(close, async {
            loop {
                tokio::select! {
                    () = group.exited() => break,
                    // An agent that waits for us to read could not end.
                    Some(message) = inbound.recv() => if let Inbound::Stray(line) = message { log.stray(&line) },
                }
            }
        })
        .await;
        tracing::debug!(ended = ?peer.ended(), "agent process closed");
        let _ = self.group.end(self.limits.term).await;
        self.bury().await;
    }

    /// The sudden end: `KILL`, sweep.
    pub(super) async fn kill(mut self) {
        let _ = self.group.kill().await;
        self.bury().await;
    }

    async fn bury(self) {
        sweep(&self.marker, None).await;
        self.sweep.disarm();
        let _ = timeout(self.limits.term, self.stderr).await; // the log gets what was still in the pipe
    }
}

/// Answers what an agent sends outside of a turn: the log takes stray lines, requests are refused.
async fn discard(peer: &Peer, log: &AgentLog, message: Inbound) {
    match message {
        Inbound::Stray(line) => log.stray(&line),
        Inbound::Notification { .. } => {}
        Inbound::Request { id, .. } => peer.refuse(&id, &RpcError::method_not_found()).await,
    }
}
