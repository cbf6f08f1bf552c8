//! Why a call of the platform failed, in words that may be shown (provider runtime, 4; interactions, 25).
//!
//! A message, a URL or a header of a failed call never passes here: they may hold a credential.

use std::fmt;

use serde_json::Value;

use super::types::{BareWord, FailureStatus, PlatformRead};

/// The cause of a failed call of the platform, in one value with two spellings: the short cause (its `Display`) and the
/// [reason](Self::reason).
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureCause {
    /// The caller left.
    Aborted,
    /// A limit of time passed.
    TimedOut,
    /// The service answered with a status.
    Http {
        /// The status.
        status: FailureStatus,
        /// The service's code, which only the reason shows.
        code: Option<BareWord>,
    },
    /// There is a code and no status.
    Code(BareWord),
    /// There is no more than the name of the error.
    Named(BareWord),
    /// Nothing is known that may be shown.
    Unreported,
}

/// Names of errors that have a meaning of their own.
const ABORT: &str = "AbortError";
const TIMEOUT: &str = "TimeoutError";
/// The name that every error has, which says nothing.
const PLAIN: &str = "Error";

impl FailureCause {
    /// The cause out of the name, the HTTP status and the code of a failed call. What may not be shown counts as absent.
    pub fn of(name: Option<&str>, status: Option<u16>, code: Option<&str>) -> Self {
        match name {
            Some(ABORT) => return Self::Aborted,
            Some(TIMEOUT) => return Self::TimedOut,
            _ => {}
        }
        let code = code.and_then(|code| BareWord::new(code).ok());
        if let Some(status) = status.and_then(|status| FailureStatus::try_from(status).ok()) {
            return Self::Http { status, code };
        }
        let named = || {
            let name = name.filter(|name| *name != PLAIN)?;
            BareWord::new(name).ok().map(Self::Named)
        };
        match code {
            Some(code) => Self::Code(code),
            None => named().unwrap_or(Self::Unreported),
        }
    }

    /// The cause out of an error of another program: an object with `name`, `status` and `code`. A member of another
    /// type counts as absent.
    pub fn read(error: &Value) -> Self {
        let text = |member: &str| error.get(member).and_then(Value::as_str);
        let status = error.get("status").and_then(whole);
        Self::of(text("name"), status, text("code"))
    }

    /// The only text that a failed call may put into a payload: what was read, and the cause.
    pub fn reason(&self, read: PlatformRead) -> String {
        let tail = match self {
            Self::Http {
                code: Some(code), ..
            } => format!("; code {code}"),
            _ => String::new(),
        };
        format!("the Sandbox {read} failed ({self}{tail})")
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted => f.write_str("aborted"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Http { status, .. } => write!(f, "HTTP {status}"),
            Self::Code(code) => write!(f, "code {code}"),
            Self::Named(name) => f.write_str(name),
            Self::Unreported => f.write_str("cause unreported"),
        }
    }
}

/// A whole number that can be a status, also in the spelling of a double.
fn whole(number: &Value) -> Option<u16> {
    let number = number.as_f64()?;
    (number.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(&number))
        .then_some(number as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn causes() -> Vec<FailureCause> {
        let errors = [
            json!({"name": "AbortError", "status": 500, "code": "X"}),
            json!({"name": "TimeoutError", "status": 500, "code": "X"}),
            json!({"name": "ApiError", "status": 503, "code": "RATE"}),
            json!({"status": 503, "code": "not bare"}),
            json!({"code": "ECONNRESET"}),
            json!({"name": "TypeError"}),
            json!({"name": "Error"}),
        ];
        errors.iter().map(FailureCause::read).collect()
    }

    #[test]
    fn provider_4_the_short_cause_is_a_prefix_of_the_reason() {
        let before = "the Sandbox placement lookup failed (";
        for cause in causes() {
            let reason = cause.reason(PlatformRead::PlacementLookup);
            let inner = reason.strip_prefix(before).unwrap();
            assert!(inner.starts_with(&cause.to_string()), "{reason}");
        }
        let short: Vec<String> = causes().iter().map(FailureCause::to_string).collect();
        assert_eq!(
            short,
            [
                "aborted",
                "timed out",
                "HTTP 503",
                "HTTP 503",
                "code ECONNRESET",
                "TypeError",
                "cause unreported"
            ]
        );
        assert_eq!(
            causes()[2].reason(PlatformRead::TerminalSocket),
            "the Sandbox terminal socket failed (HTTP 503; code RATE)"
        );
    }

    #[test]
    fn provider_4_no_message_url_or_header_passes() {
        let canary = "https://user:hunter2@host/x";
        for error in [
            json!({"name": canary, "code": canary, "message": canary, "headers": {"a": canary}}),
            json!({"name": "Error", "status": 404, "code": canary, "cause": {"message": canary}}),
            json!(canary),
            json!([canary]),
            json!({"status": canary}),
        ] {
            let cause = FailureCause::read(&error);
            let shown = format!(
                "{cause} {cause:?} {}",
                cause.reason(PlatformRead::TerminalAttach)
            );
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn provider_4_a_status_is_a_whole_number_from_100_to_599() {
        for (status, cause) in [
            (json!(100), "HTTP 100"),
            (json!(599), "HTTP 599"),
            (json!(404.0), "HTTP 404"),
            (json!(99), "cause unreported"),
            (json!(600), "cause unreported"),
            (json!(500.5), "cause unreported"),
            (json!(-404), "cause unreported"),
            (json!(1e300), "cause unreported"),
            (json!("500"), "cause unreported"),
            (json!(true), "cause unreported"),
        ] {
            let error = json!({"status": status});
            assert_eq!(FailureCause::read(&error).to_string(), cause, "{error}");
        }
    }
}
