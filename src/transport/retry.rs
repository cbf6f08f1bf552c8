//! What may be repeated, when and how often (wire protocol, 3.6): data and pure functions, and one loop over them.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::budget::Budget;
use super::code::Code;
use super::error::{Error, Failure};
use crate::contract::limits;

/// Whether a request may be sent again without asking the caller. Each call says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It only reads, or its effect is the same twice: `GET`, `DELETE`, reading `POST`s.
    Safe,
    /// The service recognises it by a recorded key: `idempotencyKey`, `turnId`, `executionId`, `operationId`.
    Keyed,
    /// Sending it twice can act twice: exec, spawn, input, a create without a key.
    Never,
}

/// How long to wait before a repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Waits {
    /// A random time up to `first`, doubled for each further repeat, up to `cap` (full jitter).
    Jittered {
        /// The bound of the first wait.
        first: Duration,
        /// The bound of all waits.
        cap: Duration,
    },
    /// These waits in order, then the last one again.
    Steps(&'static [Duration]),
}

impl Waits {
    /// 250 ms doubling to 5 s with full jitter: plain calls.
    pub const PLAIN: Self = Self::Jittered {
        first: Duration::from_millis(250),
        cap: Duration::from_secs(5),
    };

    /// 5, 10, 20, 40, 60 s, then 60 s: lifecycle operations and the settling of turns.
    pub const LIFECYCLE: Self = Self::Steps(&[
        Duration::from_secs(5),
        Duration::from_secs(10),
        Duration::from_secs(20),
        Duration::from_secs(40),
        Duration::from_secs(60),
    ]);

    /// The wait before repeat number `repeat` (1 is the first), for a `chance` from 0 to 1.
    pub fn wait(&self, repeat: u32, chance: f64) -> Duration {
        match self {
            Self::Jittered { first, cap } => {
                let doubled = first.saturating_mul(1 << repeat.saturating_sub(1).min(20));
                doubled.min(*cap).mul_f64(chance.clamp(0.0, 1.0))
            }
            Self::Steps(steps) => {
                let index = (repeat.max(1) as usize - 1).min(steps.len().saturating_sub(1));
                steps.get(index).copied().unwrap_or_default()
            }
        }
    }
}

/// How often a call is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included. A call with a deadline of its own goes on until the deadline instead.
    pub attempts: u32,
    /// The waits; by default those that fit the route.
    pub waits: Option<Waits>,
    /// A call without a deadline is not held longer than this before a repeat, whatever `Retry-After` says.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: limits::RETRY_ATTEMPTS as u32,
            waits: None,
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Each call is sent once.
    pub const OFF: Self = Self {
        attempts: 1,
        waits: None,
        longest_wait: Duration::ZERO,
    };

    /// The wait before the next attempt, or `None` when `error` is the end of the call.
    ///
    /// `attempt` counts from 1; `remaining` is the time to the caller's deadline.
    pub fn next_wait(
        &self,
        error: &Error,
        waits: &Waits,
        attempt: u32,
        remaining: Option<Duration>,
        chance: f64,
    ) -> Option<Duration> {
        let on = self.attempts > 1;
        if !on || !error.is_retryable() || (remaining.is_none() && attempt >= self.attempts) {
            return None;
        }
        let wait = self.waits.as_ref().unwrap_or(waits).wait(attempt, chance);
        let wait = wait.max(error.retry_after().unwrap_or_default());
        let fits = match remaining {
            Some(remaining) => wait < remaining,
            None => wait <= self.longest_wait,
        };
        fits.then_some(wait)
    }
}

/// Whether the same call can succeed later without a change.
pub(super) fn is_transient(error: &Error) -> bool {
    let Some(at) = error.failure() else {
        return false;
    };
    match at.code {
        Code::KeyBudgetExhausted | Code::AgentExecutionFailed | Code::InvalidBackendRegistry => {
            return false;
        }
        Code::EdgeNotReady | Code::RuntimeReloadFailed => return true,
        _ => {}
    }
    match error {
        Error::Network { .. } | Error::Timeout { .. } | Error::Quota { .. } => true,
        Error::State { required, .. } => match at.code {
            Code::FilesystemIncarnationNotReady => true,
            Code::InvalidState => required.is_none() && takes_lease(at),
            _ => false,
        },
        Error::Server { .. } => match at.status {
            Some(502 | 504) => true,
            Some(503) => {
                let known = [
                    Code::ModelCredentialSuperseded,
                    Code::HubCredentialRefreshUnavailable,
                ];
                !at.code_given || known.contains(&at.code)
            }
            _ => false,
        },
        _ => false,
    }
}

