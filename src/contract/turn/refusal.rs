//! Why a turn is refused.

use std::borrow::Cow;

use crate::contract::backend;
use crate::contract::bounds::BoundError;
use crate::contract::check::Refused;
use crate::contract::retained;

/// A turn that is refused before anything is sent. It names a place and a rule, never a value. A repeat cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The turn brings a conversation along, which this provider does not take.
    #[error("this provider does not transfer contexts")]
    ContextTransferUnsupported,
    /// The turn goes on with a native session, which this provider does not do.
    #[error("this provider does not continue native sessions")]
    NativeContinuationUnsupported,
    /// A field of the turn is unknown, of the wrong type or out of its bounds. Correct it at the path.
    #[error(transparent)]
    Input(Refused),
    /// The profile of the turn is too large.
    #[error(transparent)]
    Bound(BoundError),
    /// The options of the provider, or the backend block, have fields that nobody knows. All of them are named.
    #[error(transparent)]
    UnknownField(Refused),
    /// A field of the backend block is of the wrong type or out of its bounds. Correct it at the path.
    #[error(transparent)]
    BackendValue(Refused),
    /// The profile in the backend block is malformed; the path leads from the profile.
    #[error("the profile of the backend block: {0}")]
    BackendProfile(Refused),
    /// A rule between the fields of the backend block is broken.
    #[error(transparent)]
    Backend(backend::Refusal),
    /// The profile of the turn breaks such a rule; the path leads from the turn.
    #[error(transparent)]
    Profile(backend::Refusal),
    /// Two places of the turn say different things. Nothing is preferred: leave one of them out.
    #[error("`{field}` and the rest of the turn do not agree")]
    Conflict {
        /// What they differ in.
        field: &'static str,
    },
    /// The reference is not exact, or is of another target than this turn.
    #[error(transparent)]
    Reference(#[from] retained::Refusal),
}

impl Refusal {
    /// The code of the refusal. `path:` is followed by the path with dots, `unknown-field:` by the names, sorted; both as they
    /// stand in the turn, so that a code says what a caller calls a field. Of a key of more than 512 units only the length is
    /// told.
    ///
    /// ```
    /// use serde_json::json;
    /// use tangle_sandbox::contract::turn;
    ///
    /// let code = |turn| turn::read(turn).unwrap_err().code().into_owned();
    /// assert_eq!(code(json!({ "timeoutMs": 0 })), "path:timeoutMs");
    /// assert_eq!(
    ///     code(json!({ "providerOptions": { "zeta": 1, "alpha": 2 } })),
    ///     "unknown-field:alpha, zeta",
    /// );
    /// ```
    pub fn code(&self) -> Cow<'static, str> {
        match self {
            Self::ContextTransferUnsupported => "context-transfer-unsupported".into(),
            Self::NativeContinuationUnsupported => "native-continuation-unsupported".into(),
            Self::Input(refused) | Self::BackendProfile(refused) => {
                format!("path:{}", refused.steps().join(".")).into()
            }
            Self::UnknownField(refused) => {
                format!("unknown-field:{}", refused.unknown_fields().join(", ")).into()
            }
            Self::BackendValue(_) => "backend-value".into(),
            Self::Bound(_) => BoundError::CODE.into(),
            Self::Backend(refusal) | Self::Profile(refusal) => refusal.code().into(),
            Self::Conflict { .. } => "conflict".into(),
            Self::Reference(refusal) => refusal.code().into(),
        }
    }

    /// Where in the turn: a JSON pointer, empty for the turn itself.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::ContextTransferUnsupported => "/contextTransfer".into(),
            Self::NativeContinuationUnsupported => "/nativeContinuation".into(),
            Self::Input(refused) | Self::UnknownField(refused) | Self::BackendValue(refused) => {
                refused.path().into()
            }
            Self::Bound(error) => format!("/profile{}", error.violation().pointer()).into(),
            Self::BackendProfile(refused) => format!("{BACKEND}/profile{}", refused.path()).into(),
            Self::Backend(refusal) => format!("{BACKEND}{}", refusal.path()).into(),
            Self::Profile(refusal) => refusal.path(),
            Self::Conflict { field } => format!("/{field}").into(),
            Self::Reference(_) => "/controlRef".into(),
        }
    }
}

/// Where a turn has the options of the provider.
pub(super) const OPTIONS: &str = "/providerOptions";
/// Where a turn has its backend block.
pub(super) const BACKEND: &str = "/providerOptions/backend";

impl From<backend::Refusal> for Refusal {
    /// What the rules of a block refuse; a malformed field of it is named from the turn.
    fn from(refusal: backend::Refusal) -> Self {
        match refusal {
            backend::Refusal::Document(refused) => Self::BackendValue(refused.under(BACKEND)),
            refusal => Self::Backend(refusal),
        }
    }
}

impl From<Refusal> for Refused {
    /// The same refusal as a path and a rule.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Input(refused)
            | Refusal::UnknownField(refused)
            | Refusal::BackendValue(refused) => refused,
            Refusal::BackendProfile(refused) => refused.under("/profile").under(BACKEND),
            Refusal::Bound(error) => Refused::from(&error).under("/profile"),
            Refusal::Backend(refusal) => Refused::from(refusal).under(BACKEND),
            Refusal::Profile(refusal) => refusal.into(),
            refusal => Refused::new(refusal.path(), refusal.to_string()),
        }
    }
}
