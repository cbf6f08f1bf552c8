//! What every request goes through: a request id, the credential, the envelope of errors, the end of the deployment.

use std::hint::black_box;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use tangle_sandbox::contract::Secret;
use tangle_sandbox::contract::routes::HEALTH;

use super::Shared;
use super::answer::{Envelope, Fault};
use crate::ids::mint;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// 404 for a path that is not in the table.
pub(super) async fn no_route() -> Fault {
    Fault::no_route()
}

/// 501 for a route of the table that this deployment does not serve.
pub(super) async fn not_served(method: Method) -> Fault {
    Fault::not_supported(&format!("this {method} route"))
}

pub(super) async fn every_request(
    State(deployment): State<Shared>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let id = mint("req_");
    let envelope = envelope(&path);
    let refused = if path == HEALTH.template {
        None
    } else {
        refuse(envelope, request.headers(), &deployment.key)
    };
    let response = match refused {
        Some(fault) => fault.into_response(),
        None => tokio::select! {
            biased;
            () = deployment.closing.cancelled() => {
                Fault::passing("the deployment is being stopped").into_response()
            }
            response = next.run(request) => response,
        },
    };
    let mut response = written(response, envelope);
    tracing::debug!(%method, path, status = response.status().as_u16(), request_id = id, "served");
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// Faults get their body here, and so does the router's own 405.
fn written(response: Response, envelope: Envelope) -> Response {
    if let Some(fault) = response.extensions().get::<Arc<Fault>>() {
        return fault.render(envelope);
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let fault = Fault::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            "this route has another method",
        );
        let mut answer = fault.render(envelope);
        if let Some(allow) = response.headers().get(header::ALLOW) {
            answer.headers_mut().insert(header::ALLOW, allow.clone());
        }
        return answer;
    }
    response
}

fn envelope(path: &str) -> Envelope {
    let runtime = path
        .strip_prefix("/v1/sandboxes/")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(_, rest)| rest == "runtime" || rest.starts_with("runtime/"));
    if runtime {
        Envelope::Runtime
    } else {
        Envelope::Control
    }
}

fn refuse(envelope: Envelope, headers: &HeaderMap, key: &Secret) -> Option<Fault> {
    let given = headers.get(header::AUTHORIZATION);
    let bearer = given.and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
    });
    if bearer.is_some_and(|token| same(token, key.expose().as_bytes())) {
        return None;
    }
    Some(match (envelope, given) {
        (Envelope::Control, _) => Fault::new(
            StatusCode::UNAUTHORIZED,
            "AUTH_ERROR",
            "the API key is missing or wrong",
        ),
        (Envelope::Runtime, None) => Fault::new(
            StatusCode::UNAUTHORIZED,
            "UNAUTHORIZED",
            "the credential is missing",
        ),
        (Envelope::Runtime, Some(_)) => Fault::new(
            StatusCode::FORBIDDEN,
            "FORBIDDEN",
            "the credential is wrong",
        ),
    })
}

/// Compares digests, so that the time tells neither the length nor the place of a difference.
fn same(left: &[u8], right: &[u8]) -> bool {
    let (left, right) = (Sha256::digest(left), Sha256::digest(right));
    let differ = left
        .iter()
        .zip(right.iter())
        .fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
    differ == 0
}

#[cfg(test)]
mod tests {
    use super::{Envelope, envelope, same};

    #[test]
    fn the_envelope_follows_the_plane() {
        assert_eq!(
            envelope("/v1/sandboxes/a/runtime/health"),
            Envelope::Runtime
        );
        assert_eq!(envelope("/v1/sandboxes/a/runtimes"), Envelope::Control);
        assert_eq!(envelope("/v1/sandboxes/runtime"), Envelope::Control);
        assert_eq!(envelope("/nothing"), Envelope::Control);
    }

    #[test]
    fn only_the_whole_key_is_the_key() {
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"abc", b"abcd") && !same(b"", b"abc"));
    }
}
