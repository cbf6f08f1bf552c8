//! The task of one run: it gets an agent, records what the agent reports, and records the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::backend::Chosen;
use super::live::{Ending, Live, Progress};
use super::recorder::{Native, Recorder, frame};
use super::warm::Kept;
use crate::agent::{Agent, AgentEvent, ModelProxy, Outcome, Place, TurnEnd};
use crate::api::Shared;
use crate::occupancy::Stay;
use crate::process::Marker;
use crate::store::StoreError;
use crate::store::executions::ExecutionRow;
use crate::store::frames::NewFrame;
use crate::store::sandboxes::SandboxRow;
use crate::store::sessions::SessionRow;

/// Events between the agent and the record.
const EVENTS: usize = 256;
/// How long to wait before an end that could not be recorded is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Everything that a run needs.
pub(crate) struct Run {
    pub(crate) deployment: Shared,
    pub(crate) sandbox: SandboxRow,
    /// Keeps the sandbox from being stopped under the run.
    pub(crate) stay: Stay,
    pub(crate) live: Arc<Live>,
    pub(crate) execution: ExecutionRow,
    pub(crate) session: SessionRow,
    pub(crate) chosen: Chosen,
    pub(crate) prompt: String,
    /// The caller's limit; a detached run has none.
    pub(crate) limit: Option<Duration>,
    pub(crate) trace: Option<String>,
}

/// Whatever happens to the task, readers learn that nothing follows.
struct Closed {
    deployment: Shared,
    live: Arc<Live>,
    pk: i64,
}

impl Drop for Closed {
    fn drop(&mut self) {
        let Progress { newest, .. } = *self.live.follow().borrow();
        self.live.publish(Progress {
            newest,
            ended: true,
        });
        self.deployment.runs.remove(self.pk);
    }
}

/// How the agent's part ended.
struct End {
    turn: TurnEnd,
    native: Option<Native>,
}

/// Starts the run's task.
pub(crate) fn start(run: Run) {
    let tasks = run.deployment.tasks.clone();
    tasks.spawn(async move {
        let closed = Closed {
            deployment: run.deployment.clone(),
            live: run.live.clone(),
            pk: run.execution.pk,
        };
        run.drive().await;
        drop(closed);
    });
}

impl Run {
    async fn drive(self) {
        let begun = Instant::now();
        let mut recorder = Recorder {
            store: self.deployment.store.clone(),
            live: self.live.clone(),
            pk: self.execution.pk,
            newest: self.execution.newest,
        };
        let end = {
            let turn = self.turn(&mut recorder);
            let watch = self.watch();
            tokio::pin!(turn, watch);
            loop {
                tokio::select! {
                    biased;
                    end = &mut turn => break end,
                    why = &mut watch, if self.live.ending().is_none() => self.live.end(why),
                }
            }
        };
        let (status, frames, result) = self.verdict(&end.turn, begun.elapsed());
        loop {
            let recorded = recorder
                .finish(frames.clone(), status, result.clone(), end.native.clone())
                .await;
            match recorded {
                Ok(()) => return recorder.close(),
                Err(error) => tracing::error!(%error, "the end of a run could not be recorded"),
            }
            recorder.close(); // readers are cut rather than left waiting for an end that is not recorded
            // A full disk may get room; otherwise the next start records the run as failed.
            tokio::select! {
                () = self.deployment.closing.cancelled() => return,
                () = tokio::time::sleep(TRY_AGAIN) => {}
            }
        }
    }

