//! The contracts: shapes, checks, canonical JSON, digests and bounds. No I/O.
