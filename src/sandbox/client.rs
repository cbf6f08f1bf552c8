//! The client of one deployment.

use std::time::Duration;

use bytes::Bytes;

use crate::contract::Secret;
use crate::contract::routes;
use crate::contract::types::{
    BackendCatalog, BackendEntry, CreateSandbox, Health, IdempotencyKey, SandboxId, SandboxRecord,
};
use crate::transport::{self, BuildError, Builder, Call, Repeat, Response, RetryPolicy, Transport};

use super::error::Error;
use super::handle::{AnySandbox, Sandbox};
use super::list::{ListOptions, Listing};
use super::new_sandbox::NewSandbox;
use super::state::{Deadline, Provisioning};

/// The way to one deployment of the service, hosted or embedded. Clones share connections.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tangle_sandbox::sandbox::{Client, NewSandbox};
///
/// let client = Client::builder("https://sandbox.example", std::env::var("TANGLE_API_KEY")?).build()?;
/// let sandbox = client.create(NewSandbox::new().backend("opencode")).await?.wait_ready().await?;
/// let result = sandbox.prompt("write a haiku to haiku.txt").await?;
/// println!("{}", result.text());
/// println!("{}", sandbox.read_text("haiku.txt").await?);
/// sandbox.delete().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
}

/// The settings of a [`Client`]. There is no default base URL.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    builder: Builder,
}

impl ClientBuilder {
    /// How long one JSON request may take; 30 seconds unless set. Streams are limited by the idle time instead.
    pub fn request_deadline(self, deadline: Deadline) -> Self {
        ClientBuilder {
            builder: self.builder.time_limit(deadline.get()),
        }
    }

    /// How long a stream may be without a byte, comments included, before it counts as cut; 60 seconds unless set.
    pub fn stream_idle(self, idle: Duration) -> Self {
        ClientBuilder {
            builder: self.builder.idle_limit(idle),
        }
    }

    /// The largest raw frame of a stream in bytes; 16 MiB unless set, and never more.
    pub fn frame_limit(self, bytes: usize) -> Self {
        ClientBuilder {
            builder: self.builder.frame_limit(bytes),
        }
    }

    /// How often a call that may be repeated is repeated.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        ClientBuilder {
            builder: self.builder.retry(policy),
        }
    }

    /// One more root certificate, in PEM, for a company's proxy or a deployment of one's own.
    pub fn root_certificate(self, pem: impl Into<Vec<u8>>) -> Self {
        ClientBuilder {
            builder: self.builder.root_certificate(pem),
        }
    }

    /// A proxy for every request.
    pub fn proxy(self, url: impl Into<String>) -> Self {
        ClientBuilder {
            builder: self.builder.proxy(url),
        }
    }

    /// The client. This makes no request.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for a base URL that is empty, not http or https, or has credentials, a query or a fragment; for an
    /// empty key.
    pub fn build(self) -> Result<Client, BuildError> {
        Ok(Client {
            transport: self.builder.build()?,
        })
    }
}

impl Client {
    /// A client of the deployment at `base_url`, given without `/v1`.
    pub fn builder(base_url: impl Into<String>, api_key: impl Into<Secret>) -> ClientBuilder {
        ClientBuilder {
            builder: Transport::builder(base_url, api_key),
        }
    }

    /// The base URL, without trailing slashes.
    pub fn base_url(&self) -> &str {
        self.transport.base_url()
    }

