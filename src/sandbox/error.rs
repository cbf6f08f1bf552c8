//! The one error of the sandbox layer.

use std::fmt;
use std::time::Duration;

use crate::contract::check::Refused;
use crate::transport::{self, Code};

use super::record::Status;

/// An operation on the service, a sandbox or a run that did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call failed on its way or at the service; the class inside tells whose fault it was.
    #[error(transparent)]
    Call(#[from] transport::Error),
    /// A given value breaks a rule; nothing was sent. Correct the value at the path.
    #[error("the request was not sent: {0}")]
    Refused(#[from] Refused),
    /// The sandbox is over and cannot come back. Usual causes: the image does not exist, its lifetime has passed.
    #[error("the sandbox is {}{}", status.as_str(), Reason(reason))]
    Over {
        /// Its status.
        status: Status,
        /// The record's `error`.
        reason: Option<String>,
    },
    /// The sandbox did not get ready in time. It goes on; wait again or delete it.
    #[error("the sandbox was not ready after {} ms (status {})", waited.as_millis(), status.as_str())]
    NotReady {
        /// The newest status that was read.
        status: Status,
        /// How long was waited.
        waited: Duration,
    },
    /// The sandbox runs, but its file system is being built or replaced; nothing was sent. Wait and repeat.
    #[error("the file system of the sandbox is not ready")]
    FilesystemNotReady,
    /// The service answered something that the protocol does not allow.
    #[error("{operation}: {rule}")]
    Protocol {
        /// What was being done.
        operation: &'static str,
        /// The rule that the answer breaks.
        rule: String,
    },
    /// The deployment lacks what the operation needs.
    #[error("{operation} needs {needs}, which this deployment lacks")]
    Unsupported {
        /// What was being done.
        operation: &'static str,
        /// What is missing.
        needs: &'static str,
    },
}

impl Error {
    /// The code: of the service's answer where there was one.
    pub fn code(&self) -> Code {
        match self {
            Error::Call(error) => error.code(),
            Error::Refused(_) => Code::ValidationError,
            Error::Over { .. } => Code::InvalidState,
            Error::NotReady { .. } => Code::Timeout,
            Error::FilesystemNotReady => Code::FilesystemIncarnationNotReady,
            Error::Protocol { .. } => Code::ProtocolError,
            Error::Unsupported { .. } => Code::NotSupported,
        }
    }

    /// Whether the same call can succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Call(error) => error.is_retryable(),
            Error::NotReady { .. } | Error::FilesystemNotReady => true,
            _ => false,
        }
    }

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Call(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The id under which the service logged the request.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Error::Call(error) => error.request_id(),
            _ => None,
        }
    }

    pub(crate) fn protocol(operation: &'static str, rule: impl Into<String>) -> Self {
        Error::Protocol {
            operation,
            rule: rule.into(),
        }
    }
}

struct Reason<'a>(&'a Option<String>);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// An operation that took a handle and failed: the handle comes back unchanged, beside the error.
///
/// Nothing was deleted or stopped on the way, unless the error says that the service may have done it.
pub struct Kept<H> {
    /// The handle as it was.
    pub handle: H,
    /// Why the operation failed.
    pub error: Error,
}

impl<H> Kept<H> {
    pub(crate) fn new(handle: H, error: impl Into<Error>) -> Self {
        Kept {
            handle,
            error: error.into(),
        }
    }

    /// The handle and the error.
    pub fn into_parts(self) -> (H, Error) {
        (self.handle, self.error)
    }
}

impl<H> fmt::Debug for Kept<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<H> fmt::Display for Kept<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<H> std::error::Error for Kept<H> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<H> From<Kept<H>> for Error {
    /// Lets go of the handle.
    fn from(kept: Kept<H>) -> Self {
        kept.error
    }
}
