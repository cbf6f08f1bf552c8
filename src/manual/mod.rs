//! The manual: one page a subject. The tables come from the schemas, so that they say what the code does.
//!
//! * [`contracts`]: every document, event, reference and receipt; how one is read, refused, normalised and digested.
//! * [`limits`]: every limit with its unit.
//! * [`claims`]: what a deployment proves, and what each proof allows.

#[doc = include_str!("contracts.md")]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/contracts.md"))]
pub mod contracts {}

#[doc = include_str!("limits.md")]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/limits.md"))]
pub mod limits {}

#[doc = include_str!("claims.md")]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/claims.md"))]
pub mod claims {}