    /// The first reason from outside to end the run.
    async fn watch(&self) -> Ending {
        let limit = async {
            match self.limit.filter(|_| !self.live.is_detached()) {
                Some(limit) => {
                    tokio::time::sleep(limit).await;
                    if self.live.is_detached() {
                        std::future::pending::<()>().await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.deployment.closing.cancelled() => Ending::Stopped,
            () = self.stay.leave().cancelled() => Ending::Cancelled,
            () = limit => Ending::TimedOut,
        }
    }

    /// One turn of the agent.
    async fn turn(&self, recorder: &mut Recorder) -> End {
        let ready = tokio::select! {
            biased;
            () = self.live.stop().cancelled() => return End::without_agent(Outcome::Cancelled),
            ready = self.agent() => ready,
        };
        let (mut kept, warnings) = match ready {
            Ok(ready) => ready,
            Err((code, message)) => {
                return End::without_agent(Outcome::Failed {
                    code: code.to_owned(),
                    message,
                });
            }
        };
        let context_lost = !warnings.is_empty();
        self.record(recorder, warnings).await;
        if let Err(error) = recorder.begun(self.native(&kept)).await {
            self.unrecorded(&error);
        }
        let mut turn = self.prompt(&mut kept, recorder).await;
        if context_lost {
            turn.metadata.insert("contextKept".to_owned(), false.into());
        }
        let native = self.native(&kept); // it may have changed with the agent's process
        let unrecorded = self.live.ending() == Some(Ending::Unrecorded);
        if unrecorded || self.deployment.closing.is_cancelled() || self.stay.leave().is_cancelled()
        {
            kept.end().await;
        } else {
            let warm = &self.deployment.warm;
            warm.keep(&self.sandbox.id, &self.execution.session, kept)
                .await;
        }
        End {
            turn,
            native: Some(native),
        }
    }

    /// Hands the prompt over and records what comes back until the agent has ended its turn.
    async fn prompt(&self, kept: &mut Kept, recorder: &mut Recorder) -> TurnEnd {
        let (sender, mut events) = mpsc::channel(EVENTS);
        let (stop, watchdog) = (self.live.stop().clone(), self.deployment.settings.watchdog);
        let prompt = kept.agent.prompt(&self.prompt, sender, stop, watchdog);
        tokio::pin!(prompt);
        let (mut batch, mut end) = (Vec::with_capacity(EVENTS), None);
        loop {
            tokio::select! {
                biased;
                turn = &mut prompt, if end.is_none() => end = Some(turn),
                count = events.recv_many(&mut batch, EVENTS) => {
                    if count == 0 && let Some(end) = end.take() {
                        return end;
                    }
                    let frames = batch.drain(..).map(to_frame).collect();
                    self.record(recorder, frames).await;
                }
            }
        }
    }

    /// Records frames. The run is ended when that fails, and nothing more is recorded of it but its end.
    async fn record(&self, recorder: &mut Recorder, frames: Vec<NewFrame>) {
        if self.live.ending() == Some(Ending::Unrecorded) {
            return;
        }
        if let Err(error) = recorder.record_some(frames).await {
            self.unrecorded(&error);
        }
    }

    fn unrecorded(&self, error: &StoreError) {
        tracing::error!(%error, "a run is ended, since its events cannot be recorded");
        self.live.fail(Ending::Unrecorded);
    }

    fn native(&self, kept: &Kept) -> Native {
        Native {
            backend: self.chosen.name.clone(),
            id: kept.agent.native_session_id().to_owned(),
        }
    }

    /// The session's warm agent, or a new one that goes on with the session; and what the reader must know of it.
    async fn agent(&self) -> Result<(Kept, Vec<NewFrame>), (&'static str, String)> {
        let identity = self.chosen.identity;
        let (sandbox, session) = (&self.sandbox.id, &self.execution.session);
        if let Some(kept) = self.deployment.warm.take(sandbox, session, identity).await {
            return Ok((kept, Vec::new()));
        }
        super::mark_processes(&self.deployment, &self.sandbox)
            .await
            .map_err(|error| ("AGENT_START_FAILED", error.to_string()))?;
        let proxy = match &self.chosen.target {
            Some(target) => Some(
                ModelProxy::start(target.clone())
                    .await
                    .map_err(|error| ("AGENT_START_FAILED", error.to_string()))?,
            ),
            None => None,
        };
        let access = proxy
            .as_ref()
            .zip(self.chosen.model.as_deref())
            .map(|(proxy, model)| proxy.access(model));
        let mut launch = self.chosen.installed.launch(self.place(), access.as_ref());
        launch.resume = self.session.native.clone();
        let agent = Agent::start(launch)
            .await
            .map_err(|error| (error.code(), error.to_string()))?;
        let resumed = self.session.native.as_deref();
        let lost = resumed.is_some_and(|before| before != agent.native_session_id());
        let warnings = lost.then(|| {
            let warning = AgentEvent::warning(
                "AGENT_CONTEXT_LOST",
                "the agent could not go on with its session; a new one was begun",
            );
            to_frame(warning)
        });
        let kept = Kept {
            agent,
            proxy,
            identity,
        };
        Ok((kept, warnings.into_iter().collect()))
    }

    fn place(&self) -> Place {
        let places = &self.deployment.places;
        let own: Map<String, Value> = serde_json::from_str(&self.sandbox.env).unwrap_or_default();
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        let secrets = self.chosen.secrets.iter();
        let secrets = secrets.map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let mut env: Vec<(String, String)> = own.chain(secrets).collect();
        env.push(Marker::sandbox(&*self.sandbox.marker).entry());
        Place {
            workspace: places.workspace(&self.sandbox.id),
            home: places.agent_home(&self.sandbox.id),
            log: places.agent_log(&self.sandbox.id, &self.execution.session),
            env,
        }
    }
}

impl End {
    fn without_agent(outcome: Outcome) -> Self {
        Self {
            turn: TurnEnd {
                outcome,
                final_text: None,
                tool_invocations: Vec::new(),
                usage: None,
                cost_usd: None,
                stop_reason: None,
                metadata: Map::new(),
            },
            native: None,
        }
    }
}

fn to_frame(event: AgentEvent) -> NewFrame {
    frame(&event.kind, event.data)
}
