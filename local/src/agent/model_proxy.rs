//! The loopback proxy between an agent and its model: the agent holds a placeholder, the proxy adds the provider's key.
//!
//! Requests and answers stream through; nothing is buffered whole, redirects are not followed, and no request leaves the
//! path of the base URL.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use reqwest::Url;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::launch::ModelAccess;
use super::token_meter::{Reading, TokenMeter};

/// Bytes of one request's body.
const REQUEST_LIMIT: usize = 64 << 20;
/// Requests at once.
const AT_ONCE: usize = 64;
/// How long connecting to the provider may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the provider may stay silent.
const SILENCE: Duration = Duration::from_secs(300);
/// How long requests may take to end when the proxy is stopped.
const STOP: Duration = Duration::from_secs(2);

/// Headers that belong to one connection, or that must not pass.
const STOPPED_HEADERS: [HeaderName; 12] = [
    header::ACCEPT_ENCODING, // an answer that cannot be read cannot be counted
    header::HOST,
    header::AUTHORIZATION,
    header::COOKIE,
    header::SET_COOKIE,
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelProxyError {
    /// The base URL is not an absolute `http` or `https` URL without credentials, query and fragment.
    #[error("model.baseUrl: must be an http or https URL without credentials, query and fragment")]
    BaseUrl,
    /// The key cannot be sent in a header.
    #[error("model.apiKey: must be visible ASCII")]
    ApiKey,
    /// No loopback port could be opened.
    #[error("the model proxy cannot listen on loopback: {0}")]
    Listen(io::Error),
    /// The HTTP client could not be made, usually because the system's certificates cannot be read.
    #[error("the model proxy's HTTP client cannot be made")]
    Client,
}

/// A real model endpoint with its key. The key shows nowhere.
#[derive(Clone)]
pub struct ModelTarget {
    base: Url,
    authorization: HeaderValue,
}

impl ModelTarget {
    /// Checks a base URL and a key.
    ///
    /// # Errors
    /// [`ModelProxyError::BaseUrl`] and [`ModelProxyError::ApiKey`].
    pub fn new(base_url: &str, api_key: &str) -> Result<Self, ModelProxyError> {
        let base = Url::parse(base_url).map_err(|_| ModelProxyError::BaseUrl)?;
        let plain =
            base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "http" | "https") || !plain || base.fragment().is_some() {
            return Err(ModelProxyError::BaseUrl);
        }
        let mut authorization = HeaderValue::from_str(&format!("Bearer {api_key}"))
            .map_err(|_| ModelProxyError::ApiKey)?;
        authorization.set_sensitive(true);
        Ok(Self {
            base,
            authorization,
        })
    }
}

impl fmt::Debug for ModelTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelTarget")
            .field("host", &self.base.host_str())
            .finish_non_exhaustive()
    }
}

/// A running proxy with its own port and placeholder. Dropping it closes both.
#[derive(Debug)]
pub struct ModelProxy {
    address: SocketAddr,
    placeholder: String,
    meter: TokenMeter,
    stop: CancellationToken,
    server: AbortOnDropHandle<io::Result<()>>,
}

struct Shared {
    target: ModelTarget,
    expected: String,
    client: reqwest::Client,
    requests: Arc<Semaphore>,
    meter: TokenMeter,
}

impl ModelProxy {
    /// Starts a proxy on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`ModelProxyError::Listen`] and [`ModelProxyError::Client`].
    pub async fn start(target: ModelTarget) -> Result<Self, ModelProxyError> {
        let client = client()?;
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(ModelProxyError::Listen)?;
        let address = listener.local_addr().map_err(ModelProxyError::Listen)?;
        let (placeholder, stop) = (
            format!("placeholder-{}", Uuid::new_v4().simple()),
            CancellationToken::new(),
        );
        let expected = format!("Bearer {placeholder}");
        let (meter, requests) = (TokenMeter::default(), Arc::new(Semaphore::new(AT_ONCE)));
        let shared = Arc::new(Shared {
            target,
            expected,
            client,
            requests,
            meter: meter.clone(),
        });
        let router = Router::new().fallback(forward).with_state(shared);
        let stopped = stop.clone().cancelled_owned();
        let serving = async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(stopped)
                .await
        };
        Ok(Self {
            address,
            placeholder,
            meter,
            stop,
            server: AbortOnDropHandle::new(tokio::spawn(serving)),
        })
    }

    /// What an agent is given: the proxy's URL in place of the base URL, the placeholder in place of the key.
    #[must_use]
    pub fn access(&self, model: &str) -> ModelAccess {
        ModelAccess {
            base_url: format!("http://{}", self.address),
            api_key: self.placeholder.clone(),
            model: model.to_owned(),
            meter: Some(self.meter.clone()),
        }
    }

    /// Stops listening; running requests get 2 s.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(STOP, self.server).await;
    }
}

fn client() -> Result<reqwest::Client, ModelProxyError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default(); // somebody else may have been first
    }
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE);
    builder.build().map_err(|_| ModelProxyError::Client)
}

