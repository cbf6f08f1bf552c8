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
    Call(transport::Error),
    /// The service does not hold the events after the cursor (410): a gap, so nothing comes. What it still holds can be
    /// read from the oldest event on; the result of the run stays on record.
    #[error("the events after this cursor are gone{}: {error}", Oldest(oldest))]
    CursorUnknown {
        /// Id of the oldest event that the service holds, when it holds any.
        oldest: Option<String>,
        /// The answer.
        error: Box<transport::Error>,
    },
    /// The stream ended before the run was admitted: it may have started. The same turn may be sent again under the same
    /// turn id.
    #[error("{operation}: the stream ended before the run was admitted")]
    Interrupted {
        /// What was being done.
        operation: &'static str,
    },
    /// The service refused or failed the run before it was admitted.
    #[error("{operation}: the run failed before it was admitted: {code}: {message}")]
    NotAdmitted {
        /// What was being done.
        operation: &'static str,
        /// Code of the service's error event.
        code: Code,
        /// What it says, for people.
        message: String,
    },
    /// The backend catalogue cannot be read: the deployment answers something else than a list of backends.
    #[error("the backend catalogue cannot be read: {0}")]
    Catalog(Box<transport::Error>),
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
            Error::CursorUnknown { .. } => Code::EventCursorUnknown,
            Error::Interrupted { .. } => Code::StreamInterrupted,
            Error::NotAdmitted { code, .. } => code.clone(),
            Error::Catalog(_) => Code::InvalidBackendRegistry,
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
            Error::NotReady { .. } | Error::FilesystemNotReady | Error::Interrupted { .. } => true,
            _ => false,
        }
    }

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.call().and_then(transport::Error::retry_after)
    }

    /// The id under which the service logged the request.
    pub fn request_id(&self) -> Option<&str> {
        self.call().and_then(transport::Error::request_id)
    }

    /// What was asked and answered, where a call failed: status, path, and each detail of the error body by its name.
    pub fn failure(&self) -> Option<&transport::Failure> {
        self.call().and_then(transport::Error::failure)
    }

    fn call(&self) -> Option<&transport::Error> {
        match self {
            Error::Call(error) => Some(error),
            Error::CursorUnknown { error, .. } | Error::Catalog(error) => Some(error),
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

impl From<transport::Error> for Error {
    fn from(error: transport::Error) -> Self {
        if error.code() != Code::EventCursorUnknown {
            return Error::Call(error);
        }
        let oldest = error
            .failure()
            .and_then(|failure| failure.detail("oldestEventId"))
            .and_then(|oldest| oldest.as_str())
            .map(str::to_owned);
        Error::CursorUnknown {
            oldest,
            error: Box::new(error),
        }
    }
}

struct Oldest<'a>(&'a Option<String>);

impl fmt::Display for Oldest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(oldest) => write!(f, "; the oldest event that the service holds is {oldest}"),
            None => Ok(()),
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

    /// The same error with the handle as `change` makes it.
    pub(crate) fn map<T>(self, change: impl FnOnce(H) -> T) -> Kept<T> {
        Kept {
            handle: change(self.handle),
            error: self.error,
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
        self.error.source()
    }
}

impl<H> From<Kept<H>> for Error {
    /// Lets go of the handle.
    fn from(kept: Kept<H>) -> Self {
        kept.error
    }
}