    /// Creates a sandbox. The handle comes as soon as the service has accepted it; `wait_ready` does the waiting.
    ///
    /// The call has an idempotency key, its own or the request's, so that a repeat after a lost answer makes no second
    /// sandbox.
    ///
    /// # Errors
    ///
    /// A broken rule of the request (nothing was sent), `IDEMPOTENCY_CONFLICT`, `NOT_SUPPORTED` with the field that the
    /// deployment cannot honour, `QUOTA_EXCEEDED`. See the wire protocol, 4.3.
    pub async fn create(
        &self,
        request: impl Into<NewSandbox>,
    ) -> Result<Sandbox<Provisioning>, Error> {
        let mut request: CreateSandbox = request.into().build()?;
        if request.idempotency_key.is_none() {
            let key = format!("create-{}", uuid::Uuid::new_v4());
            request.idempotency_key = Some(IdempotencyKey::new(key)?);
        }
        let call = Call::new(&routes::SANDBOXES_CREATE, &[])
            .body(&request)
            .repeat(Repeat::Keyed)
            .time_limit(Duration::from_millis(
                crate::contract::limits::READY_TIMEOUT_MS as u64,
            ));
        let record: SandboxRecord = self.transport.json(call).await?;
        Ok(Sandbox::new(&self.transport, record))
    }

    /// The sandbox with this id, in whatever state it is; `None` when there is none.
    ///
    /// # Errors
    ///
    /// Any but `NOT_FOUND`.
    pub async fn get(&self, id: &SandboxId) -> Result<Option<AnySandbox>, Error> {
        let call = Call::new(&routes::SANDBOXES_GET, &[("id", id)]);
        match self.transport.json::<SandboxRecord>(call).await {
            Ok(record) if record.id != *id => Err(Error::protocol(
                "get",
                "the answer is about another sandbox",
            )),
            Ok(mut record) => {
                // A receipt tells of the create call; a record that is only read has none.
                record.create_receipt = None;
                Ok(Some(AnySandbox::new(&self.transport, record)))
            }
            Err(transport::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The sandboxes of the account, newest first, read page by page as they are asked for. The stream may end with an
    /// error after it has yielded some; [`inventory`](Self::inventory) is all or nothing.
    pub fn list(&self, options: ListOptions) -> Listing {
        Listing::new(self.transport.clone(), options)
    }

    /// All sandboxes of the account, or an error: never a part.
    ///
    /// # Errors
    ///
    /// When a page cannot be read, has more entries than asked for, a malformed entry, or an id that was seen before.
    pub async fn inventory(&self, options: ListOptions) -> Result<Vec<SandboxRecord>, Error> {
        let mut listing = self.list(options);
        let mut records = Vec::new();
        while let Some(record) = listing.next().await {
            records.push(record?);
        }
        Ok(records)
    }

    /// The backends that the deployment offers, unknown types included.
    ///
    /// # Errors
    ///
    /// As the call; `INVALID_BACKEND_REGISTRY` when the answer is no catalogue.
    pub async fn list_backends(&self) -> Result<Vec<BackendEntry>, Error> {
        let call = Call::new(&routes::BACKENDS, &[]);
        match self.transport.json::<BackendCatalog>(call).await {
            Ok(catalog) => Ok(catalog.backends),
            Err(error @ transport::Error::Protocol { .. }) => Err(Error::Catalog(Box::new(error))),
            Err(error) => Err(error.into()),
        }
    }

    /// The backend of this type; `None` when the deployment does not offer it.
    ///
    /// # Errors
    ///
    /// As [`list_backends`](Self::list_backends).
    pub async fn backend(&self, backend: &str) -> Result<Option<BackendEntry>, Error> {
        let backends = self.list_backends().await?;
        Ok(backends.into_iter().find(|entry| entry.type_ == backend))
    }

    /// Whether the deployment is up.
    ///
    /// # Errors
    ///
    /// As the call.
    pub async fn health(&self) -> Result<Health, Error> {
        Ok(self.transport.json(Call::new(&routes::HEALTH, &[])).await?)
    }

    /// One raw request to any path of the deployment, with the bearer; the answer is a value, whatever its status.
    ///
    /// # Errors
    ///
    /// A path that is not on the base URL's origin is refused before anything is sent; else `NETWORK_ERROR`, `TIMEOUT`,
    /// or `PROTOCOL_ERROR` when the body is too large.
    pub async fn fetch(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        Ok(self.transport.fetch(method, path, headers, body).await?)
    }
}
