//! How a run ended: its status, its last frames, its recorded result (wire protocol, 7.4, 7.5 and 9.7).

use std::time::Duration;

use serde_json::{Map, Value, json};
use tangle_sandbox::contract::types::{Done, Outcome, StreamError};

use super::admission::status_frame;
use super::engine::Run;
use super::live::Ending;
use super::recorder::{FRAME_LIMIT, frame, own_frame};
use crate::agent::{self, ToolInvocation, TurnEnd};
use crate::store::executions::ExecutionRow;
use crate::store::frames::NewFrame;

const TIMED_OUT: &str = "the caller's limit (`timeoutMs`) passed and the run was ended";
const UNRECORDED: &str = "the run was ended, since its events could not be recorded";
const STOPPED: &str = "the deployment was stopped while the run went on";

/// How a run is recorded.
#[derive(Debug, PartialEq, Eq)]
enum Verdict<'a> {
    Completed,
    Cancelled,
    Failed { code: &'a str, message: &'a str },
}

/// A run whose events were lost never completed. Otherwise an agent that finished has finished, whatever was asked of it
/// meanwhile; and of several reasons to end a run the first one counts.
fn judge(ending: Option<Ending>, outcome: &agent::Outcome) -> Verdict<'_> {
    let interrupted = |message| Verdict::Failed {
        code: "STREAM_INTERRUPTED",
        message,
    };
    match (ending, outcome) {
        (Some(Ending::Unrecorded), _) => interrupted(UNRECORDED),
        (_, agent::Outcome::Completed) => Verdict::Completed,
        (Some(Ending::Stopped), _) => interrupted(STOPPED),
        (Some(Ending::TimedOut), _) => Verdict::Failed {
            code: "TIMEOUT",
            message: TIMED_OUT,
        },
        (Some(Ending::Cancelled), _) | (None, agent::Outcome::Cancelled) => Verdict::Cancelled,
        (None, agent::Outcome::Failed { code, message }) => Verdict::Failed { code, message },
    }
}

impl Run {
    /// The status, the last frames and the recorded result.
    pub(super) fn verdict(
        &self,
        turn: &TurnEnd,
        took: Duration,
    ) -> (&'static str, Vec<NewFrame>, Value) {
        let mut result = self.summary(turn, took);
        let (status, frames) = match judge(self.live.ending(), &turn.outcome) {
            Verdict::Completed => {
                let outcome = Outcome {
                    type_: "completed".to_owned(),
                    extra: Map::new(),
                };
                result.insert("status".to_owned(), "completed".into());
                result.insert("outcome".to_owned(), json!(outcome));
                fit(&mut result, FRAME_LIMIT);
                let frames = vec![
                    frame("result", result.clone()),
                    status_frame("completed", &self.execution),
                    done("completed", Some(outcome)),
                ];
                ("completed", frames)
            }
            Verdict::Cancelled => {
                result.insert("status".to_owned(), "cancelled".into());
                let frames = vec![
                    status_frame("cancelled", &self.execution),
                    done("cancelled", None),
                ];
                ("cancelled", frames)
            }
            Verdict::Failed { code, message } => {
                result.extend(failure_fields(code, message));
                ("failed", failed_frames(&self.execution, code, message))
            }
        };
        fit(&mut result, FRAME_LIMIT);
        (status, frames, Value::Object(result))
    }

    fn summary(&self, turn: &TurnEnd, took: Duration) -> Map<String, Value> {
        let mut metadata = turn.metadata.clone();
        metadata.extend(own_metadata(&self.execution));
        if let Some(trace) = &self.trace {
            metadata.insert("traceId".to_owned(), trace.clone().into());
        }
        let mut result = Map::new();
        let tools: Vec<Value> = turn
            .tool_invocations
            .iter()
            .map(ToolInvocation::to_json)
            .collect();
        result.insert("executionId".to_owned(), self.execution.id.clone().into());
        result.insert(
            "sessionId".to_owned(),
            self.execution.session.clone().into(),
        );
        result.insert("durationMs".to_owned(), (took.as_millis() as u64).into());
        result.insert("toolInvocations".to_owned(), tools.into());
        result.insert("metadata".to_owned(), metadata.into());
        if let Some(text) = &turn.final_text {
            result.insert("finalText".to_owned(), text.clone().into());
        }
        if let Some(usage) = &turn.usage {
            result.insert("tokenUsage".to_owned(), usage.to_json());
        }
        if let Some(cost) = turn.cost_usd {
            result.insert("costUsd".to_owned(), cost.into());
        }
        result
    }
}

