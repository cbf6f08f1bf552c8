//! What a turn is asked, and what comes of it.

use serde_json::Value;

use crate::contract::check::Refused;
use crate::contract::types::{
    BackendConfig, ExecutionId, RunOutcome, RunRequest, SessionId, TokenUsage, ToolInvocation,
    TurnId,
};

use super::event::{Event, EventKind};
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

    /// The key of this turn inside its session: a repeat gives the first result and runs nothing.
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
        self.request.backend = Some(backend);
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

    /// A run that was refused or failed before it had a stream.
    pub(crate) fn failed(code: &str, message: String) -> Self {
        PromptResult {
            status: PromptStatus::Failed,
            error: Some(message),
            error_code: Some(code.to_owned()),
            ..Verdict::default().finish(0.0)
        }
    }
}

/// Gathers the events of a run into its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    text: String,
    tools: Vec<ToolInvocation>,
    tool_ids: Vec<String>,
    session: Option<String>,
    execution: Option<String>,
    result: Option<Box<RunOutcome>>,
    error: Option<(Option<String>, String)>,
    done: Option<String>,
}

impl Verdict {
    /// Takes one event in.
    pub fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ExecutionStarted(started) => {
                self.session = Some(started.session_id.to_string());
                self.execution = Some(started.execution_id.to_string());
            }
            EventKind::PartUpdated(update) => {
                if let Some(delta) = event.text_delta() {
                    self.text.push_str(delta);
                }
                if update.part.type_ == "tool" {
                    self.tool(update);
                }
            }
            EventKind::Result(result) => self.result = Some(result.clone()),
            EventKind::Error(error) => {
                self.error
                    .get_or_insert((error.code.clone(), error.message.clone()));
            }
            EventKind::Done(done) => {
                let outcome = done.outcome.as_ref().map(|outcome| outcome.type_.clone());
                self.done = done.status.clone().or(outcome).or(Some("completed".into()));
            }
            _ => {}
        }
    }

    /// Takes the recorded result of a run whose stream gave none.
    pub fn settle(&mut self, outcome: RunOutcome) {
        if self.error.is_none()
            && let Some(message) = &outcome.error
        {
            self.error = Some((outcome.error_code.clone(), message.clone()));
        }
        self.done = outcome.status.clone();
        self.result = Some(Box::new(outcome));
    }

    /// Whether the only thing known of the end is that the stream was lost.
    pub fn is_interrupted(&self) -> bool {
        let lost = matches!(&self.error, Some((Some(code), _)) if code == INTERRUPTED);
        lost && self.result.is_none() && self.done.is_none()
    }

    /// Forgets that the stream was lost, since the run was found again.
    pub fn forget_interruption(&mut self) {
        self.error = None;
    }

    fn tool(&mut self, update: &crate::contract::types::PartUpdated) {
        let part = &update.part;
        let id = part.call_id.clone().or_else(|| part.id.clone());
        let id = id.unwrap_or_default();
        let index = match self.tool_ids.iter().position(|known| *known == id) {
            Some(index) => index,
            None => {
                self.tool_ids.push(id);
                self.tools.push(ToolInvocation {
                    tool_name: part.tool.clone().unwrap_or_default(),
                    result: None,
                    extra: serde_json::Map::new(),
                });
                self.tools.len() - 1
            }
        };
        if let Some(output) = part.state.as_ref().and_then(|state| state.output.clone()) {
            self.tools[index].result = Some(output);
        }
    }

    fn status(&self) -> PromptStatus {
        if let Some((code, _)) = &self.error {
            let lost = code.as_deref() == Some(INTERRUPTED) && self.done.is_none();
            return if lost && self.result.is_none() {
                PromptStatus::Unknown
            } else {
                PromptStatus::Failed
            };
        }
        let waits = self.result.as_ref().and_then(|result| waiting(result));
        if let Some(waits) = waits {
            return waits;
        }
        let word = self.result.as_ref().and_then(|result| {
            let outcome = result
                .outcome
                .as_ref()
                .map(|outcome| outcome.type_.as_str());
            result.status.as_deref().or(outcome)
        });
        match (self.done.as_deref(), word) {
            (Some("awaiting_plan_decision"), _) => PromptStatus::AwaitingPlanDecision,
            (Some(done), _) if !good(done) => PromptStatus::Failed,
            (_, Some(word)) if !good(word) => PromptStatus::Failed,
            (None, None) if self.result.is_none() => PromptStatus::Unknown,
            _ => PromptStatus::Success,
        }
    }

    /// The result; `elapsed_ms` stands in for a duration that was not reported.
    pub fn finish(self, elapsed_ms: f64) -> PromptResult {
        let status = self.status();
        let result = self.result.as_deref();
        let text = (!self.text.is_empty()).then_some(self.text);
        let (error_code, error) = match self.error {
            Some((code, message)) => (code, Some(message)),
            None if status == PromptStatus::Failed => {
                let word = self.done.as_deref().unwrap_or("failed");
                let cancelled = word == "cancelled";
                let code = if cancelled {
                    "CANCELLED"
                } else {
                    "AGENT_EXECUTION_FAILED"
                };
                (
                    Some(code.to_owned()),
                    Some(format!("the run ended as {word}")),
                )
            }
            None => (None, None),
        };
        PromptResult {
            status,
            response: result.and_then(|result| result.final_text.clone()).or(text),
            error,
            error_code,
            session_id: self
                .session
                .or_else(|| result.and_then(|result| result.session_id.clone())),
            execution_id: self
                .execution
                .or_else(|| result.and_then(|result| result.execution_id.clone())),
            tool_invocations: result
                .and_then(|result| result.tool_invocations.clone())
                .unwrap_or(self.tools),
            usage: result.and_then(|result| result.token_usage.clone()),
            cost_usd: result.and_then(|result| result.cost_usd),
            duration_ms: result
                .and_then(|result| result.duration_ms)
                .unwrap_or(elapsed_ms),
            outcome: self.result,
        }
    }
}

