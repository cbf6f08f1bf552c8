//! Sends calls and reads their answers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Method, Request, Url};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::budget::Budget;
use super::builder::{Base, BuildError, Builder};
use super::call::Call;
use super::code::Code;
use super::envelope::{self, MAX_ERROR_BODY, Refused, payload};
use super::error::{Error, Refusal};
use super::retry::{Plan, read_retry_after, waits_for};
use super::sse::Decoder;
use super::stream::EventStream;
use crate::contract::Secret;
use crate::contract::routes;

/// How long the body of a refusal is waited for once its status is known.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// The client's way to one deployment. Clones share connections, limits and the retry budget.
#[derive(Clone)]
pub struct Transport {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub http: reqwest::Client,
    pub base: Base,
    pub bearer: HeaderValue,
    pub options: Builder,
    budget: Budget,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport")
            .field("base_url", &self.base_url())
            .field("api_key", self.inner.options.key())
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// A transport with the defaults of the protocol.
    ///
    /// # Errors
    /// [`BuildError`] when the base URL or the key is not usable.
    pub fn connect(
        base_url: impl Into<String>,
        api_key: impl Into<Secret>,
    ) -> Result<Self, BuildError> {
        Self::builder(base_url, api_key).build()
    }

    /// A builder for the deployment at `base_url`, given without `/v1`.
    pub fn builder(base_url: impl Into<String>, api_key: impl Into<Secret>) -> Builder {
        Builder::new(base_url, api_key)
    }

    pub(super) fn new(
        options: Builder,
        base: Base,
        bearer: HeaderValue,
        http: reqwest::Client,
    ) -> Self {
        let budget = Budget::new();
        let inner = Inner {
            http,
            base,
            bearer,
            options,
            budget,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The base URL, without trailing slashes.
    pub fn base_url(&self) -> &str {
        &self.inner.base.text
    }

    /// Sends a call and reads the value of its success envelope (wire protocol, 3.1).
    ///
    /// # Errors
    /// [`Error`]; `PROTOCOL_ERROR` when the answer is not the JSON of a `T`.
    pub async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let body = self.whole(&call).await?;
        parse(&call, &body)
    }

    /// As [`Transport::json`], but an empty success body is `None`.
    ///
    /// # Errors
    /// As [`Transport::json`].
    pub async fn json_or_empty<T: DeserializeOwned>(&self, call: Call) -> Result<Option<T>, Error> {
        let body = self.whole(&call).await?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        parse(&call, &body).map(Some)
    }

    /// Sends a call whose success says everything; its body is not looked at.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn empty(&self, call: Call) -> Result<(), Error> {
        self.bytes(call).await.map(drop)
    }

    /// Sends a call and gives the success body as it is, envelope included.
    ///
    /// # Errors
    /// [`Error`]; `PROTOCOL_ERROR` when the body is larger than the limit.
    pub async fn bytes(&self, call: Call) -> Result<Bytes, Error> {
        self.whole(&call).await
    }

    /// Opens a stream of events. `None` is an answer without a body, 204 or an empty 200: nothing comes after the
    /// cursor (wire protocol, 7.6).
    ///
    /// The time limit covers the wait for the response's headers; after that the idle limit counts.
    ///
    /// # Errors
    /// [`Error`]; `PROTOCOL_ERROR` when the answer is not a stream of events.
    pub async fn stream(&self, call: Call) -> Result<Option<EventStream>, Error> {
        let plan = self.plan(&call);
        plan.run(|left| self.open(&call, self.limit(&call, left)))
            .await
    }

