//! What a caller's own mapping has to keep (provider runtime, 3.5; credentials, 3.5).

use serde_json::{Map, Value};

use super::{CHECKPOINT_MARKER, CREDENTIALS_MARKER, Mapping, Refusal, mapping};
use crate::contract::attachments;
use crate::contract::backend;
use crate::contract::check::Refused;
use crate::contract::types::{
    AgentProfile, CreateInput, CreateSandbox, CredentialSource, EgressMode, Identifier,
    NonEmptyText, SentProfile,
};
use crate::contract::{bounds, canonical, checks, from_value, limits};

/// The option that says whether the client writes the files of a profile itself; never sent.
const MATERIALISE: &str = "autoMaterializeProfileFiles";

/// What a mapping gave, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// The request.
    pub request: CreateSandbox,
    /// Whether the client takes the files of the profile out of the request and writes them itself; true unless the mapping
    /// says otherwise.
    pub materialise_files: bool,
}

/// Checks what a caller's own mapping gave for `input`: by the rules of the default mapping, then against the input. `selected`
/// is the reference of the credentials that the provider selected.
///
/// # Errors
///
/// `credential_intent_invalid` or `reserved-metadata` for the input itself; [`Refusal`] with the code of the field; `mapper-dropped-field`, `attachments_not_preserved`, `credential_source_changed` or
/// `credentials_metadata_reserved` for what differs from the input.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::create::{self, Mapping};
///
/// let mapping = Mapping { provider: "tangle-sandbox".parse()?, default_backend: None };
/// let input = create::read(json!({ "profile": { "name": "p" }, "idempotencyKey": "k" }))?;
/// let mapped = json!({ "backend": { "type": "pi", "profile": { "name": "p" } } });
/// let refusal = create::check_mapped(&mapping, &input, mapped, None).unwrap_err();
/// assert_eq!(refusal.code(), "mapper-dropped-field");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_mapped(
    mapping: &Mapping,
    input: &CreateInput,
    mapped: Value,
    selected: Option<&Value>,
) -> Result<Mapped, Refusal> {
    let asked = input.credential_source()?;
    let mapped = read(mapped)?;
    let request = &mapped.request;
    block(request)?;
    login(request)?;
    kept(input, asked, request)?;
    let receipt = request
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.get(CREDENTIALS_MARKER));
    if receipt
        .is_some_and(|receipt| !selected.is_some_and(|selected| canonical::same(receipt, selected)))
    {
        return Err(Refusal::CredentialMetadataReserved);
    }
    restore(mapping, input, request)?;
    Ok(mapped)
}

/// The shape of what a mapping gave.
fn read(mut mapped: Value) -> Result<Mapped, Refusal> {
    let refused = |path: &'static str, rule: &'static str| Refused::new(path, rule);
    let Some(members) = mapped.as_object_mut() else {
        return Err(Refusal::Input(refused("", "must be an object")));
    };
    let materialise_files = match members.remove(MATERIALISE) {
        None => true,
        Some(Value::Bool(materialise)) => materialise,
        Some(_) => {
            let path = "/autoMaterializeProfileFiles";
            return Err(Refusal::Input(refused(path, "must be true or false")));
        }
    };
    if materialise_files {
        bounds::profile_at("options", &mapped, &["backend", "profile"])?;
    } else {
        bounds::json("options", &mapped)?;
    }
    if mapped.get("providerOptions").is_some() {
        let rule = "must not be given";
        return Err(Refusal::ProviderOptions(refused("/providerOptions", rule)));
    }
    fields(&mapped)?;
    let request: CreateSandbox = from_value(mapped).map_err(meaning)?;
    Ok(Mapped {
        request,
        materialise_files,
    })
}

/// The fields whose rules are stricter than those of the wire.
fn fields(mapped: &Value) -> Result<(), Refusal> {
    let name = mapped.get("name").map(|name| match name.as_str() {
        Some(name) => NonEmptyText::new(name).map(drop),
        None => Err(Refused::new("", "must be a string")),
    });
    name.transpose()
        .map_err(|refused| Refusal::Name(refused.under("/name")))?;
    if let Some(env) = mapped.get("env") {
        let checked = checks::CHECK_ENVIRONMENT_VARIABLES.check(env);
        checked.map_err(|refused| Refusal::Env(refused.under("/env")))?;
    }
    match mapped.get("secrets") {
        None => {}
        Some(Value::Object(_)) => return Err(Refusal::InlineSecrets),
        Some(secrets) => {
            identifiers(secrets).map_err(|refused| Refusal::Secrets(refused.under("/secrets")))?
        }
    }
    if let Some(policy) = mapped.get("egressPolicy") {
        egress(policy).map_err(|refused| Refusal::Egress(refused.under("/egressPolicy")))?;
    }
    Ok(())
}

/// A list of at most 1,024 identifiers.
fn identifiers(list: &Value) -> Result<(), Refused> {
    let Some(list) = list.as_array() else {
        return Err(Refused::new("", "must be an array"));
    };
    if list.len() > limits::MAX_ARRAY {
        return Err(Refused::new(
            "",
            format!("must have at most {} items", limits::MAX_ARRAY),
        ));
    }
    for (index, item) in list.iter().enumerate() {
        let text = item
            .as_str()
            .ok_or_else(|| Refused::new("", "must be a string"));
        text.and_then(|text| Identifier::new(text).map(drop))
            .map_err(|refused| refused.under(&format!("/{index}")))?;
    }
    Ok(())
}

