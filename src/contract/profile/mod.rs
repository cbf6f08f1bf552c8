//! The agent profile (core contracts, 3): what belongs to it beyond its schema.
//!
//! * `snapshot`: a profile that passed its check and cannot change, and its digest.
//! * `intent`: who pays for the model.
//! * `merge`: two profiles made one.
//! * `create`: whether a create can carry a profile.
//! * `refusal`: why it cannot.
//! * `primed`: the hash that stands for a profile on a sandbox.
//! * `rules`: the rules inside a profile that no keyword says.
//! * `credential`: what looks like a credential, by value and by name.
//! * `paths`: programs and paths that a profile may name.
//! * `steering`: names of environment variables that steer the host process.
//! * `hosts`: patterns of host names.
//! * `security`: the check of what a profile brings along against a policy.

mod create;
mod credential;
mod hosts;
mod intent;
mod merge;
mod paths;
mod primed;
mod refusal;
pub(crate) mod rules;
mod security;
mod snapshot;
mod steering;

pub use super::types::{AgentProfile, CredentialSource, ProfileDigest};
pub use create::validate_profile_for_create;
pub use credential::{looks_like_credential, names_credential};
pub use hosts::host_matches;
pub use intent::{CredentialIntent, CredentialIntentInvalid};
pub use paths::{has_reserved_segment, is_safe_executable, is_safe_relative_path};
pub use refusal::{Counted, ProfileRefusal};
pub use security::security_check;
pub use snapshot::ProfileSnapshot;
pub use steering::steers_host_process;
