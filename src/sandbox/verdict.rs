//! From the events of a run to its result.

use serde_json::{Map, Value};

use crate::contract::types::{FramePart, PartUpdated, RunOutcome, ToolInvocation};

use super::event::{Event, EventKind};
use super::inner::Identity;
use super::prompt::{PromptResult, PromptStatus};
use super::summary;

/// Code of a stream that was lost before the run ended.
pub(crate) const INTERRUPTED: &str = "STREAM_INTERRUPTED";

/// Gathers the events of a run into its result (wire protocol, 7.5 and 7.8).
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    text: String,
    /// The text parts that have added to the text.
    text_parts: Vec<String>,
    tools: Vec<ToolInvocation>,
    tool_ids: Vec<String>,
    session: Option<String>,
    execution: Option<String>,
    trace: Option<String>,
    result: Option<Box<RunOutcome>>,
    error: Option<Failure>,
    /// The status word of the last event.
    done: Option<String>,
}

#[derive(Clone, Debug)]
struct Failure {
    code: Option<String>,
    message: String,
}

impl Failure {
    fn is_interruption(&self) -> bool {
        self.code.as_deref() == Some(INTERRUPTED)
    }
}

impl Verdict {
    /// A verdict on a run of this identity.
    pub fn new(identity: &Identity) -> Self {
        Verdict {
            session: Some(identity.session.to_string()),
            execution: Some(identity.execution.to_string()),
            ..Verdict::default()
        }
    }

    /// The result of a run that was refused or failed before it had a stream.
    pub fn failed(mut self, code: &str, message: String) -> PromptResult {
        self.fail(Some(code.to_owned()), message);
        let mut result = self.finish(0.0);
        result.status = PromptStatus::Failed;
        result
    }

