//! The agent profile (core contracts, 3): what belongs to it beyond its schema.
//!
//! * `credential`: what looks like a credential, by value and by name.
//! * `paths`: programs and paths that a profile may name.
//! * `steering`: names of environment variables that steer the host process.
//! * `hosts`: patterns of host names.
//! * `security`: the check of what a profile brings along against a policy.

mod credential;
mod hosts;
mod paths;
mod security;
mod steering;

pub use credential::{looks_like_credential, names_credential};
pub use hosts::host_matches;
pub use paths::{has_reserved_segment, is_safe_executable, is_safe_relative_path};
pub use security::security_check;
pub use steering::steers_host_process;
