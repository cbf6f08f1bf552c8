//! One event of a stream: its kind, its id and one JSON object (wire protocol, 7.3).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::sse::{Frame, MAX_FIELD_UNITS};
use crate::contract::strict;

/// The event types that the protocol describes (wire protocol, 7.4). Others are passed on.
pub const KNOWN_TYPES: &[&str] = &[
    "connection.established",
    "start",
    "execution.started",
    "status",
    "message.part.updated",
    "message.updated",
    "session.updated",
    "tool-heartbeat",
    "tool-slow",
    "model-processing",
    "heartbeat",
    "warning",
    "raw",
    "trace.id",
    "interaction",
    "interaction.cancel",
    "plan.submitted",
    "result",
    "error",
    "done",
    "session.idle",
];

/// What makes a frame unreadable. It names the rule, never the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The data is not JSON.
    #[error("the data of an event is not JSON")]
    NotJson,
    /// The data of a known event type is not an object.
    #[error("the data of an event of a known type is not a JSON object")]
    NotAnObject,
    /// The type inside the data is too long.
    #[error("an event type is longer than {MAX_FIELD_UNITS} UTF-16 units")]
    TypeTooLong,
    /// The data does not have the shape that the reader asked for.
    #[error("the data of an event does not have the shape of its type")]
    Shape,
}

/// One event. Its data is known to be JSON text of an object; it is parsed when it is asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct RawFrame {
    kind: Option<Box<str>>,
    wrapped: Option<Box<str>>,
    frame: Frame,
}

impl RawFrame {
    /// Reads a frame; `None` for the sentinel `[DONE]`.
    ///
    /// # Errors
    /// [`FrameError`] when the data is not JSON, or is not an object although the type is known.
    pub fn read(frame: Frame) -> Result<Option<Self>, FrameError> {
        let data = frame.data().trim_matches([' ', '\t', '\n', '\r']);
        if data == "[DONE]" {
            return Ok(None);
        }
        let is_object = data.starts_with('{');
        let mut kind = None;
        if frame.event().is_some() {
            serde_json::from_str::<IgnoredAny>(data).map_err(|_| FrameError::NotJson)?;
        } else {
            kind = Some(inner_type(data, is_object)?);
        }
        let name = kind.as_deref().or(frame.event()).unwrap_or_default();
        let wrapped = match is_object {
            true => None,
            false if KNOWN_TYPES.contains(&name) => return Err(FrameError::NotAnObject),
            false => Some(format!("{{\"value\":{data}}}").into()),
        };
        Ok(Some(Self {
            kind,
            wrapped,
            frame,
        }))
    }

    /// The event type: the `event` field, else the `type` of the data, else `message`.
    pub fn kind(&self) -> &str {
        self.kind
            .as_deref()
            .or(self.frame.event())
            .unwrap_or_default()
    }

    /// The frame's own id. A cursor names a frame that had one.
    pub fn id(&self) -> Option<&str> {
        self.frame.id()
    }

    /// The JSON text of the data, an object.
    pub fn data(&self) -> &str {
        self.wrapped.as_deref().unwrap_or(self.frame.data())
    }

    /// The data as an object.
    ///
    /// # Errors
    /// [`FrameError::NotJson`] when the text is nested deeper than 512 levels.
    pub fn object(&self) -> Result<Map<String, Value>, FrameError> {
        if let Ok(object) = serde_json::from_str(self.data()) {
            return Ok(object);
        }
        // The plain reader stops at 128 levels; what lies deeper is content too.
        match strict::parse(self.data().as_bytes()) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(FrameError::NotJson),
        }
    }

    /// The data as a typed record.
    ///
    /// # Errors
    /// [`FrameError::Shape`] when it is another shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_str(self.data()).map_err(|_| FrameError::Shape)
    }
}

impl std::fmt::Debug for RawFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawFrame")
            .field("kind", &self.kind())
            .field("id", &self.id())
            .field("data_bytes", &self.data().len())
            .finish()
    }
}

/// The type named inside the data, `message` when there is none.
fn inner_type(data: &str, is_object: bool) -> Result<Box<str>, FrameError> {
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
    }
    const NO_TYPE: &str = "message";
    if !is_object {
        serde_json::from_str::<IgnoredAny>(data).map_err(|_| FrameError::NotJson)?;
        return Ok(NO_TYPE.into());
    }
    let inner: Inner<'_> = serde_json::from_str(data).map_err(|_| FrameError::NotJson)?;
    let kind = inner
        .kind
        .and_then(|kind| serde_json::from_str::<Cow<'_, str>>(kind.get()).ok())
        .filter(|kind| !kind.is_empty());
    match kind {
        None => Ok(NO_TYPE.into()),
        Some(kind) if kind.encode_utf16().count() > MAX_FIELD_UNITS => Err(FrameError::TypeTooLong),
        Some(kind) => Ok(kind.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::sse::Decoder;

    fn read(body: &str) -> Result<Option<RawFrame>, FrameError> {
        let frame = Decoder::default().next(&mut body.as_bytes()).unwrap();
        RawFrame::read(frame.unwrap())
    }

    fn kind_and_data(body: &str) -> (String, String) {
        let frame = read(body).unwrap().unwrap();
        (frame.kind().to_owned(), frame.data().to_owned())
    }

    #[test]
    fn wire_7_5_done_is_skipped_and_bad_json_is_a_protocol_error() {
        assert_eq!(read("data: [DONE]\n\n"), Ok(None));
        assert_eq!(read("event: x\ndata: [DONE]\n\n"), Ok(None));
        for body in [
            "data: {oops\n\n",
            "event: x\ndata: {oops\n\n",
            "data\n\n",
            "data: {}{}\n\n",
        ] {
            assert_eq!(read(body), Err(FrameError::NotJson), "{body:?}");
        }
    }

    #[test]
    fn content_may_be_nested_deeper_than_a_plain_reader_goes() {
        let frame = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            let body = format!("event: raw\ndata: {{\"event\":{open}{close}}}\n\n");
            read(&body).unwrap().unwrap().object()
        };
        assert!(frame(200).unwrap()["event"].is_array());
        assert_eq!(frame(600), Err(FrameError::NotJson));
    }

    #[test]
    fn the_type_is_the_field_else_the_one_inside_else_message() {
        for (body, kind) in [
            ("event: done\ndata: {\"type\":\"x\"}\n\n", "done"),
            ("data: {\"a\":1,\"type\":\"a\\u0062\"}\n\n", "ab"),
            ("event:\ndata: {\"type\":\"x\"}\n\n", "x"),
            ("data: {\"type\":7}\n\n", "message"),
            ("data: {\"type\":\"\"}\n\n", "message"),
            ("data: {}\n\n", "message"),
        ] {
            assert_eq!(kind_and_data(body).0, kind, "{body:?}");
        }
    }

    #[test]
    fn what_is_no_object_is_wrapped_or_refused() {
        assert_eq!(
            kind_and_data("event: new\ndata: [1]\n\n"),
            ("new".to_owned(), "{\"value\":[1]}".to_owned())
        );
        assert_eq!(kind_and_data("data: 7\n\n").1, "{\"value\":7}");
        for kind in KNOWN_TYPES {
            let body = format!("event: {kind}\ndata: 7\n\n");
            assert_eq!(read(&body), Err(FrameError::NotAnObject));
        }
    }
}
