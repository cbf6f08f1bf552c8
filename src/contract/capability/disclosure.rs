//! What a deployment disclosed when its environment was composed, or why it claims nothing.

use serde_json::Value;

use super::DeploymentFacts;
use super::surface::InstanceSurface;

/// Why the deployment of an environment claims nothing (provider runtime, 5.5). What rests on the workspace stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimsNothing {
    /// The client knows no read of the capability document. Nothing is asked; a newer client helps.
    #[error("the client cannot read a capability document")]
    NoRead,
    /// The sandbox is not `running`. Nothing is asked; composing again later helps.
    #[error("the sandbox is not running")]
    NotRunning,
    /// The deployment discloses no document, or one of a version that cannot be read.
    #[error("the deployment discloses no capability document")]
    NoDocument,
    /// The read failed, or its answer is malformed. The failure belongs on the warning channel; the sandbox is kept.
    #[error("the capability document could not be read")]
    ReadFailed,
}

impl ClaimsNothing {
    /// Whether this is worth a warning: a read was sent and failed.
    pub fn is_warning(self) -> bool {
        self == ClaimsNothing::ReadFailed
    }
}

/// What the deployment of an environment disclosed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosure {
    /// A document, and what it proves.
    Proven(DeploymentFacts),
    /// Nothing, and why.
    Nothing(ClaimsNothing),
}

impl Disclosure {
    /// Whether the document is to be asked for at all: only a client that can read it asks, and only of a sandbox that
    /// is `running`.
    ///
    /// # Errors
    ///
    /// Why no request is sent.
    pub fn ask(instance: &InstanceSurface, running: bool) -> Result<(), ClaimsNothing> {
        match (instance.capabilities, running) {
            (false, _) => Err(ClaimsNothing::NoRead),
            (true, false) => Err(ClaimsNothing::NotRunning),
            (true, true) => Ok(()),
        }
    }

    /// What the answer of a read discloses. `null` is no document; any other JSON is one, also a malformed one, since a
    /// flag that is not exactly `true` proves nothing.
    pub fn of(document: &Value) -> Self {
        match document {
            Value::Null => Disclosure::Nothing(ClaimsNothing::NoDocument),
            document => Disclosure::Proven(DeploymentFacts::of(document)),
        }
    }

    /// The facts that claims may rest on: none when nothing was disclosed.
    pub fn facts(&self) -> DeploymentFacts {
        match self {
            Disclosure::Proven(facts) => *facts,
            Disclosure::Nothing(_) => DeploymentFacts::default(),
        }
    }

    /// Why nothing is claimed, if that is so.
    pub fn claims_nothing(&self) -> Option<ClaimsNothing> {
        match self {
            Disclosure::Proven(_) => None,
            Disclosure::Nothing(why) => Some(*why),
        }
    }
}

impl From<ClaimsNothing> for Disclosure {
    fn from(why: ClaimsNothing) -> Self {
        Disclosure::Nothing(why)
    }
}
