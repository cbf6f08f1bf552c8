//! The one error of this layer: a class for each kind of fault, with the code, the message and where it happened.
//!
//! Texts from outside are redacted before they get here; nothing in here shows a body, a header or a credential.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::code::Code;
use crate::contract::routes::SegmentRefused;

/// A call that did not succeed (wire protocol, 3.3).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// 400 or 422: the request breaks a rule; `fields` says where. Correct the request.
    #[error("{at}{}", Fields(fields))]
    Validation {
        /// What was asked and answered.
        at: Box<Failure>,
        /// Path to message.
        fields: BTreeMap<String, String>,
    },
    /// 401: no credential, or a wrong one.
    #[error("{at}")]
    Auth {
        /// What was asked and answered.
        at: Box<Failure>,
    },
    /// 403: the credential does not reach this.
    #[error("{at}")]
    Forbidden {
        /// What was asked and answered.
        at: Box<Failure>,
    },
    /// 404 about a resource.
    #[error("{at} ({resource_type} {resource_id})")]
    NotFound {
        /// What was asked and answered.
        at: Box<Failure>,
        /// The kind of resource, `Resource` when the answer does not say.
        resource_type: String,
        /// Its id, `unknown` when the answer does not say.
        resource_id: String,
    },
    /// This deployment lacks the operation: 501, or 404 for the route itself (wire protocol, 3.5).
    #[error("not supported by this deployment: {at}")]
    NotSupported {
        /// What was asked and answered.
        at: Box<Failure>,
    },
    /// 408, or the time limit of this client has passed.
    #[error("{at} (limit {} ms)", limit.as_millis())]
    Timeout {
        /// What was asked and answered.
        at: Box<Failure>,
        /// The limit that has passed.
        limit: Duration,
    },
    /// 409: the state forbids it, or the same key was used for another request.
    #[error("{at} (state {current})")]
    State {
        /// What was asked and answered.
        at: Box<Failure>,
        /// The state now, `unknown` when the answer does not say.
        current: String,
        /// The state that the operation needs, when the answer says.
        required: Option<String>,
    },
    /// 429: a rate or quota is used up.
    #[error("{at} ({quota_type})")]
    Quota {
        /// What was asked and answered.
        at: Box<Failure>,
        /// The kind of quota, `rate_limit` when the answer does not say.
        quota_type: String,
        /// How much is used, when the answer says.
        current: Option<f64>,
        /// How much is allowed, when the answer says.
        limit: Option<f64>,
    },
    /// No response: refused, reset, name not found, TLS.
    #[error("{at}")]
    Network {
        /// What was asked.
        at: Box<Failure>,
        /// What the connection met.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// 500 and above.
    #[error("{at}")]
    Server {
        /// What was asked and answered.
        at: Box<Failure>,
    },
    /// 504 of a command: it did run, past its limit.
    #[error("{at}")]
    Exec {
        /// What was asked and answered; [`Failure::detail`] has the partial output, when the answer had it.
        at: Box<Failure>,
        /// The limit, when the answer says.
        limit: Option<Duration>,
    },
    /// Any other status.
    #[error("{at}")]
    Other {
        /// What was asked and answered.
        at: Box<Failure>,
    },
    /// The answer is not what the protocol says: a body that cannot be read, a frame beyond a limit.
    #[error("{at}")]
    Protocol {
        /// What was asked; the message names the rule.
        at: Box<Failure>,
    },
    /// Refused here; nothing was sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A call that this client does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// An id cannot become part of the URL.
    #[error(transparent)]
    Segment(#[from] SegmentRefused),
    /// The path of a raw call does not start with `/`. Absolute URLs are refused too: the bearer stays on the base's origin.
    #[error("fetch: the path does not start with `/`")]
    PathNotAbsolute,
    /// The path of a raw call leads away from the base URL.
    #[error("fetch: the path leads away from the base URL")]
    ForeignOrigin,
    /// The method of a raw call is not an HTTP method.
    #[error("fetch: the method is not an HTTP method")]
    Method,
    /// A header of a raw call has a name or a value that HTTP forbids.
    #[error("fetch: a header is not a legal HTTP header")]
    Header,
    /// The request body cannot be written as JSON.
    #[error("the request body cannot be written as JSON")]
    Body,
}

/// What was asked and what came back: the part that all classes share.
#[derive(Clone, PartialEq)]
pub struct Failure {
    pub(super) route: &'static str,
    pub(super) method: Box<str>,
    pub(super) path: Box<str>,
    pub(super) status: Option<u16>,
    pub(super) code: Code,
    pub(super) code_given: bool,
    pub(super) message: Box<str>,
    pub(super) retry_after: Option<Duration>,
    pub(super) request_id: Option<Box<str>>,
    pub(super) details: Map<String, Value>,
}

impl Failure {
    /// The name in the route table, `fetch` for a raw call.
    pub fn route(&self) -> &'static str {
        self.route
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path without its query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The code of the answer, else the default of its class.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The message, redacted, at most 64 KiB.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Who reported the error: always `sandbox-api` in this layer.
    pub fn origin(&self) -> &'static str {
        "sandbox-api"
    }

    /// A detail field of the error body: of its top level, else of `error`, else of `error.details`. Texts are redacted.
    pub fn detail(&self, name: &str) -> Option<&Value> {
        self.details.get(name)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("route", &self.route)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("status", &self.status)
            .field("code", &self.code.as_str())
            .field("message", &shortened(&self.message))
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.method, self.path)?;
        if let Some(status) = self.status {
            write!(f, "{status} ")?;
        }
        write!(f, "{}: {}", self.code, shortened(&self.message))
    }
}

/// A page of HTML does not help in a log line: the first 300 characters do.
fn shortened(message: &str) -> String {
    const SHOWN: usize = 300;
    match message.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

struct Fields<'a>(&'a BTreeMap<String, String>);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, message) in self.0 {
            write!(f, "; {path}: {}", shortened(message))?;
        }
        Ok(())
    }
}

impl Error {
    /// What was asked and answered; nothing for a call that was refused here.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Validation { at, .. }
            | Self::Auth { at }
            | Self::Forbidden { at }
            | Self::NotFound { at, .. }
            | Self::NotSupported { at }
            | Self::Timeout { at, .. }
            | Self::State { at, .. }
            | Self::Quota { at, .. }
            | Self::Network { at, .. }
            | Self::Server { at }
            | Self::Exec { at, .. }
            | Self::Other { at }
            | Self::Protocol { at } => Some(at),
            Self::Refused(_) => None,
        }
    }

    /// The code: that of the answer's body, else the default of the class.
    pub fn code(&self) -> Code {
        self.failure()
            .map_or(Code::ValidationError, |at| at.code.clone())
    }

    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.failure().and_then(Failure::status)
    }

    /// How long the service asks to wait, from `Retry-After` or the body's `retryAfterMs`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.failure().and_then(|at| at.retry_after)
    }

    /// The id under which the service logged the request, from `x-request-id`.
    pub fn request_id(&self) -> Option<&str> {
        self.failure().and_then(|at| at.request_id.as_deref())
    }

    /// Whether the same call can succeed later without a change: the transient faults of the wire protocol, 3.6. Whether
    /// it may be sent again at all is another question, that of [`super::retry::Repeat`].
    pub fn is_retryable(&self) -> bool {
        super::retry::is_transient(self)
    }
}
