//! What a turn is asked, and what comes of it.

use serde_json::Value;

use crate::contract::check::Refused;
use crate::contract::types::{
    BackendConfig, ExecutionId, RunOutcome, RunRequest, SessionId, TokenUsage, ToolInvocation,
    TurnId,
};
use crate::contract::verify;

use super::state::Deadline;

/// One turn for the agent: a text, and how it is to run.
///
/// ```
/// use tangle_sandbox::sandbox::{Deadline, Prompt};
///
/// let prompt = Prompt::new("add a test").deadline(Deadline::from_minutes(5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    pub(crate) request: RunRequest,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) rejoin: Rejoin,
    refused: Option<Refused>,
}

/// What the client does when a stream is cut before the run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejoin {
    /// It comes back after the last event, up to three times without a new one.
    #[default]
    Automatic,
    /// It gives the event `error` with `STREAM_INTERRUPTED`.
    Off,
}

impl Prompt {
    /// A turn with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Prompt {
            request: RunRequest {
                message: Some(text.into()),
                ..RunRequest::default()
            },
            ..Prompt::default()
        }
    }

    /// The session whose conversation goes on; without one, a new session begins.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.request.session_id = Some(session);
        self
    }

    /// The key of this turn inside its session, which has to be named too: a repeat gives the first result and runs
    /// nothing.
    #[must_use]
    pub fn turn(mut self, turn: TurnId) -> Self {
        self.request.turn_id = Some(turn);
        self
    }

    /// The identity of the execution; without one, the client makes its own.
    #[must_use]
    pub fn execution(mut self, execution: ExecutionId) -> Self {
        self.request.execution_id = Some(execution);
        self
    }

    /// The backend of this turn.
    #[must_use]
    pub fn backend(mut self, backend: BackendConfig) -> Self {
        self.request.backend = Some(backend.into());
        self
    }

    /// How long the caller waits for this turn; a turn that is not detached is ended when it passes.
    #[must_use]
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        let millis = u64::try_from(deadline.get().as_millis()).unwrap_or(u64::MAX);
        match millis.try_into() {
            Ok(millis) => self.request.timeout_ms = Some(millis),
            Err(refused) => {
                let refused: Refused = refused;
                let refused = Refused::new("/timeoutMs", refused.rule().to_owned());
                self.refused.get_or_insert(refused);
            }
        }
        self.deadline = Some(deadline);
        self
    }

    /// One fact of the caller's own that travels with the turn.
    #[must_use]
    pub fn context(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.request
            .metadata
            .get_or_insert_default()
            .insert(key.to_owned(), value.into());
        self
    }

    /// Whether the client comes back by itself after a cut.
    #[must_use]
    pub fn rejoin(mut self, rejoin: Rejoin) -> Self {
        self.rejoin = rejoin;
        self
    }

    /// Refuses what is wrong before anything is sent.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        if self.request.message.as_deref() == Some("") {
            return Err(Refused::new("/message", "must not be empty"));
        }
        // In a session that is new each time, the key of a turn could never recognise a repeat.
        if self.request.turn_id.is_some() && self.request.session_id.is_none() {
            return Err(Refused::new("/turnId", "needs a session"));
        }
        verify(&self.request)?;
        self.request.rules()
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt::new(text)
    }
}

/// How a turn ended (wire protocol, 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptStatus {
    /// It did what it was asked.
    Success,
    /// It failed, or was cancelled.
    Failed,
    /// It waits for an approval.
    BlockedOnApproval,
    /// It waits for an answer to a question.
    AwaitingQuestion,
    /// It waits for an answer to an ask.
    AwaitingInteraction,
    /// It waits for the decision on a plan.
    AwaitingPlanDecision,
    /// The stream was lost and the run could not be settled: it may have happened.
    Unknown,
}

/// The outcome of a turn. A failed run is an outcome, not an error.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// How it ended.
    pub status: PromptStatus,
    /// The agent's answer, if it gave one.
    pub response: Option<String>,
    /// Why it failed, for people.
    pub error: Option<String>,
    /// Code of that.
    pub error_code: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The execution.
    pub execution_id: Option<String>,
    /// Tool calls in order of first appearance.
    pub tool_invocations: Vec<ToolInvocation>,
    /// Tokens used; absent when they were not reported.
    pub usage: Option<TokenUsage>,
    /// Cost in US dollars; absent when it was not reported.
    pub cost_usd: Option<f64>,
    /// Duration in milliseconds: as reported, else as measured here.
    pub duration_ms: f64,
    /// Id under which the platform keeps the trace of the run.
    pub trace_id: Option<String>,
    /// The terminal summary as the service sent it, with the approval, question or plan that is waited for.
    pub outcome: Option<Box<RunOutcome>>,
}

impl PromptResult {
    /// Whether the turn did what it was asked.
    pub fn success(&self) -> bool {
        self.status == PromptStatus::Success
    }

    /// The answer's text, or nothing.
    pub fn text(&self) -> &str {
        self.response.as_deref().unwrap_or_default()
    }
}
