//! Type-state, codegen-driven SDK for coding agents in remote sandboxes.

pub mod claims;
pub mod contract;
#[cfg(feature = "client")]
pub mod provider;
#[cfg(feature = "client")]
pub mod sandbox;
#[cfg(feature = "client")]
pub mod transport;
