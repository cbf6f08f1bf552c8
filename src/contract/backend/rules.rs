//! The rules between the fields of a block (core contracts, 5.2), in their order.

use serde_json::Value;

use super::{Refusal, normalise};
use crate::contract::check::Refused;
use crate::contract::types::{
    AgentProfile, BackendAuthMode, BackendConfig, BackendModel, CliAuth, CredentialSource, Harness,
    RuntimeAttachments, SentBackend, SentProfile,
};
use crate::contract::{bounds, from_value, secret};

/// Reads a block as a caller gives it: flat spellings first, then its shape, then the rules between its fields.
///
/// # Errors
///
/// [`Refusal`] with the first rule that is broken.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::backend;
///
/// let login = json!({ "account": "a", "secretEnv": "CODEX", "format": "token" });
/// let refusal = backend::read(json!({ "type": "codex", "model": { "cliAuth": login } })).unwrap_err();
/// assert_eq!(refusal.code(), "credentials_channel_unsupported");
/// ```
pub fn read(mut block: Value) -> Result<BackendConfig, Refusal> {
    normalise(&mut block)?;
    let block: BackendConfig = from_value(block)?;
    block.rules()?;
    Ok(block)
}

impl BackendConfig {
    /// The rules between fields: native logins and the profile, attachments, the bound of the whole.
    ///
    /// # Errors
    ///
    /// [`Refusal`] with the first rule that is broken.
    pub fn rules(&self) -> Result<(), Refusal> {
        let parts = Parts {
            backend: self.type_.as_deref(),
            profile: self.profile.as_ref(),
            model: self.model.as_ref(),
            attachments: self.runtime_attachments.as_ref(),
        };
        parts.rules()?;
        let value = secret::in_body(|| serde_json::to_value(self))
            .map_err(|_| Refused::new("", "is no JSON"))?;
        Ok(bounds::profile_at("backend", &value, &["profile"])?)
    }
}

impl SentBackend {
    /// The rules between fields: the endpoint of the model, native logins and the profile, attachments.
    ///
    /// # Errors
    ///
    /// [`Refusal`] with the first rule that is broken.
    pub fn rules(&self) -> Result<(), Refusal> {
        let url = self
            .model
            .as_ref()
            .and_then(|model| model.base_url.as_ref());
        if url.is_some_and(|url| !is_plain_endpoint(url)) {
            let rule = "must be an http or https URL without credentials, query or fragment";
            return Err(Refused::new("/model/baseUrl", rule).into());
        }
        let profile = match &self.profile {
            Some(SentProfile::AgentProfile(profile)) => Some(profile),
            // What a name stands for is known where it was given.
            Some(SentProfile::ProfileName(_)) | None => None,
        };
        let parts = Parts {
            backend: self.type_.as_deref(),
            profile,
            model: self.model.as_ref(),
            attachments: self.runtime_attachments.as_ref(),
        };
        parts.rules()
    }
}

/// What of a block the rules look at.
struct Parts<'a> {
    backend: Option<&'a str>,
    profile: Option<&'a AgentProfile>,
    model: Option<&'a BackendModel>,
    attachments: Option<&'a RuntimeAttachments>,
}

impl Parts<'_> {
    fn rules(&self) -> Result<(), Refusal> {
        let intent = self.profile.map(AgentProfile::credential_intent);
        if let (Some(Ok(intent)), Some(field)) = (intent, self.model.and_then(native_login))
            && intent.is_explicit()
            && intent.source() == CredentialSource::Managed
        {
            return Err(Refusal::ManagedProfileNativeCredentials { field });
        }
        let source = intent.transpose()?.map(|intent| intent.source());
        if let Some(model) = self.model
            && let Some(login) = &model.cli_auth
        {
            self.login(model, login, source)?;
        }
        match self.attachments {
            Some(attachments) => Ok(attachments.beside(self.profile)?),
            None => Ok(()),
        }
    }

    /// The rules of a stored native login.
    fn login(
        &self,
        model: &BackendModel,
        login: &CliAuth,
        source: Option<CredentialSource>,
    ) -> Result<(), Refusal> {
        let Some(backend) = self.backend else {
            return Err(Refusal::TypeRequired);
        };
        if source.is_some_and(|source| source != CredentialSource::Subscription) {
            return Err(Refusal::IntentRequired);
        }
        let harness = self.profile.and_then(|profile| profile.harness);
        if harness.is_some_and(|harness| harness.to_string() != backend) {
            return Err(Refusal::HarnessMismatch);
        }
        let takes = |harness: Harness| harness.takes(login.format);
        if !backend.parse().is_ok_and(takes) {
            return Err(Refusal::ChannelUnsupported);
        }
        match other_credential(model) {
            Some(field) => Err(Refusal::MixedAuth { field }),
            None => Ok(()),
        }
    }
}

/// The field that brings a login of the caller's own.
fn native_login(model: &BackendModel) -> Option<&'static str> {
    if model.cli_auth.is_some() {
        Some("cliAuth")
    } else if model.auth_files.is_some() {
        Some("authFiles")
    } else if model.auth_mode == Some(BackendAuthMode::Oauth) {
        Some("authMode")
    } else {
        None
    }
}

/// The first credential of another kind than a stored login.
fn other_credential(model: &BackendModel) -> Option<&'static str> {
    let fields = [
        (model.api_key.is_some(), "apiKey"),
        (model.api_key_env.is_some(), "apiKeyEnv"),
        (model.base_url.is_some(), "baseUrl"),
        (model.auth_files.is_some(), "authFiles"),
    ];
    fields
        .into_iter()
        .find_map(|(given, field)| given.then_some(field))
}

/// An http or https URL without credentials, query or fragment (wire protocol, 4.5).
fn is_plain_endpoint(url: &str) -> bool {
    let Some(rest) = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
    else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    !host.is_empty() && !host.contains('@') && !rest.contains(['?', '#', '\\', ' '])
}

#[cfg(test)]
mod tests;
