//! The answer of every check of a document: where it failed and which rule it broke, never the value.

use std::borrow::Cow;
use std::fmt;

use super::bounds::BoundError;
use super::text;

/// A document that was refused: the path of the offending place and the rule that it broke.
///
/// Neither ever holds a value of the document, so both may be logged and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    path: String,
    rule: Cow<'static, str>,
    keyword: &'static str,
    unknown: Vec<String>,
    /// How much of the end of the path lies inside of the value that was refused as a whole.
    inside: usize,
}

impl Refused {
    /// A refusal at `path` (a JSON pointer such as `/model/effort`, empty for the root) by `rule`.
    ///
    /// The caller keeps values out of both.
    pub fn new(path: impl Into<String>, rule: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
            keyword: "",
            unknown: Vec::new(),
            inside: 0,
        }
    }

    /// The same refusal, by this keyword of a schema.
    pub fn by(mut self, keyword: &'static str) -> Self {
        self.keyword = keyword;
        self
    }

    /// The same refusal seen from the container: `path` leads to the value that was refused.
    pub fn under(mut self, path: &str) -> Self {
        self.path.insert_str(0, path);
        self
    }

    /// The same refusal of these fields, which a strict object does not know.
    pub(crate) fn of_unknown(mut self, names: Vec<String>) -> Self {
        self.unknown = names;
        self
    }

    /// The same refusal of the value at `place`, into which the path leads further.
    pub(crate) fn of_whole(mut self, place: usize) -> Self {
        self.inside = self.path.len().saturating_sub(place);
        self
    }

    /// The fields that a strict object does not know, sorted; instead of a name that looks like none, its length.
    pub fn unknown_fields(&self) -> &[String] {
        &self.unknown
    }

    /// The value that was refused: [`path`](Self::path), except where a value is too large as a whole and the path leads to
    /// what is too much in it.
    pub fn place(&self) -> &str {
        let end = self.path.len().saturating_sub(self.inside);
        self.path.get(..end).unwrap_or(&self.path)
    }

    /// The same refusal seen from a value inside: `path` leads to it. `None` when something outside of it was refused.
    pub(crate) fn within(mut self, path: &str) -> Option<Self> {
        let rest = self.path.strip_prefix(path)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        self.path = rest.to_owned();
        self.inside = self.inside.min(self.path.len());
        Some(self)
    }

    /// Where: a JSON pointer such as `/model/effort`, empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Which rule, in words such as `must be a string`.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The keyword of the schema that refused, such as `maxLength` or `x-rule`; none outside of a schema.
    pub fn keyword(&self) -> Option<&'static str> {
        (!self.keyword.is_empty()).then_some(self.keyword)
    }

    /// `JSON_BOUND_VIOLATION` where a value is too large, else `VALIDATION_ERROR`.
    pub fn code(&self) -> &'static str {
        match self.keyword {
            "x-json" => BoundError::CODE,
            _ => "VALIDATION_ERROR",
        }
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
        if self.path.is_empty() {
            return f.write_str(&self.rule);
        }
        write!(f, "{}: {}", self.path, self.rule)
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
