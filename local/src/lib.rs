//! The embedded deployment.
