//! The answer of every check of a document: where it failed and which rule it broke, never the value.

use std::borrow::Cow;
use std::fmt;

/// A document that was refused: the path of the offending place and the rule that it broke.
///
/// Neither ever holds a value of the document, so both may be logged and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    path: String,
    rule: Cow<'static, str>,
}

impl Refused {
    /// A refusal at `path` (a JSON pointer such as `/model/effort`, empty for the root) by `rule`.
    ///
    /// The caller keeps values out of both.
    pub fn new(path: impl Into<String>, rule: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
        }
    }

    /// Where: a JSON pointer such as `/model/effort`, empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Which rule, in words such as `must be a string`.
    pub fn rule(&self) -> &str {
        &self.rule
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
