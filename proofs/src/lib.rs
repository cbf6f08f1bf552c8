//! What the proofs about the contracts share. The proofs themselves stand in `tests/`.
//!
//! * [`schemas`]: the schema files, read by another reader than that of the build.
//! * [`standard`]: the same in standard JSON Schema, for an independent validator.
//! * [`generate`]: valid documents from the schemas alone, and damage to them.
//! * [`sites`]: the places of a document with what the schema says of each.
//! * [`trips`], [`shapes`]: the generated types by name.
//! * [`canary`]: markers that must not be seen.
//! * [`dice`], [`text`], [`samples`]: what they are made from.

pub mod canary;
pub mod dice;
pub mod generate;
mod mutate;
pub mod samples;
pub mod schemas;
pub mod shapes;
pub mod sites;
pub mod standard;
pub mod text;
pub mod trips;

/// How many cases a proof takes: `TANGLE_ORACLE_CASES`, else `default`.
///
/// # Panics
/// When the variable is no number.
pub fn cases(default: usize) -> usize {
    match std::env::var("TANGLE_ORACLE_CASES") {
        Ok(text) => text.parse().expect("TANGLE_ORACLE_CASES is a number"),
        Err(_) => default,
    }
}

/// The seed of every proof: `TANGLE_ORACLE_SEED`, else one that never changes.
///
/// # Panics
/// When the variable is no number.
pub fn seed() -> u64 {
    match std::env::var("TANGLE_ORACLE_SEED") {
        Ok(text) => text.parse().expect("TANGLE_ORACLE_SEED is a number"),
        Err(_) => 20_260_101,
    }
}
