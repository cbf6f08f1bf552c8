//! Every limit with its unit, from `schemas/limits.json`.

/// One row of the table of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the constant.
    pub name: &'static str,
    /// The limit.
    pub value: usize,
    /// Its unit.
    pub unit: &'static str,
    /// Chapter of the specification.
    pub chapter: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/limits.rs"));