    fn plan(&self, call: &Call) -> Plan<'_> {
        Plan {
            policy: call.retry.unwrap_or(self.inner.options.retry),
            repeat: call.repeat,
            waits: waits_for(call.route.name),
            deadline: call
                .deadline
                .and_then(|deadline| Instant::now().checked_add(deadline)),
            budget: &self.inner.budget,
        }
    }

    /// The time limit of one attempt when `left` is left to the caller's deadline.
    fn limit(&self, call: &Call, left: Option<Duration>) -> Duration {
        let limit = call.time_limit.unwrap_or(self.inner.options.time_limit);
        left.map_or(limit, |left| left.min(limit))
    }

    /// All attempts, up to a whole success body.
    async fn whole(&self, call: &Call) -> Result<Bytes, Error> {
        let plan = self.plan(call);
        plan.run(|left| self.attempt(call, self.limit(call, left)))
            .await
    }

    /// One attempt to open a stream.
    async fn open(&self, call: &Call, limit: Duration) -> Result<Option<EventStream>, Error> {
        let sent = timeout(limit, self.send(call)).await;
        let answer = self.accept(call, sent, limit).await?;
        if answer.status() == 204 || answer.content_length() == Some(0) {
            return Ok(None);
        }
        let content_type = answer.headers().get(CONTENT_TYPE);
        if !content_type.is_some_and(is_event_stream) {
            return Err(call.protocol("the answer is not a stream of events"));
        }
        let options = &self.inner.options;
        Ok(Some(EventStream::new(
            answer,
            Decoder::new(options.frame_limit),
            options.idle_limit,
            call.failure(Code::NetworkError, "the stream was cut"),
        )))
    }

    /// One attempt, up to the whole success body.
    async fn attempt(&self, call: &Call, limit: Duration) -> Result<Bytes, Error> {
        let started = Instant::now();
        let sent = timeout(limit, self.send(call)).await;
        let mut answer = self.accept(call, sent, limit).await?;
        let most = call.answer_limit.unwrap_or(self.inner.options.answer_limit);
        let left = limit.saturating_sub(started.elapsed());
        match timeout(left, read(&mut answer, most)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Cut::TooLarge)) => Err(call.protocol("the answer is larger than the limit")),
            Ok(Err(Cut::Http(error))) => Err(call.network(error)),
            Err(_) => Err(call.expired(limit)),
        }
    }

    async fn send(&self, call: &Call) -> Result<reqwest::Response, Error> {
        let request = self.request(call)?;
        let sent = self.inner.http.execute(request).await;
        sent.map_err(|error| call.network(error))
    }

    fn request(&self, call: &Call) -> Result<Request, Error> {
        let target = call.target.as_ref().map_err(|refusal| *refusal)?;
        let base = &self.inner.base.text;
        let mut url = String::with_capacity(base.len() + target.len());
        url.push_str(base);
        url.push_str(target);
        let url = Url::parse(&url).map_err(|_| Refusal::ForeignOrigin)?;
        let method = match call.route.method {
            routes::Method::Get => Method::GET,
            routes::Method::Post => Method::POST,
            routes::Method::Put => Method::PUT,
            routes::Method::Patch => Method::PATCH,
            routes::Method::Delete => Method::DELETE,
        };
        let sends_a_body = !matches!(method, Method::GET | Method::DELETE);
        let mut request = Request::new(method, url);
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.inner.bearer.clone());
        let accept = match call.route.stream {
            true => HeaderValue::from_static("text/event-stream"),
            false => HeaderValue::from_static("*/*"),
        };
        headers.insert(ACCEPT, accept);
        if let Some(body) = &call.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.clone().into());
        } else if sends_a_body {
            // An empty body has a length too; some proxies answer 411 without it.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(request)
    }

    /// Gives an answer with a success status; makes the typed error of any other.
    async fn accept(
        &self,
        call: &Call,
        sent: Result<Result<reqwest::Response, Error>, tokio::time::error::Elapsed>,
        limit: Duration,
    ) -> Result<reqwest::Response, Error> {
        let mut answer = sent.map_err(|_| call.expired(limit))??;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let body = read_error(&mut answer, limit.min(ERROR_BODY_WAIT)).await;
        let header = |name| answer.headers().get(name)?.to_str().ok();
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs().cast_signed());
        let refused = Refused {
            route: Some(call.route),
            method: call.route.method.as_str(),
            path: call.path(),
            status: answer.status().as_u16(),
            retry_after: header(RETRY_AFTER).and_then(|value| read_retry_after(value, now)),
            request_id: header(HeaderName::from_static("x-request-id")),
            body: &body,
        };
        Err(envelope::error(&refused, self.inner.options.key()))
    }
}

/// Why a body was not read to its end.
pub(super) enum Cut {
    Http(reqwest::Error),
    TooLarge,
}

/// The whole body, if it is not larger than `limit` bytes. A body of one piece is not copied.
pub(super) async fn read(answer: &mut reqwest::Response, limit: usize) -> Result<Bytes, Cut> {
    let announced = answer.content_length();
    if announced.is_some_and(|bytes| bytes > limit as u64) {
        return Err(Cut::TooLarge);
    }
    let Some(first) = answer.chunk().await.map_err(Cut::Http)? else {
        return Ok(Bytes::new());
    };
    let mut whole: Option<Vec<u8>> = None;
    while let Some(chunk) = answer.chunk().await.map_err(Cut::Http)? {
        let whole = whole.get_or_insert_with(|| first.to_vec());
        if whole.len() + chunk.len() > limit {
            return Err(Cut::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
    match whole {
        Some(whole) => Ok(whole.into()),
        None if first.len() > limit => Err(Cut::TooLarge),
        None => Ok(first),
    }
}

/// The first 64 KiB of the body of a refusal, or what came of it in time.
async fn read_error(answer: &mut reqwest::Response, wait: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < MAX_ERROR_BODY
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            let room = MAX_ERROR_BODY - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
    };
    // A status says enough when its body does not come.
    let _ = timeout(wait, reading).await;
    body
}

fn is_event_stream(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end]
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
}

fn parse<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(payload(body, call.route.answer))
        .map_err(|_| call.protocol("the answer is not the JSON that this route promises"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send<T: Send>(value: T) -> T {
        value
    }

    #[test]
    fn calls_can_be_spawned() {
        let transport = Transport::connect("http://127.0.0.1:1", "key").unwrap();
        let call = || Call::new(&routes::HEALTH, &[]);
        drop(is_send(transport.json::<serde_json::Value>(call())));
        drop(is_send(
            transport.json_or_empty::<serde_json::Value>(call()),
        ));
        drop(is_send(transport.empty(call())));
        drop(is_send(transport.stream(call())));
        drop(is_send(transport.fetch("GET", "/", &[], None)));
    }
}
