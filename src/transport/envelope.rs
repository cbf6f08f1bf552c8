//! How answers are read: the success envelopes (wire protocol, 3.1) and the three forms of error bodies (3.2, 3.3).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::code::Code;
use super::error::{Error, Failure};
use super::redact::redact_key;
use crate::contract::Secret;
use crate::contract::limits;
use crate::contract::routes::{Answer, Route, Status};

/// At most so much of an error body is read, in bytes (wire protocol, 1.6).
pub const MAX_ERROR_BODY: usize = limits::MAX_ERROR_BODY;

const DEFAULT_TIMEOUT: Duration = Duration::from_millis(limits::REQUEST_TIMEOUT_MS as u64);

/// The value in a success body: `data` of `{ "success": true, "data": … }`, else the special key of the route's family,
/// else the whole body.
pub fn payload(body: &[u8], answer: Answer) -> &[u8] {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(default)]
        success: Option<bool>,
        #[serde(borrow, default, deserialize_with = "present")]
        data: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        result: Option<&'a RawValue>,
    }
    // `data: null` is a value that is present.
    fn present<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<&'de RawValue>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Some)
    }
    let starts_object = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !starts_object {
        return body;
    }
    let Ok(outer) = serde_json::from_slice::<Outer<'_>>(body) else {
        return body;
    };
    let special = match answer {
        Answer::Key("result") => outer.result,
        _ => None,
    };
    match (outer.success, outer.data) {
        (Some(true), Some(data)) => data.get().as_bytes(),
        _ => special.map_or(body, |value| value.get().as_bytes()),
    }
}

/// The parts of an answer that an error is made of.
pub(super) struct Refused<'a> {
    pub route: Option<&'static Route>,
    pub method: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub request_id: Option<&'a str>,
    pub body: &'a [u8],
}

/// The typed error of an answer whose status is not 2xx.
pub(super) fn error(answer: &Refused<'_>, key: &Secret) -> Error {
    let clean = |text: &str| redact_key(text, key);
    let text = String::from_utf8_lossy(answer.body);
    let parsed = serde_json::from_slice::<Value>(answer.body).ok();
    let top = parsed.as_ref().and_then(Value::as_object);
    let inner = top.and_then(|top| top.get("error"));
    let message = [
        top.and_then(|top| top.get("message")),
        inner.and_then(|inner| inner.get("message")),
        inner,
    ]
    .into_iter()
    .find_map(filled)
    .unwrap_or(text.trim());
    let code = [
        top.and_then(|top| top.get("code")),
        inner.and_then(|inner| inner.get("code")),
    ]
    .into_iter()
    .find_map(filled);
    let details = details(top, &clean);
    let failure = Box::new(Failure {
        route: answer.route.map_or("fetch", |route| route.name),
        method: answer.method.into(),
        path: answer.path.into(),
        status: Some(answer.status),
        code: code.map_or(Code::UnknownError, |code| Code::from(clean(code).as_str())),
        code_given: code.is_some(),
        message: match message {
            "" => "Unknown error".into(),
            message => clean(message).into(),
        },
        retry_after: answer
            .retry_after
            .or_else(|| millis(&details, "retryAfterMs")),
        request_id: answer.request_id.map(|id| clean(id).into()),
        details,
    });
    classify(answer.route, failure)
}

fn filled(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// The detail fields, nearest first: top level, `error`, `error.details`.
fn details(top: Option<&Map<String, Value>>, clean: &dyn Fn(&str) -> String) -> Map<String, Value> {
    let inner = top.and_then(|top| top.get("error"));
    let levels = [
        top,
        inner.and_then(Value::as_object),
        inner
            .and_then(|inner| inner.get("details"))
            .and_then(Value::as_object),
    ];
    let mut details = Map::new();
    for (name, value) in levels.into_iter().flatten().flatten() {
        let own = matches!(
            name.as_str(),
            "message" | "code" | "error" | "details" | "success"
        );
        if !own && !details.contains_key(name) {
            details.insert(clean(name), cleaned(value, clean));
        }
    }
    details
}

fn cleaned(value: &Value, clean: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.iter().map(|item| cleaned(item, clean)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (clean(name), cleaned(member, clean)))
            .collect(),
        other => other.clone(),
    }
}

