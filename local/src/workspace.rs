//! Paths inside a workspace, and what can be done there without ever leaving it (wire protocol, 13.1).
//!
//! A path is walked folder by folder from an open descriptor, no step follows a link by itself, and a link is expanded
//! here, where it cannot lead outside. So it does not matter what is swapped in the tree meanwhile.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use tangle_sandbox::contract::limits::MAX_PATH;
use uuid::Uuid;

/// Links that one path may go through.
const MAX_LINKS: usize = 40;

/// Why a path was refused or a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// Empty, too long, or with a NUL.
    #[error("must have 1 to {MAX_PATH} bytes and no NUL")]
    Malformed,
    /// It leads outside of the workspace.
    #[error("leads outside of the workspace")]
    Outside,
    /// There is nothing.
    #[error("there is no such file")]
    Absent,
    /// It is a folder, a pipe, a socket or a device.
    #[error("is not a regular file")]
    NotAFile,
    /// It, or a part of the way to it, is no folder.
    #[error("is not a directory")]
    NotADirectory,
    /// Something is there already.
    #[error("exists already")]
    Exists,
    /// The folder is not empty.
    #[error("is a directory that is not empty")]
    NotEmpty,
    /// The file has more bytes than asked for.
    #[error("has {size} bytes, more than the limit")]
    TooLarge {
        /// Bytes of the file.
        size: u64,
    },
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The system refuses.
    #[error("cannot be used: {0}")]
    Io(io::ErrorKind),
}

impl From<Errno> for PathError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Absent,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::EXIST => Self::Exists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::ISDIR => Self::NotAFile,
            Errno::NAMETOOLONG => Self::Malformed,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full,
            other => Self::Io(io::Error::from(other).kind()),
        }
    }
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => Errno::from_raw_os_error(code).into(),
            None => Self::Io(error.kind()),
        }
    }
}

/// Whether a link at the end of a path is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Follow,
    Keep,
}

/// A place inside: an open folder and a name in it, or the workspace itself.
struct Spot {
    folder: OwnedFd,
    /// `None` for `folder` itself.
    name: Option<OsString>,
}

/// One entry of a folder.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) stat: Stat,
}

/// An open workspace.
pub(crate) struct Workspace {
    root: OwnedFd,
    path: Vec<u8>,
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Workspace {
    /// Opens the workspace at this canonical path.
    pub(crate) fn open(path: &Path) -> Result<Self, PathError> {
        let root = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self {
            root,
            path: path.as_os_str().as_bytes().to_vec(),
        })
    }

