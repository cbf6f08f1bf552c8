//! HTTP, error envelopes, retry and server-sent events.
//!
//! * [`http`]: [`Transport`], which sends a [`Call`] and reads its answer; `fetch` for raw calls.
//! * [`builder`]: what a transport is built from, and why a construction is refused.
//! * [`error`]: the one error of this layer, [`Error`], and [`code`], the wire codes.
//! * [`envelope`]: how success and error bodies are read.
//! * [`retry`]: what may be repeated, when and how often.
//! * [`stream`]: an open stream of events with its idle limit; [`frame`], one event of it; [`sse`], the bounded decoder.
//! * [`redact`]: takes credentials out of texts before they are stored.

pub mod builder;
pub mod code;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod http;
pub mod redact;
pub mod retry;
pub mod sse;
pub mod stream;

pub use builder::{BuildError, Builder};
pub use code::Code;
pub use error::{Error, Failure, Refusal};
pub use frame::RawFrame;
pub use http::{Call, Response, Transport};
pub use retry::{Repeat, RetryPolicy, Waits};
pub use stream::EventStream;
