//! Why a create is refused.

use crate::contract::attachments;
use crate::contract::backend;
use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;
use crate::contract::profile::{CredentialIntentInvalid, ProfileRefusal};

/// A create that is refused before anything is made. It names a place and a rule, never a value. A repeat cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The input, or what a mapping gave, is no object or not what it should be as a whole.
    #[error(transparent)]
    Input(Refused),
    /// Some fields are unknown. All of them are named.
    #[error(transparent)]
    UnknownField(Refused),
    /// The profile is missing, malformed or too large.
    #[error(transparent)]
    Profile(Refused),
    /// The profile is only named. This provider resolves no names: give the profile itself.
    #[error("/profile: this provider takes a profile itself, not the name of one")]
    ProfileReference,
    /// A requested bound is malformed.
    #[error(transparent)]
    Resources(Refused),
    /// The workspace is malformed, or names two origins, or a checkpoint of another provider.
    #[error(transparent)]
    Workspace(Refused),
    /// The working directory is on the host, which this provider does not show.
    #[error("/workspace/cwd/base: this provider has only `repository`")]
    WorkspaceCwdBase,
    /// Options of a provider are given; this one has none. Give an empty object or nothing.
    #[error(transparent)]
    ProviderOptions(Refused),
    /// Secrets are given as values. Store them, and give the list of their names.
    #[error("/secrets: must be a list of names of stored secrets, never values")]
    InlineSecrets,
    /// The list of names of stored secrets is malformed.
    #[error(transparent)]
    Secrets(Refused),
    /// The metadata are no object or too large.
    #[error(transparent)]
    Metadata(Refused),
    /// A key of the metadata is the provider's own. Choose another.
    #[error("/metadata/{key}: is written by the provider only")]
    ReservedMetadata {
        /// The key.
        key: &'static str,
    },
    /// The name is empty or too long.
    #[error(transparent)]
    Name(Refused),
    /// The backend is no identifier.
    #[error(transparent)]
    Backend(Refused),
    /// An environment variable is malformed, or there are too many.
    #[error(transparent)]
    Env(Refused),
    /// The key is no identifier.
    #[error(transparent)]
    IdempotencyKey(Refused),
    /// The billing owner is no identifier.
    #[error(transparent)]
    BillingOwner(Refused),
    /// The egress is malformed, or has domains that would bind nothing.
    #[error(transparent)]
    Egress(Refused),
    /// The runtime attachments are refused.
    #[error(transparent)]
    Attachments(#[from] attachments::Refusal),
    /// The profile cannot be carried: the path of a mounted file is unsafe.
    #[error("/profile{0}")]
    Unsupported(ProfileRefusal),
    /// The profile says something about its credential source that is neither `managed` nor `subscription`.
    #[error("/profile{0}")]
    CredentialIntentInvalid(#[from] CredentialIntentInvalid),
    /// The profile says `subscription`, and no credentials are selected for it. Managed access never takes their place.
    #[error("/profile/model/metadata/credentialSource: `subscription` needs selected credentials")]
    CredentialsMissing,
    /// The key is that of another create. Nothing was made; use another key.
    #[error("the idempotency key belongs to another create")]
    IdempotencyConflict,
    /// A mapping does not keep a field of the input.
    #[error("the mapping must give `{field}` as the input does")]
    MapperDroppedField {
        /// The field of the request.
        field: &'static str,
    },
    /// A mapping changed who pays for the model.
    #[error("the mapping must keep the credential source of the profile")]
    CredentialSourceChanged,
    /// A mapping gave a managed profile a native login.
    #[error("the mapping must not give a managed profile a native login")]
    ManagedProfileNativeCredentials,
    /// A stored login needs its secret in the list of secrets.
    #[error("/secrets: must name the secret of `cliAuth`")]
    GrantMissing,
    /// An environment variable hides the secret of a stored login.
    #[error("/env: must not hold the secret of `cliAuth`")]
    CredentialShadowed,
    /// A mapping wrote the receipt of the selected credentials itself.
    #[error("/metadata/modelCredentials: must be what was selected")]
    CredentialMetadataReserved,
    /// A mapped backend block is refused.
    #[error("the backend block: {0}")]
    Block(backend::Refusal),
    /// What a mapping gave is too large as a whole.
    #[error(transparent)]
    Bound(#[from] BoundError),
    /// This provider does not restore checkpoints.
    #[error("this provider does not restore workspace checkpoints")]
    CheckpointUnsupported,
    /// This provider, or the backend, takes no runtime attachments.
    #[error("this provider takes no runtime attachments for this backend")]
    AttachmentsUnsupported,
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::UnknownField(_) => "unknown-field",
            Self::Profile(_) => "profile",
            Self::ProfileReference => "profile-reference",
            Self::Resources(_) => "resources",
            Self::Workspace(_) => "workspace",
            Self::WorkspaceCwdBase => "workspace-cwd-base",
            Self::ProviderOptions(_) => "provider-options",
            Self::InlineSecrets => "inline-secrets",
            Self::Secrets(_) => "secrets",
            Self::Metadata(_) => "metadata",
            Self::ReservedMetadata { .. } => "reserved-metadata",
            Self::Name(_) => "name",
            Self::Backend(_) => "backend",
            Self::Env(_) => "env",
            Self::IdempotencyKey(_) => "idempotency-key",
            Self::BillingOwner(_) => "billing-owner",
            Self::Egress(_) => "egress",
            Self::Attachments(refusal) => refusal.code(),
            Self::Unsupported(refusal) => refusal.code(),
            Self::CredentialIntentInvalid(invalid) => invalid.code(),
            Self::CredentialsMissing => "credentials_missing",
            Self::IdempotencyConflict => "idempotency-conflict",
            Self::MapperDroppedField { .. } => "mapper-dropped-field",
            Self::CredentialSourceChanged => "credential_source_changed",
            Self::ManagedProfileNativeCredentials => "managed_profile_native_credentials",
            Self::GrantMissing => "credentials_grant_missing",
            Self::CredentialShadowed => "credentials_shadowed",
            Self::CredentialMetadataReserved => "credentials_metadata_reserved",
            Self::Block(refusal) => refusal.code(),
            Self::Bound(_) => BoundError::CODE,
            Self::CheckpointUnsupported => "checkpoint-unsupported",
            Self::AttachmentsUnsupported => "attachments-unsupported",
        }
    }

    /// Where in the input, or in what a mapping gave: a JSON pointer, empty for the whole.
    pub fn path(&self) -> String {
        match self {
            Self::Input(refused)
            | Self::UnknownField(refused)
            | Self::Profile(refused)
            | Self::Resources(refused)
            | Self::Workspace(refused)
            | Self::ProviderOptions(refused)
            | Self::Secrets(refused)
            | Self::Metadata(refused)
            | Self::Name(refused)
            | Self::Backend(refused)
            | Self::Env(refused)
            | Self::IdempotencyKey(refused)
            | Self::BillingOwner(refused)
            | Self::Egress(refused) => refused.path().to_owned(),
            Self::ProfileReference => "/profile".to_owned(),
            Self::WorkspaceCwdBase => "/workspace/cwd/base".to_owned(),
            Self::CredentialsMissing => "/profile/model/metadata/credentialSource".to_owned(),
            Self::InlineSecrets | Self::GrantMissing => "/secrets".to_owned(),
            Self::CredentialShadowed => "/env".to_owned(),
            Self::ReservedMetadata { key } => format!("/metadata/{key}"),
            Self::CredentialMetadataReserved => "/metadata/modelCredentials".to_owned(),
            Self::Attachments(refusal) => format!("/runtimeAttachments{}", refusal.path()),
            Self::Unsupported(refusal) => format!("/profile{}", refusal.path()),
            Self::CredentialIntentInvalid(invalid) => format!("/profile{}", invalid.path()),
            Self::Block(refusal) => format!("/backend{}", refusal.path()),
            Self::Bound(error) => error.violation().pointer().to_owned(),
            Self::MapperDroppedField { field } => format!("/{field}"),
            Self::CredentialSourceChanged | Self::ManagedProfileNativeCredentials => {
                "/backend".to_owned()
            }
            Self::CheckpointUnsupported => "/workspace/checkpoint".to_owned(),
            Self::AttachmentsUnsupported => "/runtimeAttachments".to_owned(),
            Self::IdempotencyConflict => "/idempotencyKey".to_owned(),
        }
    }
}
