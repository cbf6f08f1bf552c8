//! Events: a raw frame of a stream becomes an event of an environment (core contracts, 10; provider runtime, 9).
//!
//! * `frame`: a frame whose type, id and data have the shape of one.
//! * `expected`: the run that a stream was opened for, and whether a frame belongs to it.
//! * `canonical`: the canonical form of a frame, supplied or made.
//! * `terminal`: what a terminal record keeps.
//! * `environment_event`: the event that comes out, and the same as a document.
//! * `read`: all of that in order, for one frame.
//! * `children`: updates of child tasks, each counted once.
//! * `rules`: rules inside an event that no keyword says.
//! * `refusal`: why a frame is refused, with its code. Every refusal ends the stream.
//!
//! Content is kept whole or refused, never shortened.
//!
//! ```
//! use tangle_sandbox::contract::event::{Expected, RawFrame, StreamEvent, read_frame};
//!
//! let frame = RawFrame::parse("status", Some("7"), r#"{"status": "running"}"#)?;
//! let event = read_frame(frame, &Expected::default())?;
//! assert!(matches!(event.normalized(), Some(StreamEvent::Status { .. })));
//! assert_eq!((event.id(), event.is_terminal()), (Some("7"), false));
//! # Ok::<(), tangle_sandbox::contract::event::Refusal>(())
//! ```

mod canonical;
mod children;
mod environment_event;
mod expected;
mod frame;
mod read;
mod refusal;
pub(super) mod rules;
mod terminal;
#[cfg(test)]
mod tests;

pub use super::types::{Ask, EventDocument, EventEnvelope, Part, StreamEvent, ToolState};
pub use children::ChildUpdates;
pub use environment_event::EnvironmentEvent;
pub use expected::{Expected, check_identity};
pub use frame::RawFrame;
pub use read::read_frame;
pub use refusal::Refusal;
pub use terminal::{is_terminal, project_terminal};
