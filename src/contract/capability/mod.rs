//! What a provider can do at most, and what one environment honours (core contracts, 9; provider runtime, 5).
//!
//! A capability document is made in two stages, and nothing but these two makes one:
//!
//! 1. [`declared`]: before any sandbox exists. The [`ceiling`], or a document of the operator's own, narrowed to what the
//!    client offers and to the catalogue entry of the backend. No deployment is asked; every fact of one counts as backed.
//! 2. [`derive()`]: when an environment is composed. The declared document, narrowed to what the handle of this sandbox
//!    offers and to the [`DeploymentFacts`] that its deployment disclosed. What comes out is the document to publish and
//!    the operations to offer, which are one and the same statement.
//!
//! A stage takes claims away and never adds one.
//!
//! * `ceiling`: the document that is declared when nothing is configured.
//! * `surface`: what a client and the handle of a sandbox offer, as plain booleans.
//! * `disclosure`: what the deployment disclosed, or why it claims nothing.
//! * `narrow`: the gates of the claims.
//! * `stages`: the two stages.
//! * `operations`: the operations that a document claims.
//! * `snapshot`: a document that passed its check and cannot change.
//! * `rules`: the rules between flags that no keyword says.

mod ceiling;
mod disclosure;
mod narrow;
mod operations;
pub(crate) mod rules;
mod snapshot;
mod stages;
mod surface;

#[cfg(test)]
mod tests;

pub use ceiling::ceiling;
pub use disclosure::{ClaimsNothing, Disclosure};
pub use narrow::Backend;
pub use operations::{Operation, Operations};
pub use snapshot::CapabilitySnapshot;
pub use stages::{EnvironmentCapabilities, ProviderCapabilities, declared, derive};
pub use surface::{
    CheckpointSurface, ClientSurface, InstanceSurface, ObservationSources, SessionSurface,
    TerminalSurface,
};

pub use super::types::{Capabilities, DeploymentDocument, DeploymentFacts};
