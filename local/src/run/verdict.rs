//! How a run ended: its status, its last frames, its recorded result (wire protocol, 7.4, 7.5 and 9.7).

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::admission::status_frame;
use super::engine::Run;
use super::live::Ending;
use super::recorder::frame;
use crate::agent::{Outcome, ToolInvocation, TurnEnd};
use crate::store::executions::ExecutionRow;
use crate::store::frames::NewFrame;

const TIMED_OUT: &str = "the caller's limit (`timeoutMs`) passed and the run was ended";
const UNRECORDED: &str = "the run was ended, since its events could not be recorded";
const STOPPED: &str = "the deployment was stopped while the run went on";

impl Run {
    /// The status, the last frames and the recorded result (wire protocol, 7.4, 7.5 and 9.7).
    pub(super) fn verdict(
        &self,
        turn: &TurnEnd,
        took: Duration,
    ) -> (&'static str, Vec<NewFrame>, Value) {
        let failure = match (self.live.ending(), &turn.outcome) {
            (_, Outcome::Completed) => None,
            (Some(Ending::TimedOut), _) => Some(("TIMEOUT", TIMED_OUT)),
            (Some(Ending::Stopped), _) => Some(("STREAM_INTERRUPTED", STOPPED)),
            (Some(Ending::Unrecorded), _) => Some(("STREAM_INTERRUPTED", UNRECORDED)),
            (Some(Ending::Cancelled), _) | (None, Outcome::Cancelled) => {
                let mut result = self.summary(turn, took);
                result.insert("status".to_owned(), "cancelled".into());
                let frames = vec![
                    status_frame("cancelled", &self.execution),
                    done(json!({ "status": "cancelled" })),
                ];
                return ("cancelled", frames, Value::Object(result));
            }
            (None, Outcome::Failed { code, message }) => Some((code.as_str(), message.as_str())),
        };
        let mut result = self.summary(turn, took);
        if let Some((code, message)) = failure {
            let frames = failed_frames(&self.execution, code, message);
            result.extend(failure_fields(code, message));
            return ("failed", frames, Value::Object(result));
        }
        let outcome = json!({ "type": "completed" });
        result.insert("status".to_owned(), "completed".into());
        result.insert("outcome".to_owned(), outcome.clone());
        let frames = vec![
            frame("result", result.clone()),
            status_frame("completed", &self.execution),
            done(json!({ "status": "completed", "outcome": outcome })),
        ];
        ("completed", frames, Value::Object(result))
    }

    fn summary(&self, turn: &TurnEnd, took: Duration) -> Map<String, Value> {
        let mut metadata = turn.metadata.clone();
        metadata.insert(
            "sessionId".to_owned(),
            self.execution.session.clone().into(),
        );
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

fn done(data: Value) -> NewFrame {
    NewFrame {
        kind: "done".to_owned(),
        data: data.to_string(),
    }
}

/// `error`, then `done`.
pub(super) fn failed_frames(execution: &ExecutionRow, code: &str, message: &str) -> Vec<NewFrame> {
    let error = json!({
        "code": code,
        "message": message,
        "executionId": execution.id,
        "sessionId": execution.session,
    });
    vec![
        NewFrame {
            kind: "error".to_owned(),
            data: error.to_string(),
        },
        done(json!({ "status": "failed" })),
    ]
}

/// What a recorded result says of a failure.
pub(super) fn failure_fields(code: &str, message: &str) -> Map<String, Value> {
    Map::from_iter([
        ("status".to_owned(), "failed".into()),
        ("error".to_owned(), message.into()),
        ("errorCode".to_owned(), code.into()),
    ])
}
