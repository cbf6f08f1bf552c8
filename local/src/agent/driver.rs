//! One agent with one session: start, prompt, end. The process is kept warm between prompts; when it has died, the next
//! prompt starts another one and goes on with the same native session where the agent can.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::acp_types::{
    ClientCapabilities, ContentBlock, ElicitationCapability, Implementation, InitializeRequest,
    InitializeResponse, NewSessionRequest, NewSessionResponse, PromptRequest, ReopenSessionRequest,
    ReopenSessionResponse, SessionNotification,
};
use super::child::Child;
use super::error::AgentError;
use super::launch::Launch;
use super::rpc::{Inbound, parse};
use super::translate::cost_of;
use super::turn::{AgentEvent, TurnEnd};
use super::turn_loop::{Run, TurnLoop};
use crate::process::Marker;

/// The protocol version that is spoken.
const PROTOCOL_VERSION: i64 = 1;

/// An agent with its session. Dropping it kills its processes; [`Agent::end`] lets it end in order.
#[derive(Debug)]
pub struct Agent {
    launch: Launch,
    /// `None` when the process has died or was ended.
    child: Option<Child>,
    session: String,
    turns: u64,
    cost: CostBefore,
}

/// The session's cumulative cost before a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CostBefore {
    /// As the agent reported it, or nothing for a new session.
    Known(f64),
    /// A session that was begun earlier.
    Unknown,
}

/// A started process with its native session.
struct Started {
    child: Child,
    session: String,
    /// False when a new native session had to be begun although one was to be continued.
    context_kept: bool,
}

impl Agent {
    /// Starts the agent's process and opens its session: the one of [`Launch::resume`] when the agent still has it,
    /// else a new one.
    ///
    /// # Errors
    /// When the process cannot be started or does not speak the protocol; nothing of it is left then.
    pub async fn start(launch: Launch) -> Result<Self, AgentError> {
        let started = start(&launch, launch.resume.as_deref()).await?;
        let resumed = launch.resume.is_some() && started.context_kept;
        let cost = if resumed {
            CostBefore::Unknown
        } else {
            CostBefore::Known(0.0)
        };
        Ok(Self {
            launch,
            child: Some(started.child),
            session: started.session,
            turns: 0,
            cost,
        })
    }

    /// The agent's own id of the session, to go on with it after a restart of the deployment.
    #[must_use]
    pub fn native_session_id(&self) -> &str {
        &self.session
    }

    /// True when a warm process is there; false means that the next prompt starts one.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.child.as_ref().is_some_and(Child::is_alive)
    }

    /// The marker of the running process, by which everything that it started is found.
    #[must_use]
    pub fn marker(&self) -> Option<&Marker> {
        self.child.as_ref().map(Child::marker)
    }

    /// Runs one turn. Every event is in `events` before the end is returned; the events are those of one step, without
    /// the run's own frame (`execution.started`, `result`, `error`, `done`). A slow reader slows the agent down.
    ///
    /// The turn is cancelled when `cancel` fires or the reader of `events` goes away, and fails when the agent sends
    /// nothing for as long as `watchdog`. A cancelled or failed turn leaves no process outside of the agent's own
    /// group; an agent that does not end its turn in time is ended itself.
    ///
    /// Dropping the future in the middle kills the agent's processes; the next prompt starts a new one.
    pub async fn prompt(
        &mut self,
        text: &str,
        events: mpsc::Sender<AgentEvent>,
        cancel: CancellationToken,
        watchdog: Duration,
    ) -> TurnEnd {
        let mut warnings = Vec::new();
        let ready = tokio::select! {
            biased;
            () = cancel.cancelled() => return TurnEnd::cancelled(),
            ready = self.ready(&mut warnings) => ready,
        };
        let mut child = match ready {
            Ok(child) => child,
            Err(error) => return TurnEnd::failed(error.code(), &error.to_string()),
        };
        self.absorb(&mut child).await;
        self.turns += 1;
        let request = PromptRequest {
            session_id: self.session.clone(),
            prompt: vec![ContentBlock {
                type_: "text".to_owned(),
                text: Some(text.to_owned()),
            }],
        };
        let turn = TurnLoop::new(
            &mut child,
            &self.launch,
            &request,
            self.turns,
            &events,
            &cancel,
            watchdog,
        );
        let Run {
            mut end,
            keep,
            session_cost,
        } = turn.run(warnings, self.cost).await;
        if let Some(cost) = session_cost {
            self.cost = CostBefore::Known(cost);
        }
        if !keep {
            child.kill().await;
        } else {
            if end.outcome != super::turn::Outcome::Completed {
                child.sweep_strays().await;
            }
            self.child = Some(child);
        }
        if let Some(reason) = &end.stop_reason {
            end.metadata
                .insert("stopReason".to_owned(), reason.clone().into());
        }
        end
    }

    /// Ends the agent: its stdin is closed, then `TERM` and `KILL` go to its group, then its marker is swept.
    pub async fn end(mut self) {
        if let Some(child) = self.child.take() {
            child.end().await;
        }
    }

    /// The warm process, or a new one with the same session. It is taken out, so that a dropped prompt drops it.
    async fn ready(&mut self, warnings: &mut Vec<AgentEvent>) -> Result<Child, AgentError> {
        match self.child.take() {
            Some(child) if child.is_alive() => return Ok(child),
            Some(dead) => dead.kill().await,
            None => {}
        }
        let started = start(&self.launch, Some(&self.session)).await?;
        if !started.context_kept {
            self.cost = CostBefore::Known(0.0);
            warnings.push(AgentEvent::warning(
                "AGENT_CONTEXT_LOST",
                "the agent's process had ended and its session could not be continued; a new one was begun",
            ));
        }
        self.session = started.session;
        Ok(started.child)
    }

    /// Takes what arrived since the last turn; of it only the cost counts.
    async fn absorb(&mut self, child: &mut Child) {
        while let Ok(message) = child.inbound.try_recv() {
            match message {
                Inbound::Stray(line) => child.log.stray(&line),
                Inbound::Request { id, .. } => child.refuse(&id).await,
                Inbound::Notification { params, .. } => {
                    let update =
                        parse::<SessionNotification>(params.as_deref()).map(|update| update.update);
                    if let Ok(Value::Object(update)) = update
                        && let Some(cost) = cost_of(&update)
                    {
                        self.cost = CostBefore::Known(cost);
                    }
                }
            }
        }
    }
}

