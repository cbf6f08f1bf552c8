//! HTTP, error envelopes, retry and server-sent events.
//!
//! * [`http`]: [`Transport`], which sends a [`call`] of a route and reads its answer; [`fetch`] is for raw calls.
//! * [`builder`]: what a transport is built from, and why a construction is refused.
//! * [`error`]: the one error of this layer, [`Error`], and [`code`], the wire codes.
//! * [`envelope`]: how success and error bodies are read.
//! * [`retry`]: what may be repeated, when and how often; [`budget`] bounds it for the whole client.
//! * [`stream`]: an open stream of events with its idle limit; [`frame`], one event of it; [`sse`], the bounded decoder.
//! * [`redact`]: takes credentials out of texts before they are stored.

pub mod budget;
pub mod builder;
pub mod call;
pub mod code;
pub mod envelope;
pub mod error;
pub mod fetch;
pub mod frame;
pub mod http;
pub mod redact;
pub mod retry;
pub mod sse;
pub mod stream;

pub use builder::{BuildError, Builder};
pub use call::Call;
pub use code::Code;
pub use error::{Error, Failure, Refusal};
pub use fetch::Response;
pub use frame::RawFrame;
pub use http::Transport;
pub use retry::{Repeat, RetryPolicy, Waits};
pub use stream::EventStream;
