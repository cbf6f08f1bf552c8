//! A string that no log, error or document shows; it leaves the program only inside a request body.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text;

const REDACTED: &str = "[redacted]";

/// A credential or another value that must not be seen.
///
/// * `Debug` prints `[redacted]`.
/// * There is no `Display`: `format!("{secret}")` does not compile. Print a name for the secret instead.
/// * There is no `Serialize`: a type that holds a secret cannot derive it by accident. Generated request
///   types name [`serialize`], which writes the value only within [`in_body`].
/// * Equality takes the same time wherever two secrets of one length differ.
///
/// [`Secret::expose`] is the one way to the value.
///
/// ```
/// use tangle_sandbox::contract::secret::Secret;
///
/// let key = Secret::from("sk-live-1");
/// assert_eq!(format!("{key:?}"), "[redacted]");
/// assert_eq!(key.expose(), "sk-live-1");
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The value itself. Keep it out of logs, errors and documents.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.0.as_bytes(), other.0.as_bytes());
        // Every byte is looked at, so that the time tells nothing about where they differ.
        let differ = left
            .iter()
            .zip(right)
            .fold(0, |differ, (a, b)| black_box(differ | (a ^ b)));
        left.len() == right.len() && differ == 0
    }
}

impl Eq for Secret {}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize_quietly(deserializer, "a string", |value| {
            Some(Self(value.into_owned()))
        })
    }
}

thread_local! {
    static BODIES: Cell<u32> = const { Cell::new(0) };
}

/// Runs `build` with secrets written as they are: the one door from a secret to a request body.
///
/// Only on this thread and only until `build` returns or panics; calls may nest. Serialise the body inside,
/// nothing else: a log line written here would show the value too.
pub fn in_body<T>(build: impl FnOnce() -> T) -> T {
    let _open = OpenBody::new();
    build()
}

struct OpenBody;

impl OpenBody {
    fn new() -> Self {
        BODIES.set(BODIES.get() + 1);
        Self
    }
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        BODIES.set(BODIES.get() - 1);
    }
}

/// What [`serialize`] can write: a secret, or an option, list or map of secrets.
pub trait InBody: sealed::Sealed {
    /// Writes the value, each secret by way of `secret`.
    #[doc(hidden)]
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

mod sealed {
    pub trait Sealed {}
}

/// Writes a field that holds secrets: the values within [`in_body`], `[redacted]` anywhere else.
///
/// For `#[serde(serialize_with = "...")]` of generated types.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: InBody, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write(serializer)
}

/// Lends `Serialize` to one value for the length of a call, since secrets themselves have none.
struct Written<'a, T>(&'a T);

impl<T: InBody> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl sealed::Sealed for Secret {}

impl InBody for Secret {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let open = BODIES.get() > 0;
        serializer.serialize_str(if open { &self.0 } else { REDACTED })
    }
}

impl<T: InBody> sealed::Sealed for Option<T> {}

impl<T: InBody> InBody for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => serializer.serialize_some(&Written(value)),
            None => serializer.serialize_none(),
        }
    }
}

impl<T: InBody> sealed::Sealed for Vec<T> {}

impl<T: InBody> InBody for Vec<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for value in self {
            list.serialize_element(&Written(value))?;
        }
        list.end()
    }
}

impl<T: InBody> sealed::Sealed for BTreeMap<String, T> {}

impl<T: InBody> InBody for BTreeMap<String, T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, &Written(value))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
    struct Body {
        #[serde(serialize_with = "serialize")]
        key: Secret,
        #[serde(serialize_with = "serialize", skip_serializing_if = "Option::is_none")]
        spare: Option<Secret>,
        #[serde(serialize_with = "serialize")]
        list: Vec<Secret>,
        #[serde(serialize_with = "serialize")]
        env: BTreeMap<String, Secret>,
    }

    fn body() -> Body {
        Body {
            key: "k".into(),
            spare: Some("s".into()),
            list: vec!["l".into()],
            env: BTreeMap::from([("A".to_owned(), "e".into())]),
        }
    }

    #[test]
    fn secrets_are_written_inside_a_body_only() {
        let redacted = json!({
            "key": "[redacted]", "spare": "[redacted]", "list": ["[redacted]"], "env": {"A": "[redacted]"}
        });
        let shown = json!({"key": "k", "spare": "s", "list": ["l"], "env": {"A": "e"}});
        assert_eq!(serde_json::to_value(body()).unwrap(), redacted);
        let nested = in_body(|| in_body(|| serde_json::to_value(body()).unwrap()));
        assert_eq!(nested, shown);
        assert_eq!(serde_json::to_value(body()).unwrap(), redacted);
        assert_eq!(serde_json::from_value::<Body>(shown).unwrap(), body());
    }

    #[test]
    fn a_panic_or_another_thread_does_not_leave_the_door_open() {
        let panicked = std::panic::catch_unwind(|| in_body(|| panic!("in the body")));
        assert!(panicked.is_err());
        let other = in_body(|| {
            std::thread::spawn(|| serde_json::to_value(body()).unwrap()["key"].clone())
                .join()
                .unwrap()
        });
        assert_eq!(other, "[redacted]");
        assert_eq!(serde_json::to_value(body()).unwrap()["key"], "[redacted]");
    }

    #[test]
    fn debug_shows_nothing() {
        let text = format!("{:?} {:#?}", body(), body());
        assert!(text.contains("[redacted]"));
        assert!(!text.contains("\"k\"") && !text.contains("\"e\""), "{text}");
    }

    #[test]
    fn equality_sees_every_difference() {
        assert_eq!(Secret::from("abc"), Secret::from("abc"));
        for other in ["", "ab", "abcd", "abd", "bbc"] {
            assert_ne!(Secret::from("abc"), Secret::from(other));
        }
    }

    #[test]
    fn a_value_of_another_kind_is_not_echoed() {
        for value in [json!(99_887_766), json!(9988.5), json!(true)] {
            let error = serde_json::from_value::<Secret>(value)
                .unwrap_err()
                .to_string();
            assert_eq!(error, "expected a string");
        }
    }
}