fn millis(details: &Map<String, Value>, name: &str) -> Option<Duration> {
    let millis = details.get(name)?.as_f64()?;
    (millis >= 0.0).then(|| Duration::from_millis(millis as u64))
}

/// The class by status (wire protocol, 3.3). The body's code wins over the default code of the class.
fn classify(route: Option<&'static Route>, mut at: Box<Failure>) -> Error {
    let status = at.status.unwrap_or_default();
    let unsupported = status == 501 || (status == 404 && lacks_route(route, &at));
    let command = route.is_some_and(|route| matches!(route.name, "exec" | "process.run_code"));
    if status == 404 && unsupported {
        at.code = Code::NotSupported;
    } else if !at.code_given {
        at.code = default_code(status, command);
    }
    match status {
        _ if unsupported => Error::NotSupported { at },
        400 | 422 => Error::Validation {
            fields: fields(&at.details),
            at,
        },
        401 => Error::Auth { at },
        403 => Error::Forbidden { at },
        404 => Error::NotFound {
            resource_type: text(&at, "resourceType").unwrap_or_else(|| "Resource".to_owned()),
            resource_id: text(&at, "resourceId").unwrap_or_else(|| "unknown".to_owned()),
            at,
        },
        408 => Error::Timeout {
            limit: millis(&at.details, "timeoutMs").unwrap_or(DEFAULT_TIMEOUT),
            at,
        },
        409 => Error::State {
            current: text(&at, "currentState").unwrap_or_else(|| "unknown".to_owned()),
            required: text(&at, "requiredState"),
            at,
        },
        429 => Error::Quota {
            quota_type: text(&at, "quotaType").unwrap_or_else(|| "rate_limit".to_owned()),
            current: at.details.get("current").and_then(Value::as_f64),
            limit: at.details.get("limit").and_then(Value::as_f64),
            at,
        },
        504 if command => Error::Exec {
            limit: millis(&at.details, "timeoutMs"),
            at,
        },
        500.. => Error::Server { at },
        _ => Error::Other { at },
    }
}

fn default_code(status: u16, command: bool) -> Code {
    match status {
        400 | 422 => Code::ValidationError,
        401 => Code::AuthError,
        404 => Code::NotFound,
        408 => Code::Timeout,
        409 => Code::InvalidState,
        429 => Code::QuotaExceeded,
        501 => Code::NotSupported,
        504 if command => Code::ExecTimeout,
        500.. => Code::ServerError,
        _ => Code::UnknownError,
    }
}

fn text(at: &Failure, name: &str) -> Option<String> {
    filled(at.details.get(name)).map(str::to_owned)
}

/// Whether a 404 says that the route, not the resource, is unknown (wire protocol, 3.5).
fn lacks_route(route: Option<&'static Route>, failure: &Failure) -> bool {
    match filled(failure.details.get("resourceType")) {
        Some(resource_type) => resource_type == "route",
        None => route.is_some_and(|route| route.status == Status::Proposed),
    }
}

fn fields(details: &Map<String, Value>) -> BTreeMap<String, String> {
    let Some(Value::Object(fields)) = details.get("fields") else {
        return BTreeMap::new();
    };
    fields
        .iter()
        .map(|(path, message)| {
            let message = match message {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (path.clone(), message)
        })
        .collect()
}

/// A failure that this client found by itself.
pub(super) fn local(
    route: Option<&'static Route>,
    method: &str,
    path: &str,
    code: Code,
    message: &str,
) -> Box<Failure> {
    Box::new(Failure {
        route: route.map_or("fetch", |route| route.name),
        method: method.into(),
        path: path.into(),
        status: None,
        code,
        code_given: false,
        message: message.into(),
        retry_after: None,
        request_id: None,
        details: Map::new(),
    })
}
