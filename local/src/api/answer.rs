//! Success and error envelopes (wire protocol, 3.1 and 3.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::types::{ControlError, ErrorDetail, RuntimeError, Success};

use crate::store::StoreError;

/// A request that was not served. Texts name a path and a rule, never a value.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Detail fields such as `fields` or `resourceType`.
    pub(crate) detail: Map<String, Value>,
    /// True for a refusal of the moment: the same request may be sent again. Its answer has no code.
    passing: bool,
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
            passing: false,
        }
    }

    /// 503 for a moment: clients send the same request again after `Retry-After`. They do so only when the answer has no
    /// code, so that it is plain text.
    pub(crate) fn passing(message: &str) -> Self {
        let fault = Self::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message);
        Self {
            passing: true,
            ..fault
        }
    }

    /// 503, since the disk takes no more. Sending it again helps only once there is room.
    pub(crate) fn storage_full(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "STORAGE_FULL", message)
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
        Self::new(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", text.join("; ")).with(
            "fields",
            Map::from_iter(fields.into_iter().map(|(field, rule)| (field, rule.into()))),
        )
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
        let rule = format!("is not supported: {why}");
        let fields = Map::from_iter([(field.to_owned(), rule.into())]);
        Self::not_supported(&format!("`{field}`: {why}")).with("fields", fields)
    }

    /// 501 about the profile of a backend block.
    pub(crate) fn profile_unsupported(field: &str) -> Self {
        let why = "profiles are not installed here";
        let fault = Self::field_not_supported(field, why);
        Self {
            code: "PROFILE_UNSUPPORTED",
            ..fault
        }
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "PAYLOAD_TOO_LARGE",
            format!("the body is larger than {limit} bytes"),
        )
        .with("limit", limit)
    }

    fn runtime_error(&self) -> RuntimeError {
        let mut detail = self.detail.clone();
        detail.insert("code".to_owned(), self.code.into());
        detail.insert("message".to_owned(), self.message.clone().into());
        let error = serde_json::from_value(detail.into()).unwrap_or_else(|_| ErrorDetail {
            code: self.code.to_owned(),
            message: self.message.clone(),
            current_state: None,
            fields: None,
            oldest_event_id: None,
            required_state: None,
            resource_id: None,
            resource_type: None,
            timeout_ms: None,
            extra: Map::new(),
        });
        RuntimeError {
            success: false,
            error,
            extra: Map::new(),
        }
    }

    fn control_error(&self) -> ControlError {
        let mut detail = self.detail.clone();
        detail.insert("code".to_owned(), self.code.into());
        detail.insert("error".to_owned(), self.message.clone().into());
        serde_json::from_value(detail.into()).unwrap_or_else(|_| ControlError {
            code: self.code.to_owned(),
            error: self.message.clone(),
            current_state: None,
            fields: None,
            required_state: None,
            resource_id: None,
            resource_type: None,
            extra: Map::new(),
        })
    }

    /// The answer in its envelope.
    pub(crate) fn render(&self, envelope: Envelope) -> Response {
        if self.passing {
            let after = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
            return (self.status, after, self.message.clone()).into_response();
        }
        match envelope {
            Envelope::Runtime => json_response(self.status, &self.runtime_error()),
            Envelope::Control => json_response(self.status, &self.control_error()),
        }
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

/// Whether something was done before the record failed is for the caller of this conversion to say.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the record could not be used");
        match error {
            StoreError::Full => Self::storage_full("the disk of the deployment is full"),
            StoreError::Closed => Self::passing("the deployment is being stopped"),
            StoreError::Busy => Self::passing("the record of the deployment is busy"),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "STORAGE_UNAVAILABLE",
                "the record of the deployment cannot be used",
            ),
        }
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
    struct Keyed<'a, T> {
        success: bool,
        #[serde(flatten)]
        content: BTreeMap<&'static str, &'a T>,
    }
    let content = BTreeMap::from([(key, value)]);
    json_response(
        status,
        &Keyed {
            success: true,
            content,
        },
    )
}

/// 200 `{ "success": true }`.
pub(crate) fn success() -> Response {
    bare(&Success { success: true })
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::{Envelope, Fault, dotted};
    use crate::store::StoreError;

    #[tokio::test]
    async fn wire_3_6_only_what_may_be_sent_again_has_no_code() {
        for (error, passing) in [
            (StoreError::Closed, true),
            (StoreError::Busy, true),
            (StoreError::Full, false),
            (StoreError::ReadOnly, false),
        ] {
            let text = error.to_string();
            let answer = Fault::from(error).render(Envelope::Runtime);
            assert_eq!(answer.status(), 503, "{text}");
            assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), passing);
            let body = axum::body::to_bytes(answer.into_body(), 1000).await;
            let body = body.unwrap();
            let json = serde_json::from_slice::<serde_json::Value>(&body).ok();
            assert_eq!(json.is_none(), passing, "{text}");
            assert!(!String::from_utf8_lossy(&body).contains("nothing was"));
        }
    }

    #[test]
    fn a_pointer_becomes_a_dotted_path() {
        assert_eq!(dotted("/network/allowList/0"), "network.allowList.0");
        assert_eq!(dotted("/env/A~1B"), "env.A/B");
        assert_eq!(dotted(""), "body");
    }
}
