//! Why a backend block is refused.

use std::borrow::Cow;

use crate::contract::attachments;
use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;
use crate::contract::profile::CredentialIntentInvalid;

/// A backend block that is refused. It names a place and a rule, never a value. A repeat cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A field is unknown, of the wrong type or out of its bounds. Correct it at the path.
    #[error(transparent)]
    Document(#[from] Refused),
    /// A setting of the model stands on the block and in its `model`, with different values. Leave one of them out.
    #[error("`{field}` is given twice, with different values")]
    GivenTwice {
        /// The field as it stands on the block.
        field: &'static str,
    },
    /// The profile says `managed`, and the block brings a login of the caller's own.
    #[error("a managed profile takes no `{field}`")]
    ManagedProfileNativeCredentials {
        /// The field of the model.
        field: &'static str,
    },
    /// The profile says something about its credential source that is neither `managed` nor `subscription`.
    #[error("profile{0}")]
    CredentialIntentInvalid(#[from] CredentialIntentInvalid),
    /// `cliAuth` needs to know the backend that it is for. Name it in `type`.
    #[error("`cliAuth` needs `type`")]
    TypeRequired,
    /// `cliAuth` goes with a profile that says `subscription` only.
    #[error("`cliAuth` needs a subscription profile")]
    IntentRequired,
    /// The harness of the profile is another than the backend of `cliAuth`.
    #[error("the harness of the profile must be the backend of `cliAuth`")]
    HarnessMismatch,
    /// The backend does not take a stored login of this format.
    #[error("the backend does not take this format of `cliAuth`")]
    ChannelUnsupported,
    /// Another credential stands beside `cliAuth`. Leave one of them out.
    #[error("`{field}` must not stand beside `cliAuth`")]
    MixedAuth {
        /// The field of the model.
        field: &'static str,
    },
    /// The runtime attachments are refused.
    #[error(transparent)]
    Attachments(#[from] attachments::Refusal),
    /// The block is too large as a whole.
    #[error(transparent)]
    Bound(#[from] BoundError),
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Document(refused) => refused.code(),
            Self::GivenTwice { .. } => "conflict",
            Self::ManagedProfileNativeCredentials { .. } => "managed_profile_native_credentials",
            Self::CredentialIntentInvalid(invalid) => invalid.code(),
            Self::TypeRequired => "backend_type_required",
            Self::IntentRequired => "credentials_intent_required",
            Self::HarnessMismatch => "credentials_harness_mismatch",
            Self::ChannelUnsupported => "credentials_channel_unsupported",
            Self::MixedAuth { .. } => "credentials_mixed_auth",
            Self::Attachments(refusal) => refusal.code(),
            Self::Bound(_) => BoundError::CODE,
        }
    }

    /// Where in the block: a JSON pointer, empty for the block itself.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Document(refused) => refused.path().into(),
            Self::GivenTwice { field } => format!("/{field}").into(),
            Self::ManagedProfileNativeCredentials { field } | Self::MixedAuth { field } => {
                format!("/model/{field}").into()
            }
            Self::CredentialIntentInvalid(invalid) => format!("/profile{}", invalid.path()).into(),
            Self::TypeRequired => "/type".into(),
            Self::IntentRequired => "/profile".into(),
            Self::HarnessMismatch => "/profile/harness".into(),
            Self::ChannelUnsupported => "/model/cliAuth/format".into(),
            Self::Attachments(refusal) => format!("/runtimeAttachments{}", refusal.path()).into(),
            Self::Bound(error) => error.violation().pointer().into(),
        }
    }
}

impl From<Refusal> for Refused {
    /// The same refusal as a path and a rule, for a document that holds the block.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Document(refused) => refused,
            Refusal::Bound(error) => (&error).into(),
            refusal => Refused::new(refusal.path(), refusal.to_string()),
        }
    }
}