    /// The path below the workspace: a relative one as it is, an absolute one when it lies inside.
    fn inside<'a>(&self, path: &'a str) -> Result<&'a [u8], PathError> {
        let bytes = path.as_bytes();
        if bytes.is_empty() || bytes.len() > MAX_PATH || bytes.contains(&0) {
            return Err(PathError::Malformed);
        }
        if bytes[0] != b'/' {
            return Ok(bytes);
        }
        let below = bytes.strip_prefix(&*self.path).ok_or(PathError::Outside)?;
        match below.first() {
            None => Ok(b"."),
            Some(b'/') => Ok(&below[1..]),
            Some(_) => Err(PathError::Outside),
        }
    }

    fn walk(&self, path: &str, last: Last, make: bool) -> Result<Spot, PathError> {
        let mut rest: VecDeque<OsString> = components(self.inside(path)?).collect();
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut here = self.root.try_clone()?;
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                here = above.pop().ok_or(PathError::Outside)?;
                continue;
            }
            let is_last = rest.is_empty();
            let kind = match statat(&here, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(FileType::from_raw_mode(stat.st_mode)),
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(errno.into()),
            };
            if kind == Some(FileType::Symlink) && (!is_last || last == Last::Follow) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::Io(io::ErrorKind::Other));
                }
                match readlinkat(&here, &name, Vec::new()) {
                    Ok(target) => {
                        let target = target.into_bytes();
                        let target = self.link_target(&target)?;
                        if target.1 {
                            above.clear();
                            here = self.root.try_clone()?;
                        }
                        for part in target.0.into_iter().rev() {
                            rest.push_front(part);
                        }
                        continue;
                    }
                    Err(Errno::INVAL) => {} // it is no link any more
                    Err(errno) => return Err(errno.into()),
                }
            }
            if is_last {
                return Ok(Spot {
                    folder: here,
                    name: Some(name),
                });
            }
            if kind.is_none() && make {
                match mkdirat(&here, &name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            let next = open_folder(here.as_fd(), &name)?;
            above.push(std::mem::replace(&mut here, next));
        }
        Ok(Spot {
            folder: here,
            name: None,
        })
    }

    /// The parts of a link's target, and whether they begin at the workspace's root.
    fn link_target(&self, target: &[u8]) -> Result<(Vec<OsString>, bool), PathError> {
        if target.first() != Some(&b'/') {
            return Ok((components(target).collect(), false));
        }
        let below = target.strip_prefix(&*self.path).ok_or(PathError::Outside)?;
        match below.first() {
            None | Some(b'/') => Ok((components(below).collect(), true)),
            Some(_) => Err(PathError::Outside),
        }
    }

    /// The whole content of a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, PathError> {
        let spot = self.walk(path, Last::Follow, false)?;
        let name = spot.name.ok_or(PathError::NotAFile)?;
        // Looked at before it is opened, since opening a device may do something.
        let stat = statat(&spot.folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        must_be_file(&stat)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&spot.folder, &name, flags, Mode::empty()).map_err(no_link)?;
        let stat = fstat(&file)?;
        must_be_file(&stat)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > limit as u64 {
            return Err(PathError::TooLarge { size });
        }
        let mut content = Vec::with_capacity(size as usize);
        let read = File::from(file)
            .take(limit as u64 + 1)
            .read_to_end(&mut content)?;
        if read > limit {
            return Err(PathError::TooLarge { size: read as u64 });
        }
        Ok(content)
    }

    /// Replaces a file as a whole; missing folders are made.
    pub(crate) fn write(&self, path: &str, content: &[u8], mode: u16) -> Result<(), PathError> {
        if path.ends_with('/') {
            return Err(PathError::NotAFile);
        }
        let spot = self.walk(path, Last::Follow, true)?;
        let name = spot.name.ok_or(PathError::NotAFile)?;
        match statat(&spot.folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => must_be_file(&stat)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let temporary = format!(".tangle-{}", Uuid::new_v4().simple());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&spot.folder, &*temporary, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        let written = file
            .write_all(content)
            .map_err(PathError::from)
            .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(u32::from(mode) & 0o777))?))
            .and_then(|()| Ok(renameat(&spot.folder, &*temporary, &spot.folder, &name)?));
        if written.is_err() {
            let _ = unlinkat(&spot.folder, &*temporary, AtFlags::empty()); // the first error is the one that counts
        }
        written
    }

    /// What is there; a link itself, not what it leads to.
    pub(crate) fn stat(&self, path: &str) -> Result<Entry, PathError> {
        let spot = self.walk(path, Last::Keep, false)?;
        let (name, stat) = match spot.name {
            Some(name) => {
                let stat = statat(&spot.folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                (name, stat)
            }
            None => (OsString::from("."), fstat(&spot.folder)?),
        };
        Ok(Entry { name, stat })
    }

    /// The entries of a folder, sorted by name.
    pub(crate) fn list(&self, path: &str, hidden: bool) -> Result<Vec<Entry>, PathError> {
        let folder = self.folder(path)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let dotted = name.as_bytes().starts_with(b".");
            if name == "." || name == ".." || (dotted && !hidden) {
                continue;
            }
            match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(Entry { name, stat }),
                Err(Errno::NOENT) => {} // it went away meanwhile
                Err(errno) => return Err(errno.into()),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn folder(&self, path: &str) -> Result<OwnedFd, PathError> {
        let spot = self.walk(path, Last::Follow, false)?;
        match spot.name {
            Some(name) => open_folder(spot.folder.as_fd(), &name),
            None => Ok(spot.folder),
        }
    }

    /// Whether `path` is a folder inside.
    pub(crate) fn has_folder(&self, path: &str) -> Result<(), PathError> {
        self.folder(path).map(drop)
    }

    /// Makes a folder; with `parents` also those above it, and then an existing one is fine.
    pub(crate) fn mkdir(&self, path: &str, parents: bool) -> Result<(), PathError> {
        let spot = self.walk(path, Last::Follow, parents)?;
        let Some(name) = spot.name else {
            return if parents {
                Ok(())
            } else {
                Err(PathError::Exists)
            };
        };
        match mkdirat(&spot.folder, &name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) if parents => open_folder(spot.folder.as_fd(), &name).map(drop),
            other => Ok(other?),
        }
    }

    /// Removes a file, a link or a folder; a folder with content only with `recursive`.
    pub(crate) fn remove(&self, path: &str, recursive: bool) -> Result<(), PathError> {
        let spot = self.walk(path, Last::Keep, false)?;
        let name = spot.name.ok_or(PathError::Outside)?; // the workspace itself stays
        remove_entry(spot.folder.as_fd(), &name, recursive)
    }

    /// Renames a file, a link or a folder.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), PathError> {
        let source = self.walk(from, Last::Keep, false)?;
        let target = self.walk(to, Last::Keep, false)?;
        let source_name = source.name.ok_or(PathError::Outside)?;
        let target_name = target.name.ok_or(PathError::Exists)?;
        Ok(renameat(
            &source.folder,
            &source_name,
            &target.folder,
            &target_name,
        )?)
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| OsStr::from_bytes(part).to_owned())
}

