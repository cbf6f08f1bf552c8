//! A bounded decoder of server-sent events (wire protocol, 7.3).
//!
//! [`Decoder`] is push-style and does no I/O; [`Frames`] puts it on a stream of byte chunks. Every byte is looked at once,
//! however the input is cut, and no more than one frame is held.

mod decoder;
mod frames;

pub use decoder::Decoder;
pub use frames::{Frames, ReadError};

use crate::contract::limits;

/// The largest raw frame by default, in bytes (wire protocol, 1.6).
pub const MAX_FRAME_BYTES: usize = limits::MAX_RAW_FRAME;

/// The longest event type and the longest id, in UTF-16 code units (wire protocol, 1.6).
pub const MAX_FIELD_UNITS: usize = limits::MAX_EVENT_NAME;

/// One frame that had data.
///
/// `data`, `event` and `id` stand one after the other in one text, so that a frame costs one allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    text: String,
    data: usize,
    event: usize,
}

impl Frame {
    /// The `data` lines, joined with LF.
    pub fn data(&self) -> &str {
        &self.text[..self.data]
    }

    /// The `event` field, if the frame had one that is not empty.
    pub fn event(&self) -> Option<&str> {
        Some(&self.text[self.data..self.event]).filter(|event| !event.is_empty())
    }

    /// The frame's own `id`, if it had one that is not empty. Ids are never carried over from an earlier frame.
    pub fn id(&self) -> Option<&str> {
        Some(&self.text[self.event..]).filter(|id| !id.is_empty())
    }

    /// Only the data, without a copy.
    pub fn into_data(self) -> String {
        let mut text = self.text;
        text.truncate(self.data);
        text
    }

    /// `data` and `event` are where these parts of `text` end.
    fn new(text: Vec<u8>, data: usize, event: usize) -> Result<Self, SseError> {
        let text = String::from_utf8(text).map_err(|_| SseError::Utf8)?;
        if !text.is_char_boundary(data) || !text.is_char_boundary(event) {
            return Err(SseError::Utf8);
        }
        let frame = Self { text, data, event };
        if too_long(&frame.text[data..event]) {
            return Err(SseError::EventTooLong);
        }
        if too_long(&frame.text[event..]) {
            return Err(SseError::IdTooLong);
        }
        Ok(frame)
    }
}

fn too_long(field: &str) -> bool {
    field.len() > MAX_FIELD_UNITS && field.encode_utf16().count() > MAX_FIELD_UNITS
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("event", &self.event())
            .field("id", &self.id())
            .field("data_bytes", &self.data)
            .finish()
    }
}

/// What makes a stream of events unreadable. The decoder stops at the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A frame is larger than the limit; its lines are counted with one byte for each line end. A comment is counted by
    /// itself, so that keep-alives never add up.
    #[error("a raw frame is larger than {limit} bytes")]
    FrameTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A field is not UTF-8.
    #[error("a frame is not UTF-8")]
    Utf8,
    /// The event type is too long.
    #[error("an event type is longer than {MAX_FIELD_UNITS} UTF-16 units")]
    EventTooLong,
    /// The id is too long.
    #[error("an event id is longer than {MAX_FIELD_UNITS} UTF-16 units")]
    IdTooLong,
}
