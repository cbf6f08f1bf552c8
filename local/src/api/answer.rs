//! Success and error envelopes (wire protocol, 3.1 and 3.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tangle_sandbox::contract::check::Refused;

use crate::store::StoreError;

/// A request that was not served. Texts name a path and a rule, never a value.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Detail fields such as `fields` or `resourceType`.
    pub(crate) detail: Map<String, Value>,
}

/// Which of the two error envelopes a route has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Envelope {
    Control,
    Runtime,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            detail: Map::new(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }

    /// 400, naming one field.
    pub(crate) fn field(field: &str, rule: impl Into<String>) -> Self {
        let rule = rule.into();
        Self::fields(BTreeMap::from([(field.to_owned(), rule)]))
    }

    /// 400, naming several fields.
    pub(crate) fn fields(fields: BTreeMap<String, String>) -> Self {
        let text: Vec<String> = fields
            .iter()
            .map(|(field, rule)| format!("`{field}` {rule}"))
            .collect();
        Self::new(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", text.join("; "))
            .with("fields", json!(fields))
    }

    /// 404 about a resource.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NOT_FOUND",
            format!("there is no such {kind}"),
        )
        .with("resourceType", kind)
        .with("resourceId", id)
    }

    /// 404 about a path of the API.
    pub(crate) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", "there is no such route")
            .with("resourceType", "route")
    }

    /// 409 in a lifecycle state.
    pub(crate) fn state(current: &str, required: Option<&str>, message: &str) -> Self {
        let fault = Self::conflict("INVALID_STATE", message).with("currentState", current);
        match required {
            Some(required) => fault.with("requiredState", required),
            None => fault,
        }
    }

    /// 409 with a code.
    pub(crate) fn conflict(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 501, naming what this deployment lacks.
    pub(crate) fn not_supported(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            "NOT_SUPPORTED",
            format!("this deployment does not support {what}"),
        )
    }

    /// 501 about a field of a request.
    pub(crate) fn field_not_supported(field: &str, why: &str) -> Self {
        Self::not_supported(&format!("`{field}`: {why}")).with(
            "fields",
            json!({ field: format!("is not supported: {why}") }),
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "PAYLOAD_TOO_LARGE",
            format!("the body is larger than {limit} bytes"),
        )
        .with("limit", limit)
    }

    fn body(&self, envelope: Envelope) -> Value {
        let mut detail = self.detail.clone();
        detail.insert("code".to_owned(), self.code.into());
        match envelope {
            Envelope::Runtime => {
                detail.insert("message".to_owned(), self.message.clone().into());
                json!({ "success": false, "error": detail })
            }
            Envelope::Control => {
                detail.insert("error".to_owned(), self.message.clone().into());
                Value::Object(detail)
            }
        }
    }

    /// The answer in its envelope.
    pub(crate) fn render(&self, envelope: Envelope) -> Response {
        let mut response = json_response(self.status, &self.body(envelope));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The fault travels with the response; the outermost layer knows the envelope and writes the body.
impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let (status, code) = match error {
            StoreError::Full => (StatusCode::INSUFFICIENT_STORAGE, "STORAGE_FULL"),
            StoreError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "STORAGE_UNAVAILABLE"),
        };
        tracing::error!(%error, "the record could not be used");
        Self::new(
            status,
            code,
            "the request could not be recorded, so nothing was done",
        )
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let path = dotted(refused.path());
        if refused.rule().ends_with("not supported yet") {
            return Self::field_not_supported(&path, refused.rule());
        }
        Self::field(&path, refused.rule())
    }
}

/// `/git/depth` becomes `git.depth`; the whole document is `body`.
pub(crate) fn dotted(pointer: &str) -> String {
    match pointer.strip_prefix('/') {
        None => "body".to_owned(),
        Some(path) => path
            .split('/')
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect::<Vec<_>>()
            .join("."),
    }
}

/// A JSON answer.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = (status, Body::from(bytes)).into_response();
            let headers = response.headers_mut();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            response
        }
        Err(_) => Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            "the answer cannot be written",
        )
        .into_response(),
    }
}

/// 200 with the bare record.
pub(crate) fn bare(value: &impl Serialize) -> Response {
    json_response(StatusCode::OK, value)
}

/// 200 `{ "success": true, "data": … }`.
pub(crate) fn data(value: &impl Serialize) -> Response {
    keyed("data", value)
}

/// 200 `{ "success": true, "<key>": … }`.
pub(crate) fn keyed(key: &'static str, value: &impl Serialize) -> Response {
    with_status(StatusCode::OK, key, value)
}

/// The same with another status.
pub(crate) fn with_status(
    status: StatusCode,
    key: &'static str,
    value: &impl Serialize,
) -> Response {
    #[derive(Serialize)]
    struct Success<'a, T> {
        success: bool,
        #[serde(flatten)]
        content: BTreeMap<&'static str, &'a T>,
    }
    let content = BTreeMap::from([(key, value)]);
    json_response(
        status,
        &Success {
            success: true,
            content,
        },
    )
}

/// 200 `{ "success": true }`.
pub(crate) fn success() -> Response {
    json_response(StatusCode::OK, &json!({ "success": true }))
}

#[cfg(test)]
mod tests {
    use super::dotted;

    #[test]
    fn a_pointer_becomes_a_dotted_path() {
        assert_eq!(dotted("/network/allowList/0"), "network.allowList.0");
        assert_eq!(dotted("/env/A~1B"), "env.A/B");
        assert_eq!(dotted(""), "body");
    }
}