/// A 409 without a required state on these routes means that another operation holds the lifecycle lease.
fn takes_lease(at: &Failure) -> bool {
    matches!(
        at.route,
        "sandboxes.stop" | "sandboxes.resume" | "sandboxes.delete"
    )
}

/// The waits that fit a route.
pub(super) fn waits_for(route: &str) -> Waits {
    match route {
        "sandboxes.create" | "sandboxes.stop" | "sandboxes.resume" | "sandboxes.delete" => {
            Waits::LIFECYCLE
        }
        _ => Waits::PLAIN,
    }
}

/// Reads a `Retry-After`: seconds, or an HTTP date as seen from `now` (seconds since 1970). Anything else is nothing.
pub fn read_retry_after(value: &str, now: i64) -> Option<Duration> {
    let value = value.trim();
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    if !value.ends_with("GMT") {
        return None;
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let seconds = date.timestamp().as_second().saturating_sub(now).max(0);
    Some(Duration::from_secs(seconds.unsigned_abs()))
}

/// One call's rules for being repeated.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// How often.
    pub policy: RetryPolicy,
    /// Whether at all.
    pub repeat: Repeat,
    /// The waits, unless the policy has its own.
    pub waits: Waits,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// The client's budget.
    pub budget: &'a Budget,
}

impl Plan<'_> {
    /// Runs `attempt` until it succeeds or the rules end the call. `attempt` gets the time that is left.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn run<T, F: Future<Output = Result<T, Error>>>(
        &self,
        mut attempt: impl FnMut(Option<Duration>) -> F,
    ) -> Result<T, Error> {
        let mut count = 0;
        loop {
            count += 1;
            let error = match attempt(self.remaining()).await {
                Ok(value) => {
                    self.budget.give_back();
                    return Ok(value);
                }
                Err(error) => error,
            };
            let wait =
                self.policy
                    .next_wait(&error, &self.waits, count, self.remaining(), chance());
            let Some(wait) = wait.filter(|_| self.repeat != Repeat::Never && self.budget.take())
            else {
                return Err(error);
            };
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            tracing::debug!(attempt = count, wait_ms = millis, %error, "a call is repeated");
            tokio::time::sleep(wait).await;
        }
    }

    fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Secret;
    use crate::contract::routes::{self, Route};
    use crate::transport::envelope::{self, Refused};

    fn error(route: &'static Route, status: u16, body: &str, retry_after: Option<&str>) -> Error {
        let refused = Refused {
            route: Some(route),
            method: route.method.as_str(),
            path: route.template,
            status,
            retry_after: retry_after.and_then(|value| read_retry_after(value, 0)),
            request_id: None,
            body: body.as_bytes(),
        };
        envelope::error(&refused, &Secret::from("key"))
    }

    #[test]
    fn transient_is_what_the_table_says() {
        let get = |status, body| error(&routes::SANDBOXES_GET, status, body, None);
        for (status, body, expected) in [
            (400, "", false),
            (401, "", false),
            (402, r#"{"code":"KEY_BUDGET_EXHAUSTED"}"#, false),
            (403, "", false),
            (404, "", false),
            (408, "", true),
            (409, "", false),
            (409, r#"{"code":"FILESYSTEM_INCARNATION_NOT_READY"}"#, true),
            (409, r#"{"code":"EGRESS_PROXY_RECOVERY_REQUIRED"}"#, false),
            (409, r#"{"code":"SESSION_BUSY"}"#, false),
            (413, "", false),
            (429, "", true),
            (429, r#"{"code":"KEY_BUDGET_EXHAUSTED"}"#, false),
            (500, "", false),
            (501, "", false),
            (502, "", true),
            (503, "", true),
            (503, r#"{"code":"EDGE_NOT_READY"}"#, true),
            (503, r#"{"code":"SOMETHING"}"#, false),
            (504, "", true),
        ] {
            assert_eq!(
                get(status, body).is_retryable(),
                expected,
                "{status} {body}"
            );
        }
        assert!(!error(&routes::EXEC, 504, "", None).is_retryable());
    }

    #[test]
    fn a_held_lifecycle_lease_is_waited_for_on_lifecycle_routes_only() {
        let held = |route, body| error(route, 409, body, None).is_retryable();
        for route in [
            &routes::SANDBOXES_STOP,
            &routes::SANDBOXES_RESUME,
            &routes::SANDBOXES_DELETE,
        ] {
            assert!(held(route, r#"{"code":"INVALID_STATE"}"#));
            assert!(!held(
                route,
                r#"{"code":"INVALID_STATE","requiredState":"running"}"#
            ));
        }
        assert!(!held(
            &routes::AGENTS_RUN_STREAM,
            r#"{"code":"INVALID_STATE"}"#
        ));
    }

    #[test]
    fn waits_double_with_jitter_or_follow_the_steps() {
        let plain = |repeat, chance| Waits::PLAIN.wait(repeat, chance).as_millis();
        assert_eq!(
            [1, 2, 3, 5, 6, 99].map(|n| plain(n, 1.0)),
            [250, 500, 1000, 4000, 5000, 5000]
        );
        assert_eq!((plain(1, 0.0), plain(2, 0.5)), (0, 250));
        let steps = [1, 2, 3, 4, 5, 6, 99].map(|n| Waits::LIFECYCLE.wait(n, 0.3).as_secs());
        assert_eq!(steps, [5, 10, 20, 40, 60, 60, 60]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_never_garbage() {
        let at = 1_445_412_480 - 20;
        for (value, expected) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(20)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999999", None),
            ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ] {
            let read = read_retry_after(value, at);
            assert_eq!(read, expected.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn wire_3_7_retry_after_wins_when_larger_and_garbage_leaves_the_backoff() {
        let policy = RetryPolicy::default();
        let wait = |retry_after, remaining| {
            let error = error(&routes::SANDBOXES_GET, 429, "", retry_after);
            policy.next_wait(&error, &Waits::PLAIN, 1, remaining, 1.0)
        };
        let (quarter, seven) = (Duration::from_millis(250), Duration::from_secs(7));
        assert_eq!(wait(Some("7"), None), Some(seven));
        assert_eq!(wait(Some("soon"), None), Some(quarter));
        assert_eq!(wait(Some("0"), None), Some(quarter));
        assert_eq!(wait(Some("7"), Some(seven)), None);
        assert_eq!(wait(Some("7"), Some(seven * 2)), Some(seven));
        assert_eq!(wait(Some("3600"), None), None);
    }

    async fn run(budget: &Budget, repeat: Repeat, errors: Vec<Error>) -> (Duration, usize, bool) {
        let plan = Plan {
            policy: RetryPolicy::default(),
            repeat,
            waits: Waits::LIFECYCLE,
            deadline: None,
            budget,
        };
        let started = Instant::now();
        let mut errors = errors.into_iter();
        let mut attempts = 0;
        let result = plan
            .run(|_| {
                attempts += 1;
                std::future::ready(errors.next().map_or(Ok(()), Err))
            })
            .await;
        (started.elapsed(), attempts, result.is_ok())
    }

    fn busy(count: usize) -> Vec<Error> {
        let busy = || error(&routes::SANDBOXES_STOP, 409, "", None);
        (0..count).map(|_| busy()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_loop_waits_as_the_policy_says() {
        let budget = Budget::new();
        let fifteen = Duration::from_secs(15);
        assert_eq!(
            run(&budget, Repeat::Safe, busy(2)).await,
            (fifteen, 3, true)
        );
        assert_eq!(
            run(&budget, Repeat::Keyed, busy(3)).await,
            (fifteen, 3, false)
        );
        while budget.take() {}
        assert_eq!(run(&budget, Repeat::Safe, busy(1)).await.1, 1);
        let budget = Budget::new();
        let never = run(&budget, Repeat::Never, busy(1)).await;
        assert_eq!(never, (Duration::ZERO, 1, false));
        let limited = vec![error(&routes::SANDBOXES_GET, 429, "", Some("7"))];
        let (waited, ..) = run(&budget, Repeat::Safe, limited).await;
        assert_eq!(waited, Duration::from_secs(7));
    }
}
