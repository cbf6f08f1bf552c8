//! What a new sandbox should be.

use crate::contract::check::Refused;
use crate::contract::types::{
    BackendModel, CreateSandbox, IdempotencyKey, NonEmptyText, SentBackend,
};
use crate::contract::{Secret, types, verify};

use super::state::Lifetime;

/// A request for a sandbox, built up field by field.
///
/// The decisions, none of them required:
///
/// 1. which agent works in it: [`backend`](Self::backend), [`model`](Self::model);
/// 2. what it finds: [`env`](Self::env), or more by [`From<CreateSandbox>`](CreateSandbox);
/// 3. how long it lives: [`lifetime`](Self::lifetime), [`idle_timeout`](Self::idle_timeout);
/// 4. how a repeated create is recognised: [`idempotency_key`](Self::idempotency_key).
///
/// A value that breaks a rule is kept aside and refused by `Client::create`, before any request.
///
/// ```
/// use tangle_sandbox::sandbox::{Lifetime, NewSandbox};
///
/// let request = NewSandbox::new()
///     .name("docs")
///     .backend("opencode")
///     .env("CI", "true")
///     .lifetime(Lifetime::from_minutes(30));
/// ```
#[derive(Clone, Debug, Default)]
pub struct NewSandbox {
    request: CreateSandbox,
    refused: Option<Refused>,
}

impl NewSandbox {
    /// A sandbox with the service's own settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// A name for people.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.request.name = self.checked("/name", name.parse());
        self
    }

    /// The type of the backend, as [`Client::list_backends`](super::Client::list_backends) names it.
    #[must_use]
    pub fn backend(mut self, backend: &str) -> Self {
        let parsed = self.checked("/backend/type", backend.parse());
        self.backend_mut().type_ = parsed;
        self
    }

    /// The model, as the router names it, for example `anthropic/claude-x`.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        let parsed = self.checked("/backend/model/model", model.parse());
        self.model_mut().model = parsed;
        self
    }

    /// An endpoint of one's own for the model, and its key.
    #[must_use]
    pub fn model_endpoint(mut self, base_url: &str, api_key: impl Into<Secret>) -> Self {
        let parsed: Option<NonEmptyText> = self.checked("/backend/model/baseUrl", base_url.parse());
        let model = self.model_mut();
        model.provider = "openai-compat".parse().ok();
        model.base_url = parsed;
        model.api_key = Some(api_key.into());
        self
    }

    /// One more environment variable of every process in the sandbox.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        if let Some(value) = self.checked(&format!("/env/{name}"), value.parse()) {
            self.request
                .env
                .get_or_insert_default()
                .insert(name.to_owned(), value);
        }
        self
    }

    /// How long the sandbox may live, used or not.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.request.max_lifetime_seconds =
            self.checked("/maxLifetimeSeconds", lifetime.seconds().try_into());
        self
    }

    /// How long the sandbox may stay unused before it is stopped.
    #[must_use]
    pub fn idle_timeout(mut self, lifetime: Lifetime) -> Self {
        self.request.idle_timeout_seconds =
            self.checked("/idleTimeoutSeconds", lifetime.seconds().try_into());
        self
    }

    /// One fact of the caller's own.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.request
            .metadata
            .get_or_insert_default()
            .insert(key.to_owned(), value.into());
        self
    }

    /// The key under which this create happens once: a repeat with the same key and request gives the same sandbox.
    /// Without one, each call of `Client::create` makes its own.
    #[must_use]
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.request.idempotency_key = Some(key);
        self
    }

    /// The request, when no rule is broken.
    ///
    /// # Errors
    ///
    /// The first rule that a given value, or two of them together, breaks.
    pub fn build(self) -> Result<CreateSandbox, Refused> {
        match self.refused {
            Some(refused) => Err(refused),
            None => {
                verify(&self.request)?;
                self.request.rules()?;
                Ok(self.request)
            }
        }
    }

    fn backend_mut(&mut self) -> &mut SentBackend {
        self.request.backend.get_or_insert_default()
    }

    fn model_mut(&mut self) -> &mut BackendModel {
        self.backend_mut().model.get_or_insert_default()
    }

    fn checked<T>(&mut self, path: &str, value: Result<T, Refused>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(refused) => {
                let refused = Refused::new(path, refused.rule().to_owned());
                self.refused.get_or_insert(refused);
                None
            }
        }
    }
}

impl From<CreateSandbox> for NewSandbox {
    /// Every field of the request, for what the methods here do not cover.
    fn from(request: types::CreateSandbox) -> Self {
        NewSandbox {
            request,
            refused: None,
        }
    }
}

impl From<&str> for NewSandbox {
    /// A sandbox with this backend.
    fn from(backend: &str) -> Self {
        NewSandbox::new().backend(backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_rule_is_refused_when_built_and_names_its_path() {
        let refused = NewSandbox::new()
            .name(&"n".repeat(16_385))
            .build()
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "/name: must have at most 16384 UTF-16 units"
        );
        let refused = NewSandbox::new()
            .model_endpoint("https://user:pw@host", "k")
            .build()
            .unwrap_err();
        assert_eq!(refused.path(), "/backend/model/baseUrl");
        assert!(!refused.to_string().contains("pw"));
    }

    #[test]
    fn wire_4_8_a_request_put_together_by_hand_is_checked_whole() {
        let network = types::Network {
            allow_list: Some(vec!["10.0.0.0/8".parse().unwrap(); 11]),
            ..types::Network::default()
        };
        let request = CreateSandbox {
            network: Some(network),
            ..CreateSandbox::default()
        };
        let refused = NewSandbox::from(request).build().unwrap_err();
        assert_eq!(refused.path(), "/network/allowList");
        let request = CreateSandbox {
            from_sandbox_id: Some("sbx_1".parse().unwrap()),
            ..CreateSandbox::default()
        };
        let refused = NewSandbox::from(request).build().unwrap_err();
        assert_eq!(refused.rule(), "`fromSandboxId` needs `fromSnapshot`");
    }

    #[test]
    fn a_key_never_shows() {
        let request = NewSandbox::new().model_endpoint("https://host", "sk-canary-0001");
        assert!(!format!("{request:?}").contains("canary"));
    }
}
