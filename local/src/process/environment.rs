//! The environment of commands and agents: a fixed list, nothing of the deployment's own.

use std::io;
use std::path::{Path, PathBuf};

/// Variables of the deployment that a child may see: where programs, locales and certificate roots are.
const PASSED_ON: [&str; 6] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// True for a variable that says where a child lives and where its programs are: `HOME`, `TMPDIR`, `PATH` and everything
/// that begins with `XDG_`. Nobody else's value for it is taken.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    matches!(name, "HOME" | "TMPDIR" | "PATH") || name.starts_with("XDG_")
}

/// A private home directory: `HOME`, the XDG folders and `TMPDIR` all lie in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Makes the folders (mode 0700 on Unix) and returns the home.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let home = Self { path: path.into() };
        for (_, folder) in home.folders() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        Ok(home)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole fixed environment of a child that lives here.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut entries: Vec<(String, String)> = PASSED_ON
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect();
        if !entries.iter().any(|(name, _)| name == "PATH") {
            entries.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()));
        }
        entries.push(("SHELL".to_owned(), "/bin/sh".to_owned()));
        entries.push(("TERM".to_owned(), "dumb".to_owned()));
        entries.extend(
            self.folders()
                .into_iter()
                .map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned())),
        );
        entries
    }

    /// The same with more variables. They may replace a locale or the certificate roots, but none that [`is_reserved`].
    #[must_use]
    pub fn environment_with(
        &self,
        more: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let mut entries = self.environment();
        entries.extend(more.into_iter().filter(|(name, _)| !is_reserved(name)));
        entries
    }

    fn folders(&self) -> [(&'static str, PathBuf); 6] {
        [
            ("HOME", self.path.clone()),
            ("TMPDIR", self.path.join("tmp")),
            ("XDG_CONFIG_HOME", self.path.join(".config")),
            ("XDG_DATA_HOME", self.path.join(".local/share")),
            ("XDG_STATE_HOME", self.path.join(".local/state")),
            ("XDG_CACHE_HOME", self.path.join(".cache")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Home;

    #[test]
    fn a_home_passes_on_nothing_that_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join("home")).unwrap();
        let names: Vec<String> = home
            .environment()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert!(names.iter().any(|name| name == "HOME") && names.iter().any(|name| name == "PATH"));
        assert!(
            !names.iter().any(|name| name.starts_with("CARGO")),
            "{names:?}"
        );
        assert!(home.path().join("tmp").is_dir());
    }

    #[test]
    fn a_given_variable_never_moves_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path().join("home")).unwrap();
        let given = [
            "HOME",
            "TMPDIR",
            "PATH",
            "XDG_DATA_HOME",
            "XDG_RUNTIME_DIR",
            "LANG",
        ]
        .map(|name| (name.to_owned(), "/given".to_owned()));
        let mut taken: Vec<String> = home
            .environment_with(given)
            .into_iter()
            .filter(|(_, value)| value == "/given")
            .map(|(name, _)| name)
            .collect();
        taken.sort();
        assert_eq!(taken, ["LANG"]);
    }
}
