//! One request of a route, ready to be sent, and the errors that name it.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::code::Code;
use super::envelope;
use super::error::{Error, Failure, Refusal};
use super::retry::{Repeat, RetryPolicy};
use crate::contract::routes::{self, Route, encode_component};
use crate::contract::secret::in_body;

/// One request, ready to be sent: a route with its path, and what else belongs to it.
///
/// The body is written once and shared by all attempts.
#[derive(Clone)]
pub struct Call {
    pub(super) route: &'static Route,
    pub(super) target: Result<String, Refusal>,
    pub(super) body: Option<Bytes>,
    pub(super) repeat: Repeat,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) time_limit: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) answer_limit: Option<usize>,
}

impl Call {
    /// A call of `route` with its path parameters. `GET` and `DELETE` may be repeated, others only if [`Call::repeat`]
    /// says so. A parameter that cannot stand in a path is refused when the call is sent.
    pub fn new(route: &'static Route, params: &[(&str, &str)]) -> Self {
        let repeat = match route.method {
            routes::Method::Get | routes::Method::Delete => Repeat::Safe,
            _ => Repeat::Never,
        };
        Self {
            route,
            target: route.path(params).map_err(Refusal::from),
            body: None,
            repeat,
            retry: None,
            time_limit: None,
            deadline: None,
            answer_limit: None,
        }
    }

    /// Adds a query parameter; the same name may come again.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        if let Ok(target) = &mut self.target {
            target.push(if target.contains('?') { '&' } else { '?' });
            encode_component(target, name);
            target.push('=');
            encode_component(target, value);
        }
        self
    }

    /// The JSON body. This is the one place where secrets are written out.
    pub fn body<B: Serialize + ?Sized>(mut self, body: &B) -> Self {
        match in_body(|| serde_json::to_vec(body)) {
            Ok(body) => self.body = Some(body.into()),
            Err(_) => self.target = self.target.and(Err(Refusal::Body)),
        }
        self
    }

    /// Whether the call may be sent again.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// How often this call is repeated, instead of what the client says.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// The time limit of one attempt, instead of the client's.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// How long the caller waits in all, repeats and their waits included.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The largest success body in bytes, instead of the client's.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = Some(bytes);
        self
    }
}

/// The errors of this call that do not come from a refusal.
impl Call {
    /// The path without its query; the template when the path was refused.
    pub(super) fn path(&self) -> &str {
        let target = self.target.as_deref().unwrap_or(self.route.template);
        target.split('?').next().unwrap_or_default()
    }

    pub(super) fn failure(&self, code: Code, message: &str) -> Box<Failure> {
        let method = self.route.method.as_str();
        envelope::local(Some(self.route), method, self.path(), code, message)
    }

    pub(super) fn protocol(&self, rule: &str) -> Error {
        Error::Protocol {
            at: self.failure(Code::ProtocolError, rule),
        }
    }

    pub(super) fn network(&self, error: reqwest::Error) -> Error {
        Error::Network {
            at: self.failure(Code::NetworkError, "no response"),
            source: error.without_url().into(),
        }
    }

    pub(super) fn expired(&self, limit: Duration) -> Error {
        Error::Timeout {
            at: self.failure(Code::Timeout, "no answer within the time limit"),
            limit,
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("route", &self.route.name)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("repeat", &self.repeat)
            .finish_non_exhaustive()
    }
}
