//! The statuses of environments and sessions out of the words of the service (provider runtime, 4).

use serde_json::Value;

use super::types::{EnvironmentStatus, SessionStatus};

impl SessionStatus {
    /// The status that a raw value stands for; `unknown` for anything that is not exactly a word of the service.
    pub fn of(raw: &Value) -> Self {
        match raw.as_str() {
            Some("pending" | "queued") => Self::Pending,
            Some("provisioning") => Self::Provisioning,
            Some("running") => Self::Running,
            Some("stopped") => Self::Stopped,
            Some("failed") => Self::Failed,
            Some("expired") => Self::Expired,
            Some("completed") => Self::Completed,
            Some("cancelled") => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}

impl EnvironmentStatus {
    /// The status that a raw value stands for; `unknown` for anything that is not exactly a word of the service.
    pub fn of(raw: &Value) -> Self {
        SessionStatus::of(raw).into()
    }
}

impl From<SessionStatus> for EnvironmentStatus {
    /// An environment whose work is over or was cancelled is stopped.
    fn from(status: SessionStatus) -> Self {
        match status {
            SessionStatus::Pending => Self::Pending,
            SessionStatus::Provisioning => Self::Provisioning,
            SessionStatus::Running => Self::Running,
            SessionStatus::Stopped | SessionStatus::Completed | SessionStatus::Cancelled => {
                Self::Stopped
            }
            SessionStatus::Failed => Self::Failed,
            SessionStatus::Expired => Self::Expired,
            SessionStatus::Unknown => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn provider_4_only_the_exact_words_are_a_status() {
        for raw in [
            json!("RUNNING"),
            json!(" running"),
            json!("idle"),
            json!(""),
            json!(1),
            json!(true),
            json!(["running"]),
            json!(null),
        ] {
            assert_eq!(SessionStatus::of(&raw), SessionStatus::Unknown, "{raw}");
            assert_eq!(EnvironmentStatus::of(&raw), EnvironmentStatus::Unknown);
        }
    }

    #[test]
    fn provider_4_a_session_that_is_over_is_an_environment_that_is_stopped() {
        for (raw, environment, session) in [
            ("queued", "pending", "pending"),
            ("completed", "stopped", "completed"),
            ("cancelled", "stopped", "cancelled"),
            ("expired", "expired", "expired"),
            ("failed", "failed", "failed"),
        ] {
            let raw = json!(raw);
            assert_eq!(json!(EnvironmentStatus::of(&raw)), environment);
            assert_eq!(json!(SessionStatus::of(&raw)), session);
        }
    }
}
