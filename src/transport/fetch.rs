//! Raw calls: any path below the base URL, the answer as a value.

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};
use tokio::time::timeout;

use super::code::Code;
use super::envelope;
use super::error::{Error, Refusal};
use super::http::{Cut, Transport, read};

/// The answer of a raw call, whatever its status.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body, whole.
    pub body: Bytes,
    headers: HeaderMap,
}

impl Response {
    /// The first header of this name, if it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers with visible ASCII values.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// Sends one raw request with the bearer and gives the answer as a value, whatever its status. `path` starts with
    /// `/` and is taken below the base URL. The body is sent as JSON unless a header says otherwise.
    ///
    /// # Errors
    /// [`Refusal`] for a path that is not on the base's origin, a bad method or header: nothing is sent. Else `TIMEOUT`,
    /// `NETWORK_ERROR`, or `PROTOCOL_ERROR` when the body is larger than the client's limit.
    pub async fn fetch(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        let request = self.raw_request(method, path, headers, body)?;
        let method = request.method().clone();
        let path = request.url().path().to_owned();
        let failure = |code, message| envelope::local(None, method.as_str(), &path, code, message);
        let limit = self.inner.options.time_limit;
        let answer = timeout(limit, async {
            let mut answer = self.inner.http.execute(request).await.map_err(Cut::Http)?;
            let body = read(&mut answer, self.inner.options.answer_limit).await?;
            Ok(Response {
                status: answer.status().as_u16(),
                headers: std::mem::take(answer.headers_mut()),
                body,
            })
        });
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Cut::Http(error))) => Err(Error::Network {
                at: failure(Code::NetworkError, "no response"),
                source: error.without_url().into(),
            }),
            Ok(Err(Cut::TooLarge)) => Err(Error::Protocol {
                at: failure(Code::ProtocolError, "the answer is larger than the limit"),
            }),
            Err(_) => Err(Error::Timeout {
                at: failure(Code::Timeout, "no answer within the time limit"),
                limit,
            }),
        }
    }

    fn raw_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Request, Refusal> {
        if !path.starts_with('/') {
            return Err(Refusal::PathNotAbsolute);
        }
        let base = &self.inner.base;
        // `//host` and `/\host` name another host for a reader of relative URLs: they are refused, not sent as paths.
        if path[1..].starts_with(['/', '\\']) {
            return Err(Refusal::ForeignOrigin);
        }
        let url =
            Url::parse(&format!("{}{path}", base.text)).map_err(|_| Refusal::ForeignOrigin)?;
        let prefix = base.url.path().trim_end_matches('/');
        let below = url.path().strip_prefix(prefix);
        if url.origin() != base.url.origin() || !below.is_some_and(|rest| rest.starts_with('/')) {
            return Err(Refusal::ForeignOrigin);
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| Refusal::Method)?;
        let mut request = Request::new(method, url);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refusal::Header)?;
            let value = HeaderValue::from_str(value).map_err(|_| Refusal::Header)?;
            request.headers_mut().append(name, value);
        }
        if let Some(body) = body {
            request
                .headers_mut()
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.into());
        }
        let bearer = self.inner.bearer.clone();
        request.headers_mut().insert(AUTHORIZATION, bearer);
        Ok(request)
    }
}