/// Code of a stream that was lost before the run ended.
pub(crate) const INTERRUPTED: &str = "STREAM_INTERRUPTED";

fn good(word: &str) -> bool {
    matches!(word, "completed" | "success")
}

fn waiting(result: &RunOutcome) -> Option<PromptStatus> {
    let outcome = result
        .outcome
        .as_ref()
        .map(|outcome| outcome.type_.as_str());
    let word = result.status.as_deref();
    let says = |name: &str| word == Some(name) || outcome == Some(name);
    [
        ("blocked_on_approval", PromptStatus::BlockedOnApproval),
        ("awaiting_question", PromptStatus::AwaitingQuestion),
        ("awaiting_interaction", PromptStatus::AwaitingInteraction),
        ("awaiting_plan_decision", PromptStatus::AwaitingPlanDecision),
    ]
    .into_iter()
    .find_map(|(name, status)| says(name).then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(events: &[(&str, Value)]) -> PromptResult {
        let mut verdict = Verdict::default();
        for (name, data) in events {
            let Value::Object(data) = data.clone() else {
                panic!()
            };
            verdict.take(&Event::read(None, (*name).into(), data));
        }
        verdict.finish(5.0)
    }

    #[test]
    fn wire_7_4_an_error_before_a_good_done_is_a_failure_with_its_code() {
        let result = verdict(&[
            ("error", json!({ "code": "X", "message": "m" })),
            ("done", json!({ "status": "completed" })),
        ]);
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("X"));
    }

    #[test]
    fn result_and_a_good_done_is_success_with_the_final_text() {
        let result = verdict(&[
            (
                "message.part.updated",
                json!({ "part": { "type": "text", "id": "p" }, "delta": "He" }),
            ),
            ("result", json!({ "finalText": "Hello", "durationMs": 12 })),
            ("done", json!({ "outcome": { "type": "completed" } })),
        ]);
        assert!(result.success());
        assert_eq!((result.text(), result.duration_ms), ("Hello", 12.0));
    }

    #[test]
    fn done_alone_assembles_the_answer_from_deltas() {
        let part = json!({ "type": "text", "id": "p" });
        let result = verdict(&[
            (
                "message.part.updated",
                json!({ "part": part, "delta": "He" }),
            ),
            (
                "message.part.updated",
                json!({ "part": part, "delta": "llo" }),
            ),
            ("done", json!({ "status": "success" })),
        ]);
        assert!(result.success());
        assert_eq!(result.text(), "Hello");
    }

    #[test]
    fn a_cancelled_or_failed_done_is_a_failure() {
        for status in ["cancelled", "failed", "error"] {
            let result = verdict(&[("done", json!({ "status": status }))]);
            assert_eq!(result.status, PromptStatus::Failed, "{status}");
        }
        let result = verdict(&[("done", json!({ "status": "cancelled" }))]);
        assert_eq!(result.error_code.as_deref(), Some("CANCELLED"));
    }

    #[test]
    fn a_lost_stream_is_unknown_and_a_plan_waits() {
        let lost = verdict(&[(
            "error",
            json!({ "code": "STREAM_INTERRUPTED", "message": "m" }),
        )]);
        assert_eq!(lost.status, PromptStatus::Unknown);
        let plan = verdict(&[
            (
                "result",
                json!({ "outcome": { "type": "awaiting_plan_decision" } }),
            ),
            (
                "done",
                json!({ "outcome": { "type": "awaiting_plan_decision" } }),
            ),
        ]);
        assert_eq!(plan.status, PromptStatus::AwaitingPlanDecision);
    }
}
