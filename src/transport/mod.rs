//! HTTP, error envelopes, retry and server-sent events.
//!
//! * [`sse`]: the bounded decoder of server-sent events.

pub mod sse;
