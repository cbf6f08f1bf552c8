//! Retained runs (provider runtime, 8): which run a reference names, how it is controlled, what an answer proves.
//!
//! * `reference`: exact and loose references, how one is minted, and what it has to name.
//! * `request`: cancel and control requests, bound by the digest of what they ask.
//! * `acknowledgement`: what an acknowledgement may say, and to which request it belongs.
//! * `receipt`: what a dispatch receipt proves.
//! * [`session`]: what a session does with and without an exact reference.
//! * `status`: the status of one execution out of the record of its session.
//! * `refusal`: every way in which one of these is refused, with its code.
//!
//! The documents themselves are generated from `control.json`.

mod acknowledgement;
mod receipt;
mod reference;
mod refusal;
mod request;
pub mod session;
mod status;
#[cfg(test)]
mod tests;

pub use super::types::{
    CancelAcknowledgement, CancelEffect, CancelReason, CancelRequest, ControlAcknowledgement,
    ControlAction, ControlRequest, ControlStatus, DispatchMetadata, DispatchReceipt,
    DispatchedSession, ExecutionId, LooseRunRef, OperationId, RunControlRef, RunId,
};
pub(super) use acknowledgement::{cancel_acknowledgement, control_acknowledgement};
pub use receipt::{read_receipt, started_by_this_call};
pub use reference::{NewRef, Target, mint_ref, same_run, session_id};
pub use refusal::Refusal;
pub(super) use request::own_request_digest;
pub use status::execution_status;