    /// Takes one event in.
    pub fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ExecutionStarted(started) => {
                self.session = Some(started.session_id.to_string());
                self.execution = Some(started.execution_id.to_string());
            }
            EventKind::PartUpdated(update) => match update.part.type_.as_str() {
                "text" => self.text(update),
                "tool" => self.tool(&update.part),
                _ => {}
            },
            EventKind::Result(result) => self.result = Some(result.clone()),
            EventKind::Error(error) => self.fail(error.code.clone(), error.message.clone()),
            EventKind::Done(done) => {
                let outcome = done.outcome.as_ref().map(|outcome| outcome.type_.clone());
                self.done = done.status.clone().or(outcome).or(Some("completed".into()));
            }
            EventKind::Raw(data) => self.take_raw(&event.name, data),
            _ => {}
        }
    }

    /// An event whose data does not fit its type still says what its type says.
    fn take_raw(&mut self, name: &str, data: &Map<String, Value>) {
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        match name {
            "result" => self.result = summary::lenient(data).map(Box::new),
            "error" => {
                let message = text("message").unwrap_or_else(|| "the run failed".to_owned());
                self.fail(text("code"), message);
            }
            "done" => self.done = text("status").or(Some("unreadable".into())),
            "trace.id" => self.trace = text("traceId"),
            _ => {}
        }
    }

    /// The first error decides.
    fn fail(&mut self, code: Option<String>, message: String) {
        self.error.get_or_insert(Failure { code, message });
    }

    /// Takes the recorded result of a run whose stream gave none.
    pub fn settle(&mut self, outcome: RunOutcome) {
        self.error = None;
        self.done = outcome.status.clone();
        self.result = Some(Box::new(outcome));
    }

    /// Notes that the stream was lost and cannot be read on.
    pub fn interrupt(&mut self, message: String) {
        self.fail(Some(INTERRUPTED.to_owned()), message);
    }

    /// Whether the newest thing known of the end is that the stream was lost.
    pub fn is_interrupted(&self) -> bool {
        self.error.as_ref().is_some_and(Failure::is_interruption) && self.done.is_none()
    }

    /// Forgets that the stream was lost, since the run was found again.
    pub fn forget_interruption(&mut self) {
        self.error = None;
    }

    /// Text comes as increments; a whole part counts when none came before it.
    fn text(&mut self, update: &PartUpdated) {
        let id = update.part.id.as_deref().unwrap_or_default();
        let known = self.text_parts.iter().any(|known| known == id);
        let more = match (&update.delta, &update.part.text) {
            (Some(delta), _) => delta,
            (None, Some(whole)) if !known => whole,
            _ => return,
        };
        self.text.push_str(more);
        if !known {
            self.text_parts.push(id.to_owned());
        }
    }

    fn tool(&mut self, part: &FramePart) {
        let id = part.call_id.clone().or_else(|| part.id.clone());
        let id = id.unwrap_or_default();
        let index = match self.tool_ids.iter().position(|known| *known == id) {
            Some(index) => index,
            None => {
                self.tool_ids.push(id);
                self.tools.push(ToolInvocation {
                    tool_name: part.tool.clone().unwrap_or_default(),
                    result: None,
                    extra: Map::new(),
                });
                self.tools.len() - 1
            }
        };
        if let Some(output) = part.state.as_ref().and_then(|state| state.output.clone()) {
            self.tools[index].result = Some(output);
        }
    }

    fn status(&self) -> PromptStatus {
        if self.is_interrupted() {
            return PromptStatus::Unknown;
        }
        if self.error.is_some() {
            return PromptStatus::Failed;
        }
        if let Some(waits) = self.result.as_deref().and_then(waiting) {
            return waits;
        }
        match (self.done.as_deref(), self.word()) {
            (Some("awaiting_plan_decision"), _) => PromptStatus::AwaitingPlanDecision,
            (Some(done), _) if !good(done) => PromptStatus::Failed,
            (_, Some(word)) if !good(word) => PromptStatus::Failed,
            (None, None) if self.result.is_none() => PromptStatus::Unknown,
            _ => PromptStatus::Success,
        }
    }

    /// The status word of the summary.
    fn word(&self) -> Option<&str> {
        let result = self.result.as_deref()?;
        let outcome = result
            .outcome
            .as_ref()
            .map(|outcome| outcome.type_.as_str());
        result.status.as_deref().or(outcome)
    }

    /// Why a run failed that sent no error event.
    fn unsaid(&self) -> Failure {
        let done = self.done.as_deref().filter(|done| !good(done));
        let word = done.or(self.word()).unwrap_or("failed").to_owned();
        let code = match word.as_str() {
            "cancelled" => "CANCELLED",
            _ => "AGENT_EXECUTION_FAILED",
        };
        let result = self.result.as_deref();
        let said = result.and_then(|result| result.error.clone());
        Failure {
            code: result
                .and_then(|result| result.error_code.clone())
                .or(Some(code.to_owned())),
            message: said.unwrap_or_else(|| format!("the run ended as {word}")),
        }
    }

    /// The result; `elapsed_ms` stands in for a duration that was not reported.
    pub fn finish(mut self, elapsed_ms: f64) -> PromptResult {
        let status = self.status();
        if status == PromptStatus::Failed && self.error.is_none() {
            self.error = Some(self.unsaid());
        }
        let (error, error_code) = match self.error {
            Some(failure) => (Some(failure.message), failure.code),
            None => (None, None),
        };
        let result = self.result.as_deref();
        let text = (!self.text.is_empty()).then_some(self.text);
        let named = |key: &str| {
            let value = result?.metadata.as_ref()?.get(key)?;
            value.as_str().map(str::to_owned)
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
            usage: result.and_then(summary::usage),
            cost_usd: result.and_then(|result| result.cost_usd),
            duration_ms: result
                .and_then(|result| result.duration_ms)
                .unwrap_or(elapsed_ms),
            trace_id: self.trace.or_else(|| named("traceId")),
            outcome: self.result,
        }
    }
}

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

    #[test]
    fn wire_7_4_an_error_whose_data_does_not_fit_still_decides() {
        let result = verdict(&[
            ("error", json!({ "code": "X" })),
            ("done", json!({ "status": "completed" })),
        ]);
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("X"));
        let result = verdict(&[("done", json!({ "status": 7 }))]);
        assert_eq!(result.status, PromptStatus::Failed);
    }

    #[test]
    fn a_whole_part_counts_only_when_no_increment_came_before() {
        let part =
            |id: &str, text: &str| json!({ "part": { "type": "text", "id": id, "text": text } });
        let mut grown = part("a", "Hello");
        grown["delta"] = json!("Hello");
        let result = verdict(&[
            ("message.part.updated", grown),
            ("message.part.updated", part("a", "Hello")),
            ("message.part.updated", part("b", " there")),
            ("done", json!({ "status": "completed" })),
        ]);
        assert_eq!(result.text(), "Hello there");
    }

    #[test]
    fn a_summary_alone_says_why_the_run_failed() {
        let result = verdict(&[(
            "result",
            json!({ "status": "cancelled", "metadata": { "traceId": "t-1" } }),
        )]);
        assert_eq!(result.error_code.as_deref(), Some("CANCELLED"));
        assert_eq!(result.trace_id.as_deref(), Some("t-1"));
        let result = verdict(&[(
            "result",
            json!({ "status": "failed", "error": "no model", "errorCode": "M" }),
        )]);
        assert_eq!(result.error.as_deref(), Some("no model"));
        assert_eq!(result.error_code.as_deref(), Some("M"));
    }
}
