//! Identifiers: short strings without white space at their ends.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::check::Refused;
use super::super::limits::MAX_IDENTIFIER;
use super::super::text::{deserialize_quietly, exceeds_utf16, has_outer_white_space};

const RULE: &str = "must be 1 to 512 UTF-16 units without white space at its ends";

/// A string of 1 to 512 UTF-16 code units that neither begins nor ends with ECMAScript white space.
///
/// White space and controls inside it are taken.
///
/// ```
/// use tangle_sandbox::contract::bounds::Identifier;
///
/// let id: Identifier = "session 1".parse()?;
/// assert_eq!(id.as_str(), "session 1");
/// assert!("session 1\n".parse::<Identifier>().is_err());
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier(String);

impl Identifier {
    /// Checks and takes `text`.
    ///
    /// # Errors
    /// [`Refused`] at the root when it is empty, too long or has white space at an end.
    pub fn parse(text: impl Into<String>) -> Result<Self, Refused> {
        let text = text.into();
        if !is_identifier(&text) {
            return Err(Refused::new("", RULE));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && !exceeds_utf16(text, MAX_IDENTIFIER) && !has_outer_white_space(text)
}

impl Deref for Identifier {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Identifier {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Identifier {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Identifier {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        Self::parse(text)
    }
}

impl Serialize for Identifier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Identifier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_quietly(
            deserializer,
            "1 to 512 UTF-16 units without white space at its ends",
            |text| is_identifier(text).then(|| Self(text.to_owned())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Identifier;
    use serde_json::json;

    #[test]
    fn an_identifier_is_measured_in_utf16_and_trimmed_as_ecmascript() {
        for taken in ["a", "a b", "a\u{1}b", "\u{85}a", &"😀".repeat(256)] {
            let id = Identifier::parse(taken).unwrap();
            assert_eq!(
                serde_json::from_value::<Identifier>(json!(taken)).unwrap(),
                id
            );
        }
        for refused in ["", " a", "a\u{A0}", "\u{FEFF}a", "a\n", &"😀".repeat(257)] {
            assert!(Identifier::parse(refused).is_err(), "{refused:?}");
            assert!(serde_json::from_value::<Identifier>(json!(refused)).is_err());
        }
    }

    #[test]
    fn a_refused_identifier_is_not_echoed() {
        let parse = Identifier::parse("hunter2 ").unwrap_err().to_string();
        let text = serde_json::from_value::<Identifier>(json!("hunter2 ")).unwrap_err();
        let number = serde_json::from_value::<Identifier>(json!(987_654)).unwrap_err();
        let all = format!("{parse} {text} {number}");
        assert!(!all.contains("hunter2") && !all.contains("987654"), "{all}");
    }
}
