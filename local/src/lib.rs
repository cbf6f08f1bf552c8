//! The embedded deployment.

pub mod agent;
pub mod process;

pub use agent::agent_main;
