//! The messages of the Agent Client Protocol that are read or written, generated from `schemas/acp.json`.

include!(concat!(env!("OUT_DIR"), "/types.rs"));