/// A step that does not follow a link: one that was swapped in meanwhile is refused.
fn open_folder(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, PathError> {
    openat(folder, name, FOLDER, Mode::empty()).map_err(no_link)
}

/// A link where none may be is how a swap shows.
fn no_link(errno: Errno) -> PathError {
    match errno {
        Errno::LOOP => PathError::Outside,
        other => other.into(),
    }
}

fn must_be_file(stat: &Stat) -> Result<(), PathError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(PathError::NotAFile),
    }
}

fn remove_entry(folder: BorrowedFd<'_>, name: &OsStr, recursive: bool) -> Result<(), PathError> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return Ok(other?),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) if recursive => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(PathError::NotEmpty),
        other => return Ok(other?),
    }
    let inner = open_folder(folder, name)?;
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        let child = OsStr::from_bytes(entry.file_name().to_bytes());
        if child != "." && child != ".." {
            match remove_entry(inner.as_fd(), child, true) {
                Ok(()) | Err(PathError::Absent) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::{PathError, Workspace};

    struct Tree {
        folder: tempfile::TempDir,
        root: PathBuf,
    }

    fn tree() -> (Tree, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("workspace");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(base.join("secret"), "outside").unwrap();
        let workspace = Workspace::open(&root).unwrap();
        (Tree { folder, root }, workspace)
    }

    fn outside<T: std::fmt::Debug>(result: Result<T, PathError>) {
        assert!(matches!(result, Err(PathError::Outside)), "{result:?}");
    }

    #[test]
    fn a_way_out_is_refused_on_every_door() {
        let (tree, workspace) = tree();
        symlink(tree.folder.path(), tree.root.join("up")).unwrap();
        symlink("../secret", tree.root.join("file")).unwrap();
        symlink("/etc", tree.root.join("etc")).unwrap();
        symlink("../nowhere", tree.root.join("dangling")).unwrap();
        std::fs::create_dir(tree.root.join("a")).unwrap();
        for path in [
            "file",
            "up/secret",
            "etc/passwd",
            "a/../../secret",
            "/etc/passwd",
            "../x",
        ] {
            outside(workspace.read(path, 100));
            outside(workspace.write(path, b"x", 0o644));
        }
        outside(workspace.write("dangling", b"x", 0o644));
        outside(workspace.list("up", true));
        outside(workspace.list("..", true));
        outside(workspace.mkdir("up/new", true));
        outside(workspace.remove("up/secret", true));
        outside(workspace.rename("up/secret", "here"));
        outside(workspace.rename("a", "up/a"));
        assert_eq!(
            std::fs::read(tree.folder.path().join("secret")).unwrap(),
            b"outside"
        );
        assert!(!tree.folder.path().join("nowhere").exists());
        workspace.remove("up", true).unwrap(); // the link, not what it leads to
        assert!(tree.folder.path().join("secret").exists());
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let (tree, workspace) = tree();
        workspace.write("a/b/file", b"hi", 0o644).unwrap();
        symlink("a/b", tree.root.join("short")).unwrap();
        symlink(tree.root.join("a"), tree.root.join("absolute")).unwrap();
        symlink("../b/file", tree.root.join("a/b/around")).unwrap();
        for path in [
            "short/file",
            "absolute/b/file",
            "a/b/around",
            "short/../b/file",
        ] {
            assert_eq!(workspace.read(path, 100).unwrap(), b"hi", "{path}");
        }
        let whole = tree.root.join("a/b/file");
        assert_eq!(workspace.read(whole.to_str().unwrap(), 100).unwrap(), b"hi");
        symlink("round", tree.root.join("round")).unwrap();
        assert!(matches!(
            workspace.read("round", 100),
            Err(PathError::Io(_))
        ));
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let (tree, workspace) = tree();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            tree.root.join("pipe"),
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        std::fs::create_dir(tree.root.join("folder")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(tree.root.join("socket")).unwrap();
        for path in ["pipe", "folder", "socket", "."] {
            assert!(
                matches!(workspace.read(path, 9), Err(PathError::NotAFile)),
                "{path}"
            );
            assert!(
                matches!(workspace.write(path, b"", 0o644), Err(PathError::NotAFile)),
                "{path}"
            );
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        let (_tree, workspace) = tree();
        let long = "a/".repeat(2049);
        for path in ["", "a\0b", &long, &"n".repeat(300)] {
            assert!(matches!(
                workspace.write(path, b"", 0o644),
                Err(PathError::Malformed | PathError::NotAFile)
            ));
        }
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let (tree, workspace) = tree();
        workspace.write("a", b"old", 0o600).unwrap();
        assert!(workspace.write("a/b", b"new", 0o644).is_err());
        assert_eq!(workspace.read("a", 9).unwrap(), b"old");
        let names: Vec<_> = std::fs::read_dir(&tree.root).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_link_that_is_swapped_meanwhile_never_leads_outside() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let (tree, workspace) = tree();
        std::fs::create_dir(tree.root.join("real")).unwrap();
        std::fs::write(tree.root.join("real/secret"), "inside").unwrap();
        symlink("real", tree.root.join("place")).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (place, spare) = (tree.root.join("place"), tree.root.join("spare"));
                while !stop.load(Ordering::Relaxed) {
                    symlink("real", &spare).unwrap();
                    std::fs::rename(&spare, &place).unwrap();
                    symlink(tree.folder.path(), &spare).unwrap();
                    std::fs::rename(&spare, &place).unwrap();
                }
            });
            let mut inside = 0;
            for _ in 0..3_000 {
                if let Ok(content) = workspace.read("place/secret", 100) {
                    assert_eq!(content, b"inside");
                    inside += 1;
                }
                let _ = workspace.write("place/new", b"x", 0o644);
            }
            stop.store(true, Ordering::Relaxed);
            assert!(inside > 0, "the swap never showed the inner folder");
        });
        assert!(!tree.folder.path().join("new").exists());
    }
}
