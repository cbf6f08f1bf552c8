//! Why a reference, a receipt or an answer about a run is refused.

use std::borrow::Cow;

use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;

/// A reference, a receipt or an answer about a run that is refused. It names a place and a rule, never a value.
///
/// A repeat of the call cannot help, except after [`Refusal::PromptInFlight`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The document is malformed: a field is missing, unknown or out of its bounds. Correct it at the path.
    #[error(transparent)]
    Document(#[from] Refused),
    /// The receipt names no session, or none that is an identifier.
    #[error("the receipt names no session")]
    SessionMissing,
    /// The receipt names another session than the one that was asked for.
    #[error("the receipt names another session")]
    SessionMismatch,
    /// The receipt names no execution, or none that is an identifier.
    #[error("the receipt names no execution")]
    ExecutionMissing,
    /// The receipt names another execution than the one that was asked for.
    #[error("the receipt names another execution")]
    ExecutionMismatch,
    /// The status of the receipt is no text.
    #[error("the status of the receipt must be a string")]
    StatusType,
    /// A flag of the receipt is neither true nor false.
    #[error("`{flag}` of the receipt must be true or false")]
    FlagType {
        /// The flag.
        flag: &'static str,
    },
    /// The receipt holds no reference and the caller gave none, or the one it holds is not exact. Usual cause: an older
    /// service, which does not admit runs under exact references.
    #[error("the receipt has no exact run reference")]
    ReferenceMissingOrInvalid,
    /// The reference of the receipt is of another run.
    #[error("the reference of the receipt differs in `{field}`")]
    ReferenceMismatch {
        /// The field that differs.
        field: &'static str,
    },
    /// The receipt is larger than control-plane JSON may be.
    #[error(transparent)]
    MetadataBound(#[from] BoundError),
    /// The operation is about one run, and the session has no exact reference. There is no fall-back to the newest run:
    /// open the session with the reference of the run.
    #[error("the session has no run reference")]
    ReferenceRequired,
    /// A given reference is of another provider, environment, session or execution than where it is used.
    #[error("the reference is of another target: `{field}` differs")]
    ReferenceOtherTarget {
        /// The field that differs.
        field: &'static str,
    },
    /// The interrupt was not confirmed: the run may go on.
    #[error("the cancellation was not confirmed")]
    CancelUnconfirmed,
    /// The cancel request is for another run than that of the session.
    #[error("the cancel request is for another run")]
    CancelOtherRun,
    /// The acknowledgement does not belong to the request.
    #[error("the acknowledgement is of another request")]
    AcknowledgementOtherRun,
    /// A prompt of this session runs. Wait for its end.
    #[error("a prompt of this session runs")]
    PromptInFlight,
    /// The deployment cannot dispatch a turn that outlives its reader.
    #[error("this deployment cannot dispatch")]
    DispatchUnavailable,
    /// The result is of another execution.
    #[error("the result names another execution")]
    ResultOtherExecution,
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(refused) => refused.code(),
            Self::SessionMissing => "session-missing",
            Self::SessionMismatch => "session-mismatch",
            Self::ExecutionMissing => "execution-missing",
            Self::ExecutionMismatch => "execution-mismatch",
            Self::StatusType => "status-type",
            Self::FlagType { .. } => "flag-type",
            Self::ReferenceMissingOrInvalid => "reference-missing-or-invalid",
            Self::ReferenceMismatch { .. } => "reference-mismatch",
            Self::MetadataBound(_) => "metadata-bound",
            Self::ReferenceRequired => "reference-required",
            Self::ReferenceOtherTarget { .. } => "reference-other-target",
            Self::CancelUnconfirmed => "cancel-unconfirmed",
            Self::CancelOtherRun => "cancel-other-run",
            Self::AcknowledgementOtherRun => "acknowledgement-other-run",
            Self::PromptInFlight => "prompt-in-flight",
            Self::DispatchUnavailable => "dispatch-unavailable",
            Self::ResultOtherExecution => "result-other-execution",
        }
    }

    /// Where in the document that is refused: a JSON pointer, empty where no one place is at fault.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Document(refused) => refused.path().into(),
            Self::MetadataBound(error) => Refused::from(error).path().to_owned().into(),
            Self::SessionMissing | Self::SessionMismatch => "/sessionId".into(),
            Self::ExecutionMissing | Self::ExecutionMismatch | Self::ResultOtherExecution => {
                "/executionId".into()
            }
            Self::StatusType => "/status".into(),
            Self::FlagType { flag } => format!("/{flag}").into(),
            Self::ReferenceMissingOrInvalid => "/runControlRef".into(),
            Self::ReferenceMismatch { field } => format!("/runControlRef/{field}").into(),
            Self::ReferenceOtherTarget { field } => format!("/{field}").into(),
            Self::CancelUnconfirmed => "/cancelled".into(),
            Self::CancelOtherRun => "/run".into(),
            Self::ReferenceRequired
            | Self::AcknowledgementOtherRun
            | Self::PromptInFlight
            | Self::DispatchUnavailable => "".into(),
        }
    }
}
