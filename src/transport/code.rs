//! The wire codes (wire protocol, 3.4). An unknown code is kept as its text.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal;)*) => {
        /// The code of an error. Compare with a variant, or with the wire text through [`Code::as_str`].
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
            /// A code that this version does not know, as it came.
            Other(Box<str>),
        }

        impl Code {
            /// Every known code.
            pub const KNOWN: &[Code] = &[$(Code::$name),*];

            /// The code as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for Code {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$name,)*
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

codes! {
    /// No credential, or a wrong one.
    Unauthorized "UNAUTHORIZED";
    /// The control plane refused the credential.
    AuthError "AUTH_ERROR";
    /// The credential does not reach this.
    Forbidden "FORBIDDEN";
    /// The resource is unknown.
    NotFound "NOT_FOUND";
    /// The request breaks a rule.
    ValidationError "VALIDATION_ERROR";
    /// Wrong lifecycle state, or another lifecycle operation holds the lease.
    InvalidState "INVALID_STATE";
    /// The sandbox runs, its file system is still being built.
    FilesystemIncarnationNotReady "FILESYSTEM_INCARNATION_NOT_READY";
    /// The egress proxy must be recovered.
    EgressProxyRecoveryRequired "EGRESS_PROXY_RECOVERY_REQUIRED";
    /// A rate or quota is used up; wait for `Retry-After`.
    QuotaExceeded "QUOTA_EXCEEDED";
    /// The key's budget is spent.
    KeyBudgetExhausted "KEY_BUDGET_EXHAUSTED";
    /// The service or this client gave up waiting.
    Timeout "TIMEOUT";
    /// There was no response.
    NetworkError "NETWORK_ERROR";
    /// The service failed.
    ServerError "SERVER_ERROR";
    /// The answer had no code and its status has none of its own.
    UnknownError "UNKNOWN_ERROR";
    /// A command ran past its limit.
    ExecTimeout "EXEC_TIMEOUT";
    /// The request body is too large.
    PayloadTooLarge "PAYLOAD_TOO_LARGE";
    /// A file is above the limit of a JSON read.
    FileTooLarge "FILE_TOO_LARGE";
    /// The deployment lacks the operation.
    NotSupported "NOT_SUPPORTED";
    /// The harness cannot carry the profile.
    ProfileUnsupported "PROFILE_UNSUPPORTED";
    /// The snapshot to restore from does not exist.
    SnapshotNotFound "SNAPSHOT_NOT_FOUND";
    /// The egress policy was stored, its reload failed; repeat the same update.
    RuntimeReloadFailed "RUNTIME_RELOAD_FAILED";
    /// Another first turn installed the model credential; repeat the same turn.
    ModelCredentialSuperseded "MODEL_CREDENTIAL_SUPERSEDED";
    /// A credential could not be refreshed now.
    HubCredentialRefreshUnavailable "HUB_CREDENTIAL_REFRESH_UNAVAILABLE";
    /// A credential cannot be refreshed.
    HubCredentialRefreshFailed "HUB_CREDENTIAL_REFRESH_FAILED";
    /// The edge of the sandbox is not ready yet.
    EdgeNotReady "EDGE_NOT_READY";
    /// No host has a fresh capture proof.
    NativeCaptureUnavailable "NATIVE_CAPTURE_UNAVAILABLE";
    /// The backend catalogue cannot be read.
    InvalidBackendRegistry "INVALID_BACKEND_REGISTRY";
    /// The run itself failed.
    AgentExecutionFailed "AGENT_EXECUTION_FAILED";
    /// The answer does not fit the ask.
    InvalidInteractionAnswer "INVALID_INTERACTION_ANSWER";
    /// The connection was lost before a terminal event; rejoin.
    StreamInterrupted "STREAM_INTERRUPTED";
    /// The same idempotency key, another request.
    IdempotencyConflict "IDEMPOTENCY_CONFLICT";
    /// The same turn id, another prompt.
    TurnConflict "TURN_CONFLICT";
    /// The same execution id, another request.
    RunConflict "RUN_CONFLICT";
    /// The same operation id, another request.
    OperationConflict "OPERATION_CONFLICT";
    /// The cursor was evicted or never issued.
    EventCursorUnknown "EVENT_CURSOR_UNKNOWN";
    /// A turn of the session runs.
    SessionBusy "SESSION_BUSY";
    /// The claim expired or was superseded.
    ControlLost "CONTROL_LOST";
    /// Another agent process lives there.
    StaleIncarnation "STALE_INCARNATION";
    /// Input on an observing stream.
    ObserverReadOnly "OBSERVER_READ_ONLY";
    /// The terminal could not be opened.
    InitFailed "INIT_FAILED";
    /// A terminal was asked before it was ready.
    NotReady "NOT_READY";
    /// The answer is not what the protocol says (made by this client).
    ProtocolError "PROTOCOL_ERROR";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Code {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_survives_as_its_text() {
        for code in Code::KNOWN {
            assert_eq!(Code::from(code.as_str()), *code);
        }
        assert_eq!(Code::from("NEW_ONE"), Code::Other("NEW_ONE".into()));
        assert_eq!(Code::from("NEW_ONE"), "NEW_ONE");
    }
}
