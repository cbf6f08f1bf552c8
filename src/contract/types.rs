//! Every shape that goes over the wire, generated from `schemas/`.

// A union of a name and a whole document is as large as the document; it is never kept in numbers.
#![allow(clippy::large_enum_variant)]

include!(concat!(env!("OUT_DIR"), "/types.rs"));
