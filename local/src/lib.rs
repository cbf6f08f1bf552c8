//! The embedded deployment.

pub mod agent;
pub mod process;