async fn forward(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (url, permit) = match admit(&shared, &request) {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal.into_response(),
    };
    let reading = shared.meter.begin();
    let is_call = request.method() == Method::POST;
    let (parts, body) = request.into_parts();
    let mut headers = passed_on(&parts.headers);
    headers.insert(header::AUTHORIZATION, shared.target.authorization.clone());
    let body = reqwest::Body::wrap_stream(limited(body));
    match shared
        .client
        .request(parts.method, url)
        .headers(headers)
        .body(body)
        .send()
        .await
    {
        Ok(answer) if answer.status().is_redirection() => {
            reading.free();
            let message = "the model endpoint answered with a redirect";
            Refusal(StatusCode::BAD_GATEWAY, "MODEL_REDIRECT", message).into_response()
        }
        Ok(answer) if is_call && answer.status().is_success() => {
            passed_back(answer, Some(reading), permit)
        }
        Ok(answer) => {
            reading.free();
            passed_back(answer, None, permit)
        }
        Err(error) => {
            reading.free();
            tracing::debug!(error = %error.without_url(), "model endpoint not reached");
            let message = "the model endpoint could not be reached";
            Refusal(StatusCode::BAD_GATEWAY, "MODEL_UNREACHABLE", message).into_response()
        }
    }
}

/// Where an allowed request goes, and its place among those that run.
fn admit(shared: &Shared, request: &Request) -> Result<(Url, OwnedSemaphorePermit), Refusal> {
    if !is_expected(
        request.headers().get(header::AUTHORIZATION),
        &shared.expected,
    ) {
        let message = "the key is not this run's placeholder";
        return Err(Refusal(
            StatusCode::UNAUTHORIZED,
            "PLACEHOLDER_UNKNOWN",
            message,
        ));
    }
    let url = below(
        &shared.target.base,
        request.uri().path(),
        request.uri().query(),
    );
    let url = url.ok_or(Refusal(
        StatusCode::NOT_FOUND,
        "PATH_OUTSIDE",
        "the path leaves the model's base URL",
    ))?;
    if declared_length(request.headers()).is_some_and(|length| length > REQUEST_LIMIT) {
        let message = "the request's body is over 64 MiB";
        return Err(Refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            "PAYLOAD_TOO_LARGE",
            message,
        ));
    }
    let permit = shared.requests.clone().try_acquire_owned();
    let message = "too many model requests at once";
    let permit =
        permit.map_err(|_| Refusal(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", message))?;
    Ok((url, permit))
}

fn passed_back(
    answer: reqwest::Response,
    mut reading: Option<Reading>,
    permit: OwnedSemaphorePermit,
) -> Response {
    let (status, headers) = (answer.status(), passed_on(answer.headers()));
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if let (Some(reading), Some(content_type)) = (&mut reading, content_type) {
        reading.content_type(content_type);
    }
    // Permit and reading live as long as the answer's body.
    let body = answer.bytes_stream().map(move |chunk| {
        let _held = &permit;
        if let (Ok(chunk), Some(reading)) = (&chunk, &mut reading) {
            reading.look(chunk);
        }
        chunk.map_err(reqwest::Error::without_url)
    });
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Compares without telling by its time how much was right.
fn is_expected(given: Option<&HeaderValue>, expected: &str) -> bool {
    let given = given.map_or(&b""[..], HeaderValue::as_bytes);
    let differing = given
        .iter()
        .zip(expected.as_bytes())
        .fold(0, |sum, (one, other)| sum | (one ^ other));
    given.len() == expected.len() && differing == 0
}

/// The URL of a path below the base; `None` when dots lead out of it.
fn below(base: &Url, path: &str, query: Option<&str>) -> Option<Url> {
    let root = base.path().trim_end_matches('/');
    let mut url = base.clone();
    url.set_path(&format!("{root}{path}"));
    url.set_query(query);
    url.path().starts_with(&format!("{root}/")).then_some(url)
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let passing = headers.iter().filter(|(name, _)| {
        !STOPPED_HEADERS.contains(name)
            && name.as_str() != "keep-alive"
            && name.as_str() != "proxy-connection"
    });
    passing
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A body that fails when it is larger than allowed.
fn limited(body: Body) -> impl Stream<Item = io::Result<Bytes>> {
    let mut left = REQUEST_LIMIT;
    body.into_data_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        left = left
            .checked_sub(chunk.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(chunk)
    })
}

/// An answer of the proxy itself, in the form that clients of models read: status, code, message.
struct Refusal(StatusCode, &'static str, &'static str);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, code, message) = self;
        let body = json!({ "error": { "message": message, "type": "proxy_error", "code": code } });
        (
            status,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelTarget, below, is_expected};

    #[test]
    fn dots_do_not_lead_out_of_the_base() {
        let base = "https://models.test/v1".parse().unwrap();
        let path = |path| below(&base, path, Some("a=b")).map(|url| url.to_string());
        assert_eq!(
            path("/chat/completions").as_deref(),
            Some("https://models.test/v1/chat/completions?a=b")
        );
        for out in [
            "/../admin",
            "/%2e%2e/admin",
            "/a/../../admin",
            "/..",
            "\\..\\..\\admin",
        ] {
            assert_eq!(path(out), None, "{out}");
        }
    }

    #[test]
    fn only_a_plain_http_url_is_a_base() {
        for wrong in [
            "",
            "models.test",
            "file:///etc",
            "https://u:p@m.test",
            "https://m.test?x",
            "https://m.test#x",
        ] {
            assert!(ModelTarget::new(wrong, "k").is_err(), "{wrong}");
        }
        assert!(ModelTarget::new("https://m.test/v1", "a\nb").is_err());
        assert!(
            !format!(
                "{:?}",
                ModelTarget::new("https://m.test", "canary").unwrap()
            )
            .contains("canary")
        );
    }

    #[test]
    fn a_prefix_of_the_placeholder_is_not_it() {
        let given = "Bearer abc".parse().unwrap();
        assert!(is_expected(Some(&given), "Bearer abc"));
        assert!(!is_expected(Some(&given), "Bearer abcd"));
        assert!(!is_expected(None, "Bearer abc"));
    }
}
