//! The checker's tables, generated from `schemas/`.

include!(concat!(env!("OUT_DIR"), "/checks.rs"));
