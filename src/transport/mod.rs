//! HTTP, error envelopes, retry and server-sent events.
