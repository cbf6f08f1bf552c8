//! What a [`Transport`] is built from. Every mistake is found here, before any request (wire protocol, 1.1).

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::http::Transport;
use super::retry::RetryPolicy;
use super::sse::MAX_FRAME_BYTES;
use crate::contract::{Secret, limits};

/// Why a transport cannot be built. Nothing was sent; no variant shows the value that it refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no default deployment.
    #[error(
        "the base URL is empty: give the URL of the deployment, for instance https://sandbox.tangle.tools"
    )]
    BaseEmpty,
    /// The base URL cannot be read.
    #[error("the base URL is not a URL")]
    BaseMalformed,
    /// The base URL has another scheme.
    #[error("the base URL does not start with http:// or https://")]
    BaseScheme,
    /// A credential in a URL reaches logs; the key has its own place.
    #[error("the base URL has a user name or password: remove it")]
    BaseUserInfo,
    /// The base URL has a query.
    #[error("the base URL has a query: remove everything from `?` on")]
    BaseQuery,
    /// The base URL has a fragment.
    #[error("the base URL has a fragment: remove everything from `#` on")]
    BaseFragment,
    /// There is no key.
    #[error("the API key is empty")]
    KeyEmpty,
    /// The key cannot stand in a header.
    #[error(
        "the API key has a character that cannot stand in a header: only visible ASCII is allowed"
    )]
    KeyCharacters,
    /// Neither the feature `ring` nor `aws-lc` is on, and the process installed no TLS provider of its own.
    #[error(
        "no TLS provider: turn on the feature `ring` or `aws-lc`, or install a rustls provider first"
    )]
    NoTlsProvider,
    /// A root certificate is not PEM.
    #[error("a root certificate is not PEM")]
    RootCertificate,
    /// The proxy's URL cannot be read.
    #[error("the proxy URL is not a URL")]
    Proxy,
    /// The HTTP client cannot be set up, for instance because the machine has no root certificates.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Builds a [`Transport`]: base URL and key, then what differs from the defaults.
#[derive(Clone)]
pub struct Builder {
    base: String,
    key: Secret,
    pub(super) time_limit: Duration,
    pub(super) idle_limit: Duration,
    pub(super) answer_limit: usize,
    pub(super) frame_limit: usize,
    pub(super) retry: RetryPolicy,
    roots: Vec<Vec<u8>>,
    proxy: Option<String>,
}

/// Base and proxy are not shown: before they are checked they may carry a password.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("api_key", &self.key)
            .field("time_limit", &self.time_limit)
            .field("idle_limit", &self.idle_limit)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// A builder with the defaults of the protocol.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<Secret>) -> Self {
        Self {
            base: base_url.into(),
            key: api_key.into(),
            time_limit: Duration::from_millis(limits::REQUEST_TIMEOUT_MS as u64),
            idle_limit: Duration::from_millis(limits::SSE_IDLE_TIMEOUT_MS as u64),
            answer_limit: limits::MAX_RUN_BODY,
            frame_limit: MAX_FRAME_BYTES,
            retry: RetryPolicy::default(),
            roots: Vec::new(),
            proxy: None,
        }
    }

    /// The limit of one JSON request, and of the time until a stream begins. 30 s by default; a call can have its own.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// A stream without any byte for so long is severed; comments count as bytes. 60 s by default.
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle_limit = limit;
        self
    }

    /// The largest success body, in bytes. 128 MiB by default; a call can have its own.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// The largest raw frame of a stream, in bytes: at most, and by default, 16 MiB.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes.min(MAX_FRAME_BYTES);
        self
    }

    /// How often calls are repeated; [`RetryPolicy::OFF`] turns it off.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Trusts a further root certificate, in PEM. The system's roots, or those named by `SSL_CERT_FILE`, stay trusted.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Sends everything through this proxy. Without it `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are honoured, except
    /// that a cleartext deployment on loopback is always reached directly.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Builds the transport.
    ///
    /// # Errors
    /// [`BuildError`], by the first rule that is broken.
    pub fn build(self) -> Result<Transport, BuildError> {
        let base = Base::parse(&self.base)?;
        let bearer = bearer(&self.key)?;
        let http = self.http(&base)?;
        if base.is_cleartext && !base.is_loopback {
            tracing::warn!(
                "the base URL is cleartext http and not on loopback: the API key can be read on the way"
            );
        }
        Ok(Transport::new(self, base, bearer, http))
    }

    pub(super) fn key(&self) -> &Secret {
        &self.key
    }

    fn http(&self, base: &Base) -> Result<reqwest::Client, BuildError> {
        install_tls_provider()?;
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("tangle-sandbox-rust/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false);
        let mut roots = Vec::new();
        for pem in &self.roots {
            let read = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|_| BuildError::RootCertificate)?;
            if read.is_empty() {
                return Err(BuildError::RootCertificate);
            }
            roots.extend(read);
        }
        match &self.proxy {
            Some(url) => {
                let proxy = reqwest::Proxy::all(url).map_err(|_| BuildError::Proxy)?;
                http = http.no_proxy().proxy(proxy);
            }
            // No TLS and no proxy can be on this way: the machine's roots are not read.
            None if base.is_cleartext && base.is_loopback => {
                http = http.no_proxy().tls_certs_only(roots.drain(..));
            }
            None => {}
        }
        if !roots.is_empty() {
            http = http.tls_certs_merge(roots);
        }
        http.build()
            .map_err(|error| BuildError::Http(error.without_url().into()))
    }
}

