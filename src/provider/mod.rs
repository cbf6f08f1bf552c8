//! The environment provider: what a deployment has proven, and the operations that rest on it.
//!
//! * [`Environment`]: a running sandbox with the claims that its deployment proved; [`AnyEnvironment`]: one without.
//! * [`Turn`]: one turn for the agent; [`Dispatch`]: a turn that outlives its reader.
//! * [`Unproven`]: the claims that a deployment does not prove, with the environment given back.

mod capabilities;
mod digest;
mod dispatch;
mod environment;
mod turn;

pub use crate::sandbox::Running;
pub use dispatch::Dispatch;
pub use environment::{AnyEnvironment, Environment, Unproven};
pub use turn::Turn;

/// The name of this provider in every reference that it mints.
pub const PROVIDER: &str = "tangle-sandbox";
