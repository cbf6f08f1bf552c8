//! What a dispatch receipt proves (provider runtime, 8.2).

use serde_json::Value;

use crate::contract::bounds;
use crate::contract::checker::Checked as _;
use crate::contract::from_value;
use crate::contract::types::{
    DispatchMetadata, DispatchReceipt, DispatchedSession, ExecutionId, NonEmptyText, RunControlRef,
    SessionId,
};

use super::{Refusal, Target};

/// The flags of a receipt.
const FLAGS: [&str; 2] = ["alreadyExisted", "dispatched"];

/// Reads the receipt of a turn that was dispatched under the reference `asked`.
///
/// `given` is the exact reference that the caller gave with the turn, if it gave one: it stands in for a receipt without
/// a reference. A receipt with another run id is taken, and the platform's id kept.
///
/// # Errors
///
/// The first rule that the receipt breaks, in the order session, execution, status and flags, reference, bounds.
pub fn read_receipt(
    receipt: &Value,
    asked: &RunControlRef,
    given: Option<&RunControlRef>,
) -> Result<DispatchedSession, Refusal> {
    let session = session_of(receipt).ok_or(Refusal::SessionMissing)?;
    if session != asked.session_id {
        return Err(Refusal::SessionMismatch);
    }
    let execution = execution_of(receipt).ok_or(Refusal::ExecutionMissing)?;
    if execution != asked.execution_id {
        return Err(Refusal::ExecutionMismatch);
    }
    if !fits(receipt, "status") {
        return Err(Refusal::StatusType);
    }
    if let Some(flag) = FLAGS.into_iter().find(|flag| !fits(receipt, flag)) {
        return Err(Refusal::FlagType { flag });
    }
    let reference = match receipt.get("runControlRef") {
        None => given.cloned(),
        Some(reference) => from_value(reference.clone()).ok(),
    };
    let reference = reference.ok_or(Refusal::ReferenceMissingOrInvalid)?;
    if let Some(field) = Target::from(asked).difference(&reference) {
        return Err(Refusal::ReferenceMismatch { field });
    }
    bounds::json("dispatch receipt", receipt)?;
    let receipt: DispatchReceipt = from_value(receipt.clone())?;
    Ok(DispatchedSession {
        id: session,
        provider: reference.provider.clone(),
        control_ref: reference,
        metadata: DispatchMetadata {
            status: receipt
                .status
                .and_then(|status| NonEmptyText::new(status).ok()),
            already_existed: receipt.already_existed,
            dispatched: receipt.dispatched,
        },
    })
}

/// The execution that a receipt proves to be started by the call it answers: only such a run may be interrupted when its
/// receipt is refused or its caller has left, since another caller may own any other.
pub fn started_by_this_call(receipt: &Value) -> Option<ExecutionId> {
    let flag = |name: &str| receipt.get(name).and_then(Value::as_bool);
    let [existed, dispatched] = FLAGS.map(flag);
    (dispatched == Some(true) && existed != Some(true))
        .then(|| execution_of(receipt))
        .flatten()
}

/// `sessionId`, else its older spelling.
fn session_of(receipt: &Value) -> Option<SessionId> {
    let named = receipt.get("sessionId").or_else(|| receipt.get("id"))?;
    SessionId::new(named.as_str()?).ok()
}

fn execution_of(receipt: &Value) -> Option<ExecutionId> {
    ExecutionId::new(receipt.get("executionId")?.as_str()?).ok()
}

/// Whether a member is absent or what the schema of a receipt says.
fn fits(receipt: &Value, name: &str) -> bool {
    let Some(member) = receipt.get(name) else {
        return true;
    };
    let mut properties = DispatchReceipt::node().properties.iter();
    properties
        .find(|property| property.name == name)
        .is_none_or(|property| property.node.check(member).is_ok())
}
