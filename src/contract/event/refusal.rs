//! Why a frame is refused.

use std::borrow::Cow;

use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;
use crate::contract::limits::MAX_IDENTIFIER;
use crate::contract::usage;

/// A frame that is refused. It names a place and a rule, never a value, and ends the stream: a repeat cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The frame is no `{type, data, id}`: a type or an id that is no identifier, data that is no object. Usual cause: a
    /// service of another version, or a proxy that writes into streams.
    #[error("{0}")]
    FrameShape(Refused),
    /// The frame, or a terminal frame without its tool history, is larger than event content may be.
    #[error(transparent)]
    ContentBound(BoundError),
    /// The frame carries a receipt of a context transfer, and none was asked for.
    #[error("/data/contextTransferReceipt: nobody asked for a context transfer")]
    UnsolicitedReceipt,
    /// The frame tells a private identity of a harness, which never comes over this transport.
    #[error("/type: a private identity does not belong on this stream")]
    PrivateIdentity,
    /// The stream is not bound to a run, and the frame does not say to which it belongs.
    #[error("the frame names no execution")]
    ExecutionAbsent,
    /// The frame belongs to another execution than the stream.
    #[error("the frame names another execution")]
    ExecutionMismatch,
    /// The stream is not bound to a run, and the frame does not say to which session it belongs.
    #[error("the frame names no session")]
    SessionAbsent,
    /// The frame belongs to another session than the stream.
    #[error("the frame names another session")]
    SessionMismatch,
    /// Two places that mean the same identity hold two values.
    #[error("{path}: differs from another place of the same identity")]
    AliasConflict {
        /// The second place, as a JSON pointer.
        path: String,
    },
    /// An identity is there and is no identifier.
    #[error(
        "{path}: must be an identifier of 1 to {most} UTF-16 units without outer white space",
        most = MAX_IDENTIFIER
    )]
    Identifier {
        /// Where, as a JSON pointer.
        path: String,
    },
    /// The canonical event that the frame supplies is none.
    #[error("{0}")]
    NormalizedInvalid(Refused),
    /// The canonical event that the frame supplies is of another type than the frame.
    #[error("/data/normalized/type: must be the type of the frame")]
    NormalizedType,
    /// The canonical event that the frame supplies names a session that the frame does not carry.
    #[error("/data/normalized/sessionId: must be a session that the frame carries")]
    NormalizedSession,
    /// The usage of the frame cannot be read.
    #[error(transparent)]
    Usage(#[from] usage::Refusal),
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::FrameShape(_) => "frame-shape",
            Self::ContentBound(_) => "content-bound",
            Self::UnsolicitedReceipt => "unsolicited-receipt",
            Self::PrivateIdentity => "private-identity",
            Self::ExecutionAbsent => "execution-absent",
            Self::ExecutionMismatch => "execution-mismatch",
            Self::SessionAbsent => "session-absent",
            Self::SessionMismatch => "session-mismatch",
            Self::AliasConflict { .. } => "alias-conflict",
            Self::Identifier { .. } => "identifier",
            Self::NormalizedInvalid(_) => "normalized-invalid",
            Self::NormalizedType => "normalized-type",
            Self::NormalizedSession => "normalized-session",
            Self::Usage(refusal) => refusal.code(),
        }
    }

    /// The same refusal of what stands at `path`.
    pub(super) fn below(self, path: &str) -> Self {
        let at = |inner: &str| format!("{path}{inner}");
        match self {
            Self::FrameShape(refused) => Self::FrameShape(refused.under(path)),
            Self::AliasConflict { path } => Self::AliasConflict { path: at(&path) },
            Self::Identifier { path } => Self::Identifier { path: at(&path) },
            other => other,
        }
    }

    /// Where in the frame: a JSON pointer, empty where no one place is at fault.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::FrameShape(refused) | Self::NormalizedInvalid(refused) => refused.path().into(),
            Self::ContentBound(error) => format!("/data{}", Refused::from(error).path()).into(),
            Self::UnsolicitedReceipt => "/data/contextTransferReceipt".into(),
            Self::PrivateIdentity => "/type".into(),
            Self::AliasConflict { path } | Self::Identifier { path } => path.as_str().into(),
            Self::NormalizedType => "/data/normalized/type".into(),
            Self::NormalizedSession => "/data/normalized/sessionId".into(),
            Self::Usage(refusal) => format!("/data{}", refusal.path()).into(),
            Self::ExecutionAbsent
            | Self::ExecutionMismatch
            | Self::SessionAbsent
            | Self::SessionMismatch => "".into(),
        }
    }
}
