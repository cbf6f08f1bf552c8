//! The contracts: shapes, checks, canonical JSON, digests and bounds. No I/O.

pub mod canonical;
pub mod check;
pub mod checker;
pub mod checks;
pub mod digest;
pub mod document;
pub mod limits;
mod read;
pub mod routes;
pub mod rules;
pub(crate) mod scalar;
pub mod secret;
pub mod strict;
pub mod text;
pub mod types;

pub use read::{from_value, read};
pub use secret::Secret;
