//! Paths inside a workspace, and what can be done there without ever leaving it (wire protocol, 13.1).
//!
//! A path is walked folder by folder from an open descriptor, no step follows a link by itself, and a link is expanded
//! here, where it cannot lead outside. So it does not matter what is swapped in the tree meanwhile.

mod error;
mod remove;
#[cfg(test)]
mod tests;
mod walk;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use uuid::Uuid;

pub(crate) use error::PathError;
use remove::remove_entry;
pub(crate) use remove::remove_folder;
use walk::{FOLDER, Last, no_link, open_folder};

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

impl Workspace {
    /// Opens the workspace at this canonical path.
    pub(crate) fn open(path: &Path) -> Result<Self, PathError> {
        let root = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self {
            root,
            path: path.as_os_str().as_bytes().to_vec(),
        })
    }

    /// The whole content of a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, PathError> {
        let spot = self.walk(path, Last::Follow)?;
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
        if path.ends_with('/') || path == ".." || path.ends_with("/..") {
            return Err(PathError::NotAFile);
        }
        let spot = self.walk_making(path)?;
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
        let spot = self.walk(path, Last::Keep)?;
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
        let spot = self.walk(path, Last::Follow)?;
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
        let spot = match parents {
            true => self.walk_making(path)?,
            false => self.walk(path, Last::Follow)?,
        };
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
        let spot = self.walk(path, Last::Keep)?;
        let name = spot.name.ok_or(PathError::Outside)?; // the workspace itself stays
        remove_entry(spot.folder.as_fd(), &name, recursive)
    }

    /// Renames a file, a link or a folder.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), PathError> {
        let source = self.walk(from, Last::Keep)?;
        let target = self.walk(to, Last::Keep)?;
        let source_name = source.name.ok_or(PathError::Outside)?;
        let target_name = target.name.ok_or(PathError::Exists)?;
        renameat(&source.folder, &source_name, &target.folder, &target_name).map_err(|errno| {
            match errno {
                // The one way in which this call can be invalid.
                Errno::INVAL => PathError::IntoItself,
                other => other.into(),
            }
        })
    }
}

fn must_be_file(stat: &Stat) -> Result<(), PathError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(PathError::NotAFile),
    }
}
