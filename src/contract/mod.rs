//! The contracts: shapes, checks, canonical JSON, digests and bounds. No I/O.

pub mod routes;
pub mod secret;

pub use secret::Secret;
