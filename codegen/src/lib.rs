//! Turns the JSON Schemas of a crate into Rust: types, scalars, checks, claims and limits.
//!
//! A schema is the one place where a wire shape is written. [`generate`] reads every `*.json` of a folder and returns
//! their text; a build script of ten lines writes them to `OUT_DIR`. The steps, one small file each:
//!
//! 1. `bundle` reads the files, refuses what nobody would enforce, and joins them into one map of definitions;
//! 2. `types` lets typify write the structs and enums, then `polish` gives every item its description, the
//!    serialisation of its secrets and the name of its check;
//! 3. `scalars` writes the bounded texts and numbers;
//! 4. `checks` writes the tables that the checker of the contract interprets;
//! 5. `claims` proves the claim table of the capability schema and writes its lattice, and the type of what a document proves;
//! 6. `limits` writes the table of limits;
//! 7. `manual` writes tables for people.
//!
//! Whatever cannot be enforced whole stops the build with the file and the JSON pointer of the place.

mod bundle;
mod checks;
mod claims;
mod error;
mod keywords;
mod limits;
mod manual;
mod polish;
mod scalars;
mod types;
mod unions;

use std::path::{Path, PathBuf};

pub use error::SchemaError;
pub use keywords::{ROOT as ROOT_KEYWORDS, SCHEMA as SCHEMA_KEYWORDS};
pub use manual::Manual;

/// Where the generated code finds what it builds on.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the contract module that holds `check`, `scalar` and `secret`: `crate::contract` in the SDK itself.
    pub contract: String,
    /// Path of the module that holds the functions which `x-rule` names: `crate::contract::rules` in the SDK itself.
    pub rules: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            contract: "crate::contract".into(),
            rules: "crate::contract::rules".into(),
        }
    }
}

/// The generated text, one member a file.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Structs, enums, bounded scalars, and the facts that a capability document proves.
    pub types: String,
    /// The checker's tables and the implementation of `Checked` for each type.
    pub checks: String,
    /// Claim markers, their flags and the `Has` lattice; empty without `x-claims`.
    pub claims: String,
    /// Limits as constants and as a table; empty without `x-limits`.
    pub limits: String,
    /// Tables for the manual.
    pub manual: Manual,
    /// The files that were read, for `cargo::rerun-if-changed`.
    pub inputs: Vec<PathBuf>,
}

/// Generates from every `*.json` directly in `dir`.
///
/// # Errors
///
/// [`SchemaError`] names the file, the JSON pointer and the rule: an unknown keyword, a missing description or mode,
/// a reference to nowhere, a constraint that the generator cannot enforce whole.
pub fn generate(dir: &Path, options: &Options) -> Result<Generated, SchemaError> {
    let bundle = bundle::read(dir)?;
    let claims = claims::write(&bundle, options)?;
    Ok(Generated {
        types: types::write(&bundle, options)? + &claims.facts,
        checks: checks::write(&bundle, options)?,
        claims: claims.lattice,
        limits: limits::write(&bundle)?,
        manual: manual::write(&bundle, options),
        inputs: bundle.inputs,
    })
}

/// What a build script does: generates from `schemas/` beside the manifest and writes `types.rs`, `checks.rs`,
/// `claims.rs`, `limits.rs` and the tables of the manual to `OUT_DIR`.
///
/// # Errors
///
/// As [`generate`]; also when a file cannot be written.
pub fn build(schemas: &str, options: &Options) -> Result<(), SchemaError> {
    let (Some(root), Some(out)) = (
        std::env::var_os("CARGO_MANIFEST_DIR"),
        std::env::var_os("OUT_DIR"),
    ) else {
        return Err(SchemaError::new(
            schemas,
            "",
            "not called from a build script",
        ));
    };
    let dir = Path::new(&root).join(schemas);
    let generated = generate(&dir, options)?;
    println!("cargo::rerun-if-changed={}", dir.display());
    for input in &generated.inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    for (name, text) in [
        ("types.rs", &generated.types),
        ("checks.rs", &generated.checks),
        ("claims.rs", &generated.claims),
        ("limits.rs", &generated.limits),
        ("contracts.md", &generated.manual.contracts),
        ("limits.md", &generated.manual.limits),
        ("claims.md", &generated.manual.claims),
    ] {
        std::fs::write(Path::new(&out).join(name), text)
            .map_err(|error| SchemaError::new(name, "", format!("cannot be written: {error}")))?;
    }
    Ok(())
}
