//! What a session does with and without an exact reference, a function for each call (provider runtime, 8.3).
//!
//! A call about one run needs the reference of that run; without one it is refused before anything is sent. There is no
//! fall-back to the newest run.

use serde_json::Value;

use crate::contract::types::{
    AbortAnswer, CancelRequest, EventId, ExecutionId, RunControlRef, SessionStatus,
};

use super::{Refusal, Target, execution_status};

/// The cursor before the first frame of an execution.
const FIRST: &str = "0";

/// The reference with which a session is opened: none, or an exact one of this provider, environment and session.
///
/// # Errors
///
/// As [`Target::read`].
pub fn open(candidate: Option<&Value>, target: &Target) -> Result<Option<RunControlRef>, Refusal> {
    candidate
        .map(|candidate| target.read(candidate))
        .transpose()
}

/// The exact reference of a session, where a call needs one: its result, its cancellation, a replay.
///
/// # Errors
///
/// `reference-required` without one.
pub fn exact(reference: Option<&RunControlRef>) -> Result<&RunControlRef, Refusal> {
    reference.ok_or(Refusal::ReferenceRequired)
}

/// The status of the run that the reference names, or of the whole session without a reference; `None` when the service
/// gives no record.
pub fn status(reference: Option<&RunControlRef>, record: &Value) -> Option<SessionStatus> {
    match (record, reference) {
        (Value::Null, _) => None,
        (record, Some(run)) => Some(execution_status(record, &run.execution_id)),
        (record, None) => Some(SessionStatus::of(
            record.get("status").unwrap_or(&Value::Null),
        )),
    }
}

/// Which frames a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Events<'a> {
    /// What the session does from now on.
    LiveTail,
    /// The frames of one execution strictly after a cursor.
    Exact {
        /// The run.
        run: &'a RunControlRef,
        /// The cursor; `0` stands before the first frame.
        after: EventId,
    },
}

/// Which frames a reader gets who asks for those after `since`, or for those of `execution`.
///
/// # Errors
///
/// `reference-required` for either without a reference, `reference-other-target` for another execution than that of the
/// reference.
pub fn events<'a>(
    reference: Option<&'a RunControlRef>,
    since: Option<EventId>,
    execution: Option<&ExecutionId>,
) -> Result<Events<'a>, Refusal> {
    if reference.is_none() && since.is_none() && execution.is_none() {
        return Ok(Events::LiveTail);
    }
    let run = exact(reference)?;
    if execution.is_some_and(|execution| *execution != run.execution_id) {
        let field = "executionId";
        return Err(Refusal::ReferenceOtherTarget { field });
    }
    let after = match since {
        Some(since) => since,
        None => EventId::new(FIRST)?,
    };
    Ok(Events::Exact { run, after })
}

/// Checks that a result is of the run that the reference names.
///
/// # Errors
///
/// `reference-required`, or `result-other-execution` when it names another execution or none.
pub fn result(reference: Option<&RunControlRef>, execution: Option<&str>) -> Result<(), Refusal> {
    let run = exact(reference)?;
    if execution == Some(run.execution_id.as_str()) {
        Ok(())
    } else {
        Err(Refusal::ResultOtherExecution)
    }
}

/// Checks the answer to the interrupt of a run: it has to say that the run was cancelled.
///
/// # Errors
///
/// `cancel-unconfirmed` otherwise.
pub fn cancel(answer: &AbortAnswer) -> Result<(), Refusal> {
    if answer.cancelled {
        Ok(())
    } else {
        Err(Refusal::CancelUnconfirmed)
    }
}

/// Checks that a cancel request is valid and targets the current run of the session.
///
/// # Errors
///
/// `reference-required`, a broken rule of the request, or `cancel-other-run`.
pub fn cancel_run(
    reference: Option<&RunControlRef>,
    request: &CancelRequest,
) -> Result<(), Refusal> {
    let run = exact(reference)?;
    request.rules()?;
    if request.run == *run {
        Ok(())
    } else {
        Err(Refusal::CancelOtherRun)
    }
}

/// Checks the reference that comes with a prompt: it names this session, and is the session's own when it has one.
///
/// # Errors
///
/// `reference-other-target` with the field that differs.
pub fn prompt(
    target: &Target,
    current: Option<&RunControlRef>,
    given: &RunControlRef,
) -> Result<(), Refusal> {
    target.check(given)?;
    match current {
        Some(current) if current != given => {
            let field = Target::from(current).difference(given);
            Err(Refusal::ReferenceOtherTarget {
                field: field.unwrap_or("runId"),
            })
        }
        _ => Ok(()),
    }
}