/// What the result says of the request that was admitted: the session, and the caller's context as it came.
pub(super) fn own_metadata(execution: &ExecutionRow) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("sessionId".to_owned(), execution.session.clone().into());
    let context = execution.context.as_deref();
    if let Some(context) = context.and_then(|context| serde_json::from_str(context).ok()) {
        metadata.insert("context".to_owned(), context);
    }
    metadata
}

/// Leaves the last tools out until the result fits into a frame, and says how many: a run never ends without its result.
/// Everything else of a result is bounded.
fn fit(result: &mut Map<String, Value>, limit: usize) {
    const LEFT_OUT: &str = "toolInvocationsLeftOut";
    const MARK: usize = LEFT_OUT.len() + 32;
    let size = |value: &Value| value.to_string().len();
    let mut whole = size(&Value::Object(result.clone())) + MARK;
    let Some(Value::Array(tools)) = result.get_mut("toolInvocations") else {
        return;
    };
    let mut left_out = 0;
    while whole > limit
        && let Some(tool) = tools.pop()
    {
        whole = whole.saturating_sub(size(&tool) + 1);
        left_out += 1;
    }
    if left_out > 0
        && let Some(Value::Object(metadata)) = result.get_mut("metadata")
    {
        metadata.insert(LEFT_OUT.to_owned(), left_out.into());
    }
}

fn done(status: &str, outcome: Option<Outcome>) -> NewFrame {
    let done = Done {
        status: Some(status.to_owned()),
        outcome,
        extra: Map::new(),
    };
    own_frame("done", &done)
}

/// `error`, then `done`.
pub(super) fn failed_frames(execution: &ExecutionRow, code: &str, message: &str) -> Vec<NewFrame> {
    let session = ("sessionId".to_owned(), execution.session.clone().into());
    let error = StreamError {
        code: Some(code.to_owned()),
        message: message.to_owned(),
        execution_id: Some(execution.id.clone()),
        last_event_id: None,
        extra: Map::from_iter([session]),
    };
    vec![own_frame("error", &error), done("failed", None)]
}

/// What a recorded result says of a failure.
pub(super) fn failure_fields(code: &str, message: &str) -> Map<String, Value> {
    Map::from_iter([
        ("status".to_owned(), "failed".into()),
        ("error".to_owned(), message.into()),
        ("errorCode".to_owned(), code.into()),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Verdict, fit, judge};
    use crate::agent::Outcome;
    use crate::run::Ending;

    fn failed_with(verdict: &Verdict<'_>) -> Option<String> {
        match verdict {
            Verdict::Failed { code, .. } => Some((*code).to_owned()),
            _ => None,
        }
    }

    #[test]
    fn a_run_whose_events_were_lost_is_never_completed() {
        let crashed = Outcome::Failed {
            code: "AGENT_CRASHED".to_owned(),
            message: String::new(),
        };
        for outcome in [Outcome::Completed, Outcome::Cancelled, crashed] {
            let verdict = judge(Some(Ending::Unrecorded), &outcome);
            assert_eq!(
                failed_with(&verdict).as_deref(),
                Some("STREAM_INTERRUPTED"),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn an_agent_that_finished_has_finished() {
        for ending in [Ending::Cancelled, Ending::TimedOut, Ending::Stopped] {
            let verdict = judge(Some(ending), &Outcome::Completed);
            assert_eq!(verdict, Verdict::Completed, "{ending:?}");
        }
        let verdict = judge(Some(Ending::TimedOut), &Outcome::Cancelled);
        assert_eq!(failed_with(&verdict).as_deref(), Some("TIMEOUT"));
        assert_eq!(judge(None, &Outcome::Cancelled), Verdict::Cancelled);
    }

    fn large(tools: usize) -> Map<String, Value> {
        let tools =
            (0..tools).map(|number| json!({"toolCallId": number, "result": "x".repeat(900)}));
        let result =
            json!({"metadata": {"sessionId": "s"}, "toolInvocations": tools.collect::<Value>()});
        result.as_object().unwrap().clone()
    }

    #[test]
    fn a_result_that_is_too_large_loses_tools_and_says_so() {
        let mut result = large(50);
        fit(&mut result, 10_000);
        let kept = result["toolInvocations"].as_array().unwrap().len();
        assert!((8..50).contains(&kept), "{kept}");
        assert_eq!(result["metadata"]["toolInvocationsLeftOut"], 50 - kept);
        assert_eq!(result["toolInvocations"][kept - 1]["toolCallId"], kept - 1);
        let fitting = result.clone();
        fit(&mut result, 10_000);
        assert_eq!(result, fitting);
        assert!(Value::Object(result).to_string().len() <= 10_000);
    }

    #[test]
    fn a_result_that_fits_stays_as_it_is() {
        let mut result = large(5);
        fit(&mut result, 10_000);
        assert_eq!(result, large(5));
    }
}
