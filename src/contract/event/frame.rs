//! A frame as a stream delivers it: type, id and one object of data.

use serde_json::{Map, Value};

use crate::contract::check::Refused;
use crate::contract::strict;
use crate::contract::types::Identifier;

use super::Refusal;

/// The type of the frame with which a transport says that it is connected.
const CONNECTED: &str = "connection.established";

/// A frame of a stream whose type and id are identifiers and whose data is an object. Nothing more is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFrame {
    kind: Identifier,
    id: Option<Identifier>,
    data: Map<String, Value>,
}

impl RawFrame {
    /// A frame of parts that are known to be right.
    pub fn new(kind: Identifier, id: Option<Identifier>, data: Map<String, Value>) -> Self {
        Self { kind, id, data }
    }

    /// Reads a frame whose data is JSON text, as it comes from a stream of events.
    ///
    /// # Errors
    ///
    /// `frame-shape`, also where the text is not strict JSON: a repeated key, a number beyond a double.
    pub fn parse(kind: &str, id: Option<&str>, data: &str) -> Result<Self, Refusal> {
        let (kind, id) = (identifier("/type", kind)?, optional(id)?);
        match strict::parse(data.as_bytes()) {
            Ok(Value::Object(data)) => Ok(Self { kind, id, data }),
            Ok(_) => Err(shape("/data", "must be an object")),
            Err(refused) => Err(shape(
                format!("/data{}", refused.path()),
                refused.rule().to_owned(),
            )),
        }
    }

    /// Reads a frame that is JSON already, `{type, data, id}`.
    ///
    /// # Errors
    ///
    /// `frame-shape`.
    pub fn from_value(frame: Value) -> Result<Self, Refusal> {
        let Value::Object(mut frame) = frame else {
            return Err(shape("", "must be an object"));
        };
        let kind = match frame.get("type") {
            Some(Value::String(kind)) => identifier("/type", kind)?,
            _ => return Err(shape("/type", "must be a string")),
        };
        let id = match frame.get("id") {
            None => None,
            Some(Value::String(id)) => optional(Some(id))?,
            Some(_) => return Err(shape("/id", "must be a string")),
        };
        match frame.remove("data") {
            Some(Value::Object(data)) => Ok(Self { kind, id, data }),
            _ => Err(shape("/data", "must be an object")),
        }
    }

    /// The type.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The id: identity of the frame inside its execution, and the exclusive cursor to come back with.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The data.
    pub fn data(&self) -> &Map<String, Value> {
        &self.data
    }

    /// Whether the transport only says that it is connected. Such a frame is no event: compare what it names with
    /// [`check_identity`](super::check_identity) and go on.
    pub fn is_connection_marker(&self) -> bool {
        let inner = self.data.get("type").and_then(Value::as_str);
        self.kind() == CONNECTED || inner == Some(CONNECTED)
    }

    /// The frame as JSON.
    pub fn to_value(&self) -> Value {
        let mut frame = Map::new();
        frame.insert("type".to_owned(), self.kind().into());
        frame.insert("data".to_owned(), self.data.clone().into());
        if let Some(id) = self.id() {
            frame.insert("id".to_owned(), id.into());
        }
        frame.into()
    }

    /// The frame with other data.
    pub(super) fn with_data(self, data: Map<String, Value>) -> Self {
        Self { data, ..self }
    }

    /// The parts of the frame.
    pub(super) fn into_parts(self) -> (Identifier, Option<Identifier>, Map<String, Value>) {
        (self.kind, self.id, self.data)
    }

    /// Takes the data out.
    pub(super) fn take_data(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.data)
    }
}

fn optional(id: Option<&str>) -> Result<Option<Identifier>, Refusal> {
    id.map(|id| identifier("/id", id)).transpose()
}

fn identifier(path: &str, text: &str) -> Result<Identifier, Refusal> {
    Identifier::new(text).map_err(|refused| shape(path, refused.rule().to_owned()))
}

fn shape(path: impl Into<String>, rule: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::FrameShape(Refused::new(path, rule))
}
