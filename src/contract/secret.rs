//! A secret text: `Debug` shows a mark, there is no `Display` and no `Serialize`.

use std::fmt;

/// A secret text that never shows itself.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The text itself; the caller answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Runs `f` as the writer of a request body, the one place where secrets are written out.
pub fn in_body<R>(f: impl FnOnce() -> R) -> R {
    f()
}
