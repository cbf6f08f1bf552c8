//! Why a result record is refused.

use std::borrow::Cow;

use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;
use crate::contract::{event, usage};

/// A result record that is refused. It names a place and a rule, never a value; a repeat of the call cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The record is malformed: a field is missing or of another type. Usual cause: a service of another version.
    #[error(transparent)]
    Document(#[from] Refused),
    /// The status is none of a result, or contradicts `success`. Usual cause: a stream that was lost, whose outcome is
    /// unknown; read the result of the run once it has one.
    #[error("the status is none of a result, or contradicts its success")]
    ResultStatus,
    /// The record without its tool history is larger than event content may be.
    #[error(transparent)]
    ContentBound(BoundError),
    /// The record without its answer is larger than control-plane JSON may be.
    #[error(transparent)]
    MetadataBound(BoundError),
    /// The record carries a receipt of a context transfer, and none was asked for.
    #[error("/contextTransferReceipt: nobody asked for a context transfer")]
    UnsolicitedReceipt,
    /// The approval that the record waits for is not told, or told in two ways.
    #[error(transparent)]
    Approval(event::Refusal),
    /// The usage of the record cannot be read.
    #[error(transparent)]
    Usage(#[from] usage::Refusal),
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(refused) => refused.code(),
            Self::ResultStatus => "result-status",
            Self::ContentBound(_) => "content-bound",
            Self::MetadataBound(_) => "metadata-bound",
            Self::UnsolicitedReceipt => "unsolicited-receipt",
            Self::Approval(refusal) => refusal.code(),
            Self::Usage(refusal) => refusal.code(),
        }
    }

    /// Where in the record: a JSON pointer, empty where no one place is at fault.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Document(refused) => refused.path().into(),
            Self::ResultStatus => "/status".into(),
            Self::ContentBound(error) | Self::MetadataBound(error) => {
                Refused::from(error).path().to_owned().into()
            }
            Self::UnsolicitedReceipt => "/contextTransferReceipt".into(),
            Self::Approval(refusal) => refusal.path(),
            Self::Usage(refusal) => refusal.path(),
        }
    }
}
