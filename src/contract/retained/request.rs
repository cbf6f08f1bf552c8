//! Cancel and control requests: each is bound by the digest of what it asks (provider runtime, 8.5).

use serde_json::{Map, Value, json};

use crate::contract::bounds::{self, BoundError};
use crate::contract::check::Refused;
use crate::contract::digest::Digest;
use crate::contract::types::{
    CancelDigest, CancelReason, CancelRequest, ControlAction, ControlDigest, ControlRequest,
    OperationId, RunControlRef,
};

/// The member that holds the digest of all the others.
const DIGEST: &str = "requestDigest";

/// The rule of a request that carries its own digest: it is the digest of the request without that member.
pub(in crate::contract) fn own_request_digest(request: &Value) -> Result<(), Refused> {
    let Value::Object(members) = request else {
        return Ok(());
    };
    let mut material = members.clone();
    let carried = material.remove(DIGEST);
    let digest = Digest::of(&Value::Object(material)).to_string();
    same_digest(carried.as_ref().and_then(Value::as_str) == Some(&digest))
}

fn same_digest(same: bool) -> Result<(), Refused> {
    if same {
        return Ok(());
    }
    let rule = "must be the digest of the request without this member";
    Err(Refused::new(format!("/{DIGEST}"), rule))
}

impl CancelRequest {
    /// Asks to cancel `run`; the same operation id asks again for the same.
    pub fn new(operation: OperationId, run: RunControlRef, reason: Option<CancelReason>) -> Self {
        CancelRequest {
            request_digest: cancel_digest(&operation, &run, reason.as_ref()),
            operation_id: operation,
            run,
            reason,
        }
    }

    /// The digest that binds this request: of operation id, run and reason.
    pub fn digest(&self) -> CancelDigest {
        cancel_digest(&self.operation_id, &self.run, self.reason.as_ref())
    }

    /// The rule that the digest is that of the request. A request that was read keeps it.
    ///
    /// # Errors
    ///
    /// At `/requestDigest` when it is another.
    pub fn rules(&self) -> Result<(), Refused> {
        same_digest(self.digest() == self.request_digest)
    }
}

fn cancel_digest(
    operation: &OperationId,
    run: &RunControlRef,
    reason: Option<&CancelReason>,
) -> CancelDigest {
    let mut material = json!({ "operationId": operation, "run": run });
    if let Some(reason) = reason {
        material["reason"] = Value::String(reason.to_string());
    }
    CancelDigest::of(&material)
}

impl ControlRequest {
    /// Asks for `action` on `run`. An empty payload is not the same request as none.
    ///
    /// # Errors
    ///
    /// `JSON_BOUND_VIOLATION` for a payload that passes a bound of control-plane JSON.
    pub fn new(
        operation: OperationId,
        action: ControlAction,
        run: RunControlRef,
        payload: Option<Map<String, Value>>,
    ) -> Result<Self, BoundError> {
        let payload = payload.map(Value::Object);
        if let Some(payload) = &payload {
            bounds::record("payload", payload)?;
        }
        let request_digest = control_digest(&operation, action, &run, payload.as_ref());
        Ok(ControlRequest {
            operation_id: operation,
            action,
            run,
            payload: payload.and_then(|payload| match payload {
                Value::Object(members) => Some(members),
                _ => None,
            }),
            request_digest,
        })
    }

    /// The digest that binds this request: of operation id, action, run and payload.
    pub fn digest(&self) -> ControlDigest {
        let payload = self.payload.clone().map(Value::Object);
        control_digest(&self.operation_id, self.action, &self.run, payload.as_ref())
    }

    /// The rule that the digest is that of the request. A request that was read keeps it.
    ///
    /// # Errors
    ///
    /// At `/requestDigest` when it is another.
    pub fn rules(&self) -> Result<(), Refused> {
        same_digest(self.digest() == self.request_digest)
    }
}

fn control_digest(
    operation: &OperationId,
    action: ControlAction,
    run: &RunControlRef,
    payload: Option<&Value>,
) -> ControlDigest {
    let mut material = json!({ "operationId": operation, "action": action, "run": run });
    if let Some(payload) = payload {
        material["payload"] = payload.clone();
    }
    ControlDigest::of(&material)
}
