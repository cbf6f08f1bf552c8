//! The variable that marks the processes of one run, one agent or one sandbox.

use std::fmt;

use uuid::Uuid;

/// Names the processes that belong together: every child inherits the variable, so a later [`sweep`](super::sweep())
/// finds it although it left its process group and session.
///
/// A child can drop the variable, so a marker is best effort where no PID namespace holds the tree.
#[derive(Clone, PartialEq, Eq)]
pub struct Marker {
    variable: &'static str,
    value: String,
}

impl Marker {
    /// A fresh random marker for one command or one agent process (`TANGLE_RUN_MARKER`).
    #[must_use]
    pub fn run() -> Self {
        Self {
            variable: "TANGLE_RUN_MARKER",
            value: Uuid::new_v4().simple().to_string(),
        }
    }

    /// The marker of a whole sandbox (`TANGLE_SANDBOX_MARKER`), from a value that is kept with the sandbox, so that a
    /// restarted deployment still finds what an earlier one left behind.
    #[must_use]
    pub fn sandbox(value: impl Into<String>) -> Self {
        Self {
            variable: "TANGLE_SANDBOX_MARKER",
            value: value.into(),
        }
    }

    /// The environment entry to give to a child.
    #[must_use]
    pub fn entry(&self) -> (String, String) {
        (self.variable.to_owned(), self.value.clone())
    }

    /// True when a process environment (entries ended by NUL, as in `/proc/PID/environ`) holds this marker.
    #[must_use]
    pub fn is_in(&self, environ: &[u8]) -> bool {
        let entry = format!("{}={}", self.variable, self.value);
        !self.value.is_empty()
            && environ
                .split(|byte| *byte == 0)
                .any(|held| held == entry.as_bytes())
    }
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Marker({})", self.variable)
    }
}

#[cfg(test)]
mod tests {
    use super::Marker;

    #[test]
    fn only_the_whole_entry_counts() {
        let marker = Marker::sandbox("abc");
        assert!(marker.is_in(b"A=1\0TANGLE_SANDBOX_MARKER=abc\0B=2\0"));
        assert!(!marker.is_in(b"TANGLE_SANDBOX_MARKER=abcd\0"));
        assert!(!marker.is_in(b"X=TANGLE_SANDBOX_MARKER=abc\0"));
    }

    #[test]
    fn an_empty_value_marks_nothing() {
        assert!(!Marker::sandbox("").is_in(b"TANGLE_SANDBOX_MARKER=\0"));
    }
}