/// A base URL that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Without trailing slashes.
    pub text: String,
    /// The same, parsed.
    pub url: Url,
    is_cleartext: bool,
    is_loopback: bool,
}

impl Base {
    pub(super) fn parse(base: &str) -> Result<Self, BuildError> {
        let base = base.trim();
        if base.is_empty() {
            return Err(BuildError::BaseEmpty);
        }
        let url = Url::parse(base).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => BuildError::BaseScheme,
            _ => BuildError::BaseMalformed,
        })?;
        let is_cleartext = match url.scheme() {
            "http" => true,
            "https" => false,
            _ => return Err(BuildError::BaseScheme),
        };
        let authority = base.split_once("//").map_or(base, |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
            return Err(BuildError::BaseUserInfo);
        }
        if url.query().is_some() {
            return Err(BuildError::BaseQuery);
        }
        if url.fragment().is_some() {
            return Err(BuildError::BaseFragment);
        }
        let host = url.host_str().ok_or(BuildError::BaseMalformed)?;
        let is_loopback = is_loopback(host);
        Ok(Self {
            text: url.as_str().trim_end_matches('/').to_owned(),
            url,
            is_cleartext,
            is_loopback,
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

fn bearer(key: &Secret) -> Result<HeaderValue, BuildError> {
    let text = key.expose();
    if text.trim().is_empty() {
        return Err(BuildError::KeyEmpty);
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BuildError::KeyCharacters);
    }
    let mut bearer =
        HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| BuildError::KeyCharacters)?;
    bearer.set_sensitive(true);
    Ok(bearer)
}

/// A provider that the process installed by itself is kept.
fn install_tls_provider() -> Result<(), BuildError> {
    use rustls::crypto::CryptoProvider;
    if CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    #[cfg(feature = "ring")]
    let provider = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "aws-lc", not(feature = "ring")))]
    let provider = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(any(feature = "ring", feature = "aws-lc")))]
    let provider: Option<CryptoProvider> = None;
    // Losing the race against another thread leaves a provider installed as well.
    let _ = provider.ok_or(BuildError::NoTlsProvider)?.install_default();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_1_1_trailing_slashes_change_nothing() {
        for base in ["https://h", "https://h/", "https://h///", " https://h/ "] {
            assert_eq!(Base::parse(base).unwrap().text, "https://h");
        }
        assert_eq!(Base::parse("http://h:1/a//").unwrap().text, "http://h:1/a");
    }

    #[test]
    fn loopback_is_recognised() {
        for (base, expected) in [
            ("http://localhost:1", true),
            ("http://a.localhost", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Base::parse(base).unwrap().is_loopback, expected, "{base}");
        }
    }
}
