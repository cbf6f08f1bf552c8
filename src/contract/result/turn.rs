//! The result of a turn (core contracts, 8.3).

use serde_json::{Map, Value};

use crate::contract::types::{ResultRecord, RunControlRef, SessionId, TurnResult};
use crate::contract::usage;
use crate::contract::verify;

use super::Refusal;

/// The result of the turn whose run left `record`, in the session `session`.
///
/// `run` is the exact reference of the run where there is one: the metadata names it, and without it only the execution
/// that the record names. A turn that waits is neither a success nor a failure: `awaitingInteraction` is true and
/// `terminal` false.
///
/// # Errors
///
/// The code of the usage where it cannot be read, or `VALIDATION_ERROR` for a record that was put together in memory and
/// breaks the bounds of a turn result.
pub fn turn_result(
    record: &ResultRecord,
    session: Option<&SessionId>,
    run: Option<&RunControlRef>,
) -> Result<TurnResult, Refusal> {
    let result = TurnResult {
        text: record.answer().to_owned(),
        success: record.success,
        error: record.error.clone(),
        session_id: session.cloned(),
        usage: usage::from_data(&record.extra)?,
        metadata: Some(metadata(record, run)),
        events: None,
        context_transfer_receipt: None,
    };
    verify(&result)?;
    Ok(result)
}

fn metadata(record: &ResultRecord, run: Option<&RunControlRef>) -> Map<String, Value> {
    let mut metadata = Map::new();
    let mut tell = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
    let awaiting = record.status.is_awaiting();
    tell("status", record.status.to_string().into());
    tell("awaitingInteraction", awaiting.into());
    tell("terminal", (!awaiting).into());
    match (run, &record.execution_id) {
        (Some(run), _) => {
            tell("runId", run.run_id.as_str().into());
            tell("executionId", run.execution_id.as_str().into());
            tell("requestDigest", run.request_digest.to_string().into());
        }
        (None, Some(execution)) => {
            tell("executionId", execution.as_str().into());
        }
        (None, None) => {}
    }
    metadata
}
