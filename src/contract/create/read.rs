//! A create input from JSON: its shape, and what each refusal of it means.

use serde_json::Value;

use super::{CHECKPOINT_MARKER, CREDENTIALS_MARKER, Refusal};
use crate::contract::attachments;
use crate::contract::check::Refused;
use crate::contract::from_value;
use crate::contract::types::{AgentProfile, CreateInput, CredentialSource, ProfileChoice};

/// Reads a create input: its shape, its lists of names, its attachments beside its profile.
///
/// # Errors
///
/// [`Refusal`], with the code of the field.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::create;
///
/// let code = |input| create::read(input).unwrap_err().code();
/// assert_eq!(code(json!({ "profile": {}, "secrets": { "TOKEN": "value" } })), "inline-secrets");
/// assert_eq!(code(json!({ "profile": {}, "resources": { "diskMb": 1500 } })), "resources");
/// ```
pub fn read(input: Value) -> Result<CreateInput, Refusal> {
    let values = input.get("secrets").is_some_and(Value::is_object);
    let input: CreateInput = from_value(input).map_err(|refused| meaning(refused, values))?;
    if let Some(attachments) = &input.runtime_attachments {
        attachments.beside(input.inline_profile())?;
    }
    Ok(input)
}

impl CreateInput {
    /// Who pays for the model, asked before anything is mapped: a profile that is only named counts as managed. Metadata that
    /// are the provider's own are refused with it (credentials, 3.2).
    ///
    /// # Errors
    ///
    /// `credential_intent_invalid`, `reserved-metadata`.
    pub fn credential_source(&self) -> Result<CredentialSource, Refusal> {
        let source = match self.inline_profile() {
            Some(profile) => profile.credential_source()?,
            None => CredentialSource::Managed,
        };
        let given = |key: &&str| {
            let metadata = self.metadata.as_ref();
            metadata.is_some_and(|metadata| metadata.contains_key(*key))
        };
        match [CREDENTIALS_MARKER, CHECKPOINT_MARKER]
            .into_iter()
            .find(given)
        {
            Some(key) => Err(Refusal::ReservedMetadata { key }),
            None => Ok(source),
        }
    }

    /// The profile, unless it is only named.
    pub fn inline_profile(&self) -> Option<&AgentProfile> {
        match &self.profile {
            ProfileChoice::AgentProfile(profile) => Some(profile),
            ProfileChoice::Identifier(_) => None,
        }
    }
}

/// What a refusal of the schema means for a create.
fn meaning(refused: Refused, secret_values: bool) -> Refusal {
    let path = refused.path().to_owned();
    let mut steps = path.split('/').skip(1);
    let first = steps.next().unwrap_or_default();
    let options = first == "providerOptions"
        || (matches!(first, "workspace" | "resources") && steps.next() == Some("providerOptions"));
    if options {
        return Refusal::ProviderOptions(refused);
    }
    match first {
        "" if !refused.unknown_fields().is_empty() => Refusal::UnknownField(refused),
        // Nothing else has to be there.
        "" if refused.keyword() == Some("required") => Refusal::Profile(refused),
        "profile" => Refusal::Profile(refused),
        "runtimeAttachments" => {
            let within = refused.clone().within("/runtimeAttachments");
            attachments::Refusal::Invalid(within.unwrap_or(refused)).into()
        }
        "resources" => Refusal::Resources(refused),
        "workspace" => Refusal::Workspace(refused),
        "secrets" if secret_values => Refusal::InlineSecrets,
        "secrets" => Refusal::Secrets(refused),
        "metadata" => Refusal::Metadata(refused),
        "name" => Refusal::Name(refused),
        "backend" => Refusal::Backend(refused),
        "env" => Refusal::Env(refused),
        "idempotencyKey" => Refusal::IdempotencyKey(refused),
        "billingOwner" => Refusal::BillingOwner(refused),
        "egress" => Refusal::Egress(refused),
        _ => Refusal::Input(refused),
    }
}

#[cfg(test)]
mod tests;
