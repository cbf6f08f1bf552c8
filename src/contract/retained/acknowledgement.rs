//! What an acknowledgement may say, and to which request it belongs (provider runtime, 8.5).

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::check::Refused;
use crate::contract::types::{
    CancelAcknowledgement, CancelEffect, CancelRequest, ControlAcknowledgement, ControlRequest,
    ControlStatus, NonEmptyText,
};

use super::Refusal;

/// The rules of a cancel acknowledgement that is read.
pub(in crate::contract) fn cancel_acknowledgement(value: &Value) -> Result<(), Refused> {
    typed::<CancelAcknowledgement>(value)?.rules()
}

/// The rules of a control acknowledgement that is read.
pub(in crate::contract) fn control_acknowledgement(value: &Value) -> Result<(), Refused> {
    typed::<ControlAcknowledgement>(value)?.rules()
}

/// What has passed every other check of its schema.
fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, Refused> {
    T::deserialize(value).map_err(|_| Refused::new("", "is no acknowledgement"))
}

impl CancelAcknowledgement {
    /// The rules between its fields: which effect, which digest and which words go with each status. An acknowledgement
    /// that was read keeps them.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, at `/effect`, `/existingRequestDigest` or `/retryable`.
    pub fn rules(&self) -> Result<(), Refused> {
        effect_rule(self.status, self.effect)?;
        let own = &self.request_digest;
        let existing = self.existing_request_digest.as_ref();
        existing_rule(self.status, own, existing)?;
        retry_rule(self.status, self.message.as_ref(), self.retryable)
    }

    /// Whether it belongs to `request`: both are valid, and operation id, digest and run are equal. That of a conflict
    /// belongs too.
    ///
    /// # Errors
    ///
    /// `acknowledgement-other-run` when it does not.
    pub fn answers(&self, request: &CancelRequest) -> Result<(), Refusal> {
        let asked = (&request.operation_id, &request.request_digest, &request.run);
        let answered = (&self.operation_id, &self.request_digest, &self.run);
        belonging(request.rules().is_ok() && self.rules().is_ok() && asked == answered)
    }
}

impl ControlAcknowledgement {
    /// The rules between its fields: which digest and which words go with each status. An acknowledgement that was read
    /// keeps them.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, at `/existingRequestDigest` or `/retryable`.
    pub fn rules(&self) -> Result<(), Refused> {
        let own = &self.request_digest;
        let existing = self.existing_request_digest.as_ref();
        existing_rule(self.status, own, existing)?;
        retry_rule(self.status, self.message.as_ref(), self.retryable)
    }

    /// Whether it belongs to `request`: both are valid, and operation id, digest and run are equal. That of a conflict
    /// belongs too.
    ///
    /// # Errors
    ///
    /// `acknowledgement-other-run` when it does not.
    pub fn answers(&self, request: &ControlRequest) -> Result<(), Refusal> {
        let asked = (&request.operation_id, &request.request_digest, &request.run);
        let answered = (&self.operation_id, &self.request_digest, &self.run);
        belonging(request.rules().is_ok() && self.rules().is_ok() && asked == answered)
    }
}

fn belonging(belongs: bool) -> Result<(), Refusal> {
    if belongs {
        Ok(())
    } else {
        Err(Refusal::AcknowledgementOtherRun)
    }
}

fn effect_rule(status: ControlStatus, effect: CancelEffect) -> Result<(), Refused> {
    let known = effect != CancelEffect::Unknown;
    match status {
        ControlStatus::Accepted | ControlStatus::Replayed if !known => Err(Refused::new(
            "/effect",
            "an accepted or replayed request has a known effect",
        )),
        ControlStatus::Conflict | ControlStatus::Unknown if known => Err(Refused::new(
            "/effect",
            "the effect of a conflict, or of what is unknown, is `unknown`",
        )),
        _ => Ok(()),
    }
}

/// A conflict names the digest under which the operation is known, which is another; nothing else names one.
fn existing_rule<D: PartialEq>(
    status: ControlStatus,
    own: &D,
    existing: Option<&D>,
) -> Result<(), Refused> {
    let rule = match (status, existing) {
        (ControlStatus::Conflict, None) => {
            "a conflict names the digest under which the operation is known"
        }
        (ControlStatus::Conflict, Some(existing)) if existing == own => {
            "must differ from the digest of the request"
        }
        (ControlStatus::Conflict, Some(_)) | (_, None) => return Ok(()),
        (_, Some(_)) => "belongs to a conflict alone",
    };
    Err(Refused::new("/existingRequestDigest", rule))
}

fn retry_rule(
    status: ControlStatus,
    message: Option<&NonEmptyText>,
    retryable: Option<bool>,
) -> Result<(), Refused> {
    if status == ControlStatus::Unknown && !(message.is_some() && retryable == Some(false)) {
        return Err(Refused::new(
            "/retryable",
            "what is unknown has a message and is not retryable",
        ));
    }
    Ok(())
}
