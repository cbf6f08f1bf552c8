//! Why an agent could not be used.

use std::io;

use super::rpc::{CallError, Ended};

/// A fault of an agent process or of its start. Texts name a rule or a place, never a value that was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent's program is not installed, or no command is configured for it. Install it or configure its path.
    #[error("the agent `{agent}` is not installed: its program was not found")]
    NotInstalled {
        /// The backend type.
        agent: &'static str,
    },
    /// A folder or the log file of the agent could not be made. Usually the data directory is read-only or full.
    #[error("the agent's own folder cannot be prepared: {0}")]
    Place(io::Error),
    /// The program could not be started, for example because it is not executable.
    #[error("the agent's program cannot be started: {0}")]
    Spawn(io::Error),
    /// The agent's connection ended, usually because its process died; its log tells more.
    #[error("the agent's connection ended: {0}")]
    Ended(Ended),
    /// The agent did not answer in time while it was being started.
    #[error("the agent did not answer `{method}` in time")]
    Timeout {
        /// The protocol method.
        method: &'static str,
    },
    /// The agent refused a step of its start.
    #[error("the agent refused `{method}` with code {code}")]
    Refused {
        /// The protocol method.
        method: &'static str,
        /// The JSON-RPC error code.
        code: i64,
    },
    /// The agent's answer does not have the shape of the method's result.
    #[error("the agent's answer to `{method}` has another shape than the protocol says")]
    Shape {
        /// The protocol method.
        method: &'static str,
    },
    /// The agent speaks another version of the protocol than 1.
    #[error("the agent speaks another protocol version")]
    Version,
}

impl AgentError {
    /// The code of the `error` event that reports this fault.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotInstalled { .. } => "AGENT_NOT_INSTALLED",
            Self::Place(_) | Self::Spawn(_) | Self::Refused { .. } => "AGENT_START_FAILED",
            Self::Ended(Ended::LineTooLong) => "AGENT_LINE_TOO_LONG",
            Self::Ended(_) => "AGENT_CRASHED",
            Self::Timeout { .. } => "AGENT_START_TIMEOUT",
            Self::Shape { .. } | Self::Version => "AGENT_PROTOCOL_ERROR",
        }
    }

    /// True when the same call may succeed later without a change of configuration.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Timeout { .. })
    }

    /// What a failed call of `method` means for the agent.
    pub(crate) fn of_call(method: &'static str, error: CallError) -> Self {
        match error {
            CallError::Refused(error) => Self::Refused {
                method,
                code: error.code,
            },
            CallError::Ended(ended) => Self::Ended(ended),
            CallError::Shape => Self::Shape { method },
        }
    }
}
