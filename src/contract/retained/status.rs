//! The status of one execution out of the record of its session (provider runtime, 8.4).

use serde_json::Value;

use crate::contract::types::{ExecutionId, SessionStatus};

/// The status of `execution`, as far as the record of its session proves it; `unknown` when the record tells of another
/// execution.
///
/// The record is read loosely: an id that is no identifier counts as absent.
pub fn execution_status(record: &Value, execution: &ExecutionId) -> SessionStatus {
    let status = SessionStatus::of(record.get("status").unwrap_or(&Value::Null));
    let named = |pointer: &str| {
        let id = record.pointer(pointer)?.as_str()?;
        ExecutionId::new(id).ok()
    };
    let if_ours = |named: &ExecutionId| {
        if named == execution {
            status
        } else {
            SessionStatus::Unknown
        }
    };
    // A failure that names its execution outranks whatever runs by now.
    if status == SessionStatus::Failed
        && let Some(failed) = named("/failureReason/executionId")
    {
        return if_ours(&failed);
    }
    [
        "/activeExecutionId",
        "/latestExecutionId",
        "/runControlRef/executionId",
    ]
    .into_iter()
    .find_map(named)
    .map_or(SessionStatus::Unknown, |named| if_ours(&named))
}
