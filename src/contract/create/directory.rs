//! Working directories (core contracts, 7.2).

use crate::contract::types::RepositoryPath;

/// The rule of a path below a repository: it cannot leave it, on any system.
pub(crate) fn repository_path(path: &str) -> Result<(), &'static str> {
    let drive = path.as_bytes().get(1) == Some(&b':')
        && path.starts_with(|c: char| c.is_ascii_alphabetic());
    if path.starts_with('/') || drive {
        return Err("must be a relative path");
    }
    if path.contains('\\') {
        return Err("must not hold `\\`");
    }
    if path.split('/').any(|segment| segment == "..") {
        return Err("must not hold `..`");
    }
    host_path(path)
}

/// The rule of a path on the host: no control characters.
pub(crate) fn host_path(path: &str) -> Result<(), &'static str> {
    if path.contains(|c: char| c.is_ascii_control()) {
        return Err("must not hold control characters");
    }
    Ok(())
}

impl RepositoryPath {
    /// The same directory without segments that say nothing; `.` when none is left.
    ///
    /// ```
    /// use tangle_sandbox::contract::types::RepositoryPath;
    ///
    /// assert_eq!(RepositoryPath::new("./a//b/.")?.normalised(), "a/b");
    /// assert_eq!(RepositoryPath::new("./.")?.normalised(), ".");
    /// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
    /// ```
    pub fn normalised(&self) -> String {
        let segments = self.split('/');
        let segments: Vec<&str> = segments
            .filter(|segment| !matches!(*segment, "" | "."))
            .collect();
        match segments[..] {
            [] => ".".to_owned(),
            _ => segments.join("/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::types::HostPath;

    #[test]
    fn core_7_2_a_repository_path_cannot_leave_the_repository() {
        for path in [
            "", "/a", "//a", "../a", "a/../b", "a/..", "..", "C:x", "c:", "a\\b", "a\nb",
            "a\u{7f}", "a\0",
        ] {
            assert!(RepositoryPath::new(path).is_err(), "{path:?}");
        }
        for path in [
            ".", "a", "./a//b/.", "a..b", "...", "é:x", "ab:c", " a", "a/", "\u{85}", "-",
        ] {
            assert!(RepositoryPath::new(path).is_ok(), "{path:?}");
        }
        assert!(RepositoryPath::new("a".repeat(4_096)).is_ok());
        assert!(RepositoryPath::new("a".repeat(4_097)).is_err());
        assert!(RepositoryPath::new("😀".repeat(2_049)).is_err());
    }

    #[test]
    fn core_7_2_a_host_path_is_kept_as_it_is() {
        assert_eq!(HostPath::new("/a/../b\\c").unwrap().as_str(), "/a/../b\\c");
        assert!(HostPath::new("a\tb").is_err());
        assert!(HostPath::new("a".repeat(4_097)).is_err());
    }
}