/// Starts a process and opens `resume` or a new session.
async fn start(launch: &Launch, resume: Option<&str>) -> Result<Started, AgentError> {
    let mut child = Child::spawn(launch)?;
    match open(&mut child, launch, resume).await {
        Ok((session, context_kept)) => Ok(Started {
            child,
            session,
            context_kept,
        }),
        Err(error) => {
            child.kill().await;
            Err(error)
        }
    }
}

async fn open(
    child: &mut Child,
    launch: &Launch,
    resume: Option<&str>,
) -> Result<(String, bool), AgentError> {
    let answer: InitializeResponse = child.call("initialize", &introduction()).await?;
    if answer.protocol_version != PROTOCOL_VERSION {
        return Err(AgentError::Version);
    }
    let cwd = std::path::absolute(&launch.place.workspace).map_err(AgentError::Place)?;
    let cwd = cwd.to_string_lossy().into_owned();
    if let Some(session) = resume
        && let Some(method) = reopening(&answer)
    {
        let request = ReopenSessionRequest {
            session_id: session.to_owned(),
            cwd: cwd.clone(),
            mcp_servers: Vec::new(),
        };
        match child
            .call::<Option<ReopenSessionResponse>>(method, &request)
            .await
        {
            Ok(_) => return Ok((session.to_owned(), true)),
            Err(AgentError::Refused { .. } | AgentError::Shape { .. }) => {} // it no longer has that session
            Err(error) => return Err(error),
        }
    }
    let request = NewSessionRequest {
        cwd,
        mcp_servers: Vec::new(),
    };
    let answer: NewSessionResponse = child.call("session/new", &request).await?;
    Ok((answer.session_id, resume.is_none()))
}

fn introduction() -> InitializeRequest {
    InitializeRequest {
        protocol_version: PROTOCOL_VERSION,
        client_capabilities: Some(ClientCapabilities {
            elicitation: Some(ElicitationCapability {
                form: Some(Value::Object(serde_json::Map::new())),
            }),
            plan: Some(Value::Object(serde_json::Map::new())),
            fs: None,
            terminal: None,
        }),
        client_info: Some(Implementation {
            name: "tangle-sandbox-local".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: None,
        }),
    }
}

/// Resume, since it replays nothing; else load.
fn reopening(agent: &InitializeResponse) -> Option<&'static str> {
    let offered = agent.agent_capabilities.as_ref()?;
    let resumes = offered
        .session_capabilities
        .as_ref()
        .is_some_and(|session| session.resume.is_some());
    let loads = offered.load_session == Some(true);
    if resumes {
        Some("session/resume")
    } else {
        loads.then_some("session/load")
    }
}