fn egress(policy: &Value) -> Result<(), Refused> {
    let mode = policy.get("mode").and_then(Value::as_str);
    let Some(Ok(mode)) = mode.map(str::parse::<EgressMode>) else {
        return Err(Refused::new("/mode", "must be open, strict or blocked"));
    };
    match policy.get("allowDomains") {
        Some(_) if mode != EgressMode::Strict => Err(Refused::new(
            "/allowDomains",
            "binds nothing outside of the mode `strict`",
        )),
        Some(domains) => identifiers(domains).map_err(|refused| refused.under("/allowDomains")),
        None => Ok(()),
    }
}

/// What a refusal of the wire's schema means for a mapping.
fn meaning(refused: Refused) -> Refusal {
    if let Some(refused) = refused.clone().within("/backend/runtimeAttachments") {
        return attachments::Refusal::Invalid(refused).into();
    }
    if let Some(refused) = refused.clone().within("/backend") {
        return Refusal::Block(refused.into());
    }
    match refused.path().split('/').nth(1) {
        None if !refused.unknown_fields().is_empty() => Refusal::UnknownField(refused),
        Some("idempotencyKey") => Refusal::IdempotencyKey(refused),
        Some("billingOwnerId") => Refusal::BillingOwner(refused),
        Some("egressPolicy") => Refusal::Egress(refused),
        Some("metadata") => Refusal::Metadata(refused),
        Some("resources") => Refusal::Resources(refused),
        _ => Refusal::Input(refused),
    }
}

/// The rules between the fields of the block, and the paths of its profile.
fn block(request: &CreateSandbox) -> Result<(), Refusal> {
    if let Some(block) = &request.backend {
        block.rules().map_err(|refusal| match refusal {
            backend::Refusal::Attachments(refusal) => refusal.into(),
            backend::Refusal::CredentialIntentInvalid(invalid) => invalid.into(),
            refusal => Refusal::Block(refusal),
        })?;
    }
    profile(request)
        .map_or(Ok(()), mapping::check_mounts)
        .map_err(Refusal::Unsupported)
}

fn profile(request: &CreateSandbox) -> Option<&AgentProfile> {
    match request.backend.as_ref()?.profile.as_ref()? {
        SentProfile::AgentProfile(profile) => Some(profile),
        SentProfile::ProfileName(_) => None,
    }
}

/// A stored login goes with a subscription profile, and its secret is granted and not hidden.
fn login(request: &CreateSandbox) -> Result<(), Refusal> {
    let model = request
        .backend
        .as_ref()
        .and_then(|block| block.model.as_ref());
    let Some(login) = model.and_then(|model| model.cli_auth.as_ref()) else {
        return Ok(());
    };
    if source(profile(request))? != CredentialSource::Subscription {
        return Err(Refusal::Block(backend::Refusal::IntentRequired));
    }
    let secret = login.secret_env.as_str();
    let granted = request.secrets.as_ref().and_then(Value::as_array);
    if !granted.into_iter().flatten().any(|name| name == secret) {
        return Err(Refusal::GrantMissing);
    }
    if request
        .env
        .as_ref()
        .is_some_and(|env| env.contains_key(secret))
    {
        return Err(Refusal::CredentialShadowed);
    }
    Ok(())
}

/// Who pays for the model; the platform, where there is no profile.
fn source(profile: Option<&AgentProfile>) -> Result<CredentialSource, Refusal> {
    match profile {
        Some(profile) => Ok(profile.credential_source()?),
        None => Ok(CredentialSource::Managed),
    }
}

/// What is taken over from the input as it is.
fn kept(
    input: &CreateInput,
    asked: CredentialSource,
    request: &CreateSandbox,
) -> Result<(), Refusal> {
    if request.idempotency_key != input.idempotency_key {
        return Err(Refusal::MapperDroppedField {
            field: "idempotencyKey",
        });
    }
    let block = request.backend.as_ref();
    attachments::preserved(
        input.runtime_attachments.as_ref(),
        block.and_then(|block| block.runtime_attachments.as_ref()),
    )?;
    if asked != source(profile(request))? {
        return Err(Refusal::CredentialSourceChanged);
    }
    let model = block.and_then(|block| block.model.as_ref());
    if asked == CredentialSource::Managed && model.is_some_and(|model| model.cli_auth.is_some()) {
        return Err(Refusal::ManagedProfileNativeCredentials);
    }
    Ok(())
}

/// A checkpoint of the input is restored whole, and no other one.
fn restore(mapping: &Mapping, input: &CreateInput, request: &CreateSandbox) -> Result<(), Refusal> {
    let checkpoint = input
        .workspace
        .as_ref()
        .and_then(|workspace| workspace.checkpoint.as_ref());
    if let Some(checkpoint) = checkpoint {
        mapping.own(checkpoint)?;
    }
    let id = checkpoint.map(|checkpoint| checkpoint.checkpoint_id.as_str());
    let source = checkpoint.map(|checkpoint| checkpoint.source.environment_id.as_str());
    let marker = |metadata: &Map<String, Value>| metadata.get(CHECKPOINT_MARKER).cloned();
    for (field, kept) in [
        ("fromSnapshot", request.from_snapshot.as_deref() == id),
        (
            "fromSandboxId",
            request.from_sandbox_id.as_deref() == source,
        ),
        (
            "metadata/tangleNativeResumeCheckpointId",
            request.metadata.as_ref().and_then(marker) == id.map(Value::from),
        ),
    ] {
        if !kept {
            return Err(Refusal::MapperDroppedField { field });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
