//! The answer of every check of a document: where it failed and which rule it broke, never the value.

use std::borrow::Cow;
use std::fmt;

use super::bounds::BoundError;
use super::{limits, text};

/// A document that was refused: the path of the offending place and the rule that it broke.
///
/// Neither ever holds a value of the document, so both may be logged and sent. [`steps`](Self::steps) and
/// [`unknown_fields`](Self::unknown_fields) hold keys as they stand in the document: they are for a code or a comparison.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused(Box<Inner>);

/// In a box, so that the result of a check is small where nothing is refused.
#[derive(Clone, PartialEq, Eq)]
struct Inner {
    path: String,
    rule: Cow<'static, str>,
    keyword: &'static str,
    unknown: Vec<Key>,
    /// The pointer to the value that was refused, its keys as they stand, where the path says something else: less of a key,
    /// the object that a field is missing from, or what is too much in a value that was refused as a whole.
    place: Option<String>,
}

impl Refused {
    /// A refusal at `path` (a JSON pointer such as `/model/effort`, empty for the root) by `rule`.
    ///
    /// The caller keeps values out of both.
    pub fn new(path: impl Into<String>, rule: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            path: path.into(),
            rule: rule.into(),
            keyword: "",
            unknown: Vec::new(),
            place: None,
        }))
    }

    /// The same refusal, by this keyword of a schema.
    pub fn by(mut self, keyword: &'static str) -> Self {
        self.0.keyword = keyword;
        self
    }

    /// The same refusal seen from the container: `path` leads to the value that was refused.
    pub fn under(mut self, path: &str) -> Self {
        self.0.path.insert_str(0, path);
        if let Some(place) = &mut self.0.place {
            place.insert_str(0, path);
        }
        self
    }

    /// The same refusal of these fields, which a strict object does not know.
    pub(crate) fn of_unknown(mut self, names: Vec<Key>) -> Self {
        self.0.unknown = names;
        self
    }

    /// The same refusal of the value to which this JSON pointer leads, whatever the path shows.
    pub(crate) fn at_place(mut self, place: impl Into<String>) -> Self {
        self.0.place = Some(place.into());
        self
    }

    /// See [`at_place`](Self::at_place).
    pub(crate) fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// The fields that a strict object does not know, in the order of their UTF-16 units: each as it stands in the document,
    /// except that of one of more than 512 units only the length is told.
    pub fn unknown_fields(&self) -> Vec<&str> {
        self.0.unknown.iter().map(Key::as_str).collect()
    }

    /// The keys and indices that lead to the value that was refused, as they stand in the document: to a field also where it is
    /// missing, and no further than a value that is too large as a whole. Of a key of more than 512 units only the length is
    /// told.
    pub fn steps(&self) -> Vec<String> {
        let place = self.0.place.as_ref().unwrap_or(&self.0.path);
        let steps = place.split('/').skip(1);
        steps
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect()
    }

    /// The same refusal seen from a value inside: `path` leads to it. `None` when something outside of it was refused.
    pub(crate) fn within(mut self, path: &str) -> Option<Self> {
        let rest = self.0.path.strip_prefix(path)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        self.0.path = rest.to_owned();
        if let Some(place) = &mut self.0.place {
            *place = place.strip_prefix(path).unwrap_or_default().to_owned();
        }
        Some(self)
    }

    /// Where: a JSON pointer such as `/model/effort`, empty for the root.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Which rule, in words such as `must be a string`.
    pub fn rule(&self) -> &str {
        &self.0.rule
    }

    /// The keyword of the schema that refused, such as `maxLength` or `x-rule`; none outside of a schema.
    pub fn keyword(&self) -> Option<&'static str> {
        (!self.0.keyword.is_empty()).then_some(self.0.keyword)
    }

    /// `JSON_BOUND_VIOLATION` where a value is too large, else `VALIDATION_ERROR`.
    pub fn code(&self) -> &'static str {
        match self.0.keyword {
            "x-json" => BoundError::CODE,
            _ => "VALIDATION_ERROR",
        }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("path", &self.0.path)
            .field("rule", &self.0.rule)
            .field("keyword", &self.0.keyword)
            .field("unknown", &self.0.unknown)
            .finish_non_exhaustive()
    }
}

/// A key of a document, as it stands there; of one of more than 512 units only the length.
///
/// A key may hold anything. It is printed as it is only where it looks like a name, else by its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    text: String,
    shown: Option<String>,
}

impl Key {
    pub(crate) fn new(key: &str) -> Self {
        let shown = step(key);
        match text::exceeds_utf16(key, limits::MAX_IDENTIFIER) {
            true => Self {
                text: shown,
                shown: None,
            },
            false => Self {
                text: key.to_owned(),
                shown: (shown != key).then_some(shown),
            },
        }
    }

    /// The key as it stands in the document.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key as it may be printed.
    fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.text)
    }

    /// The key as a step of a JSON pointer.
    pub(crate) fn pointer_step(&self) -> String {
        self.text.replace('~', "~0").replace('/', "~1")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

/// One step of a path: the key as it is when it looks like a name, else only its length, since a key may hold anything.
pub(crate) fn step(key: &str) -> String {
    let plain = key.len() <= 64
        && !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if plain {
        return key.to_owned();
    }
    format!("(key of {} units)", text::utf16_len(key))
}

impl From<&BoundError> for Refused {
    /// The violation with its place as a JSON pointer.
    fn from(error: &BoundError) -> Self {
        let violation = error.violation();
        Refused::new(violation.pointer(), violation.words()).by("x-json")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.path.is_empty() {
            return f.write_str(&self.0.rule);
        }
        write!(f, "{}: {}", self.0.path, self.0.rule)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::Refused;

    #[test]
    fn a_refusal_reads_as_path_and_rule() {
        let refused = Refused::new("/model/effort", "must be at most 100");
        assert_eq!(refused.to_string(), "/model/effort: must be at most 100");
        assert_eq!(
            Refused::new("", "must be an object").to_string(),
            "must be an object"
        );
    }
}
