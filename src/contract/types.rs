//! Every shape that goes over the wire, generated from `schemas/`.

include!(concat!(env!("OUT_DIR"), "/types.rs"));
