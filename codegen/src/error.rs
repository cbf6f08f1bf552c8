//! The one error of the generator.

use std::fmt;

/// A schema that cannot be generated from: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    file: String,
    pointer: String,
    rule: String,
}

impl SchemaError {
    pub(crate) fn new(
        file: impl Into<String>,
        pointer: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        SchemaError {
            file: file.into(),
            pointer: pointer.into(),
            rule: rule.into(),
        }
    }

    /// The schema file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// JSON pointer of the place in that file.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// What is wrong there.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}: {}", self.file, self.pointer, self.rule)
    }
}

impl std::error::Error for SchemaError {}
