//! Removing folders, however deep they are, with a bounded number of open descriptors.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, chmodat, renameat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use super::PathError;
use super::walk::open_folder;

/// Folders that are open at the same time. What lies deeper is moved up to the first of them before it is removed.
const MAX_OPEN: usize = 32;

/// What to do about folders whose modes keep their owner out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modes {
    Obey,
    /// Only where nobody else works in the tree, since a mode is set by name.
    Override,
}

/// A folder whose entries are being removed.
struct Level {
    name: OsString,
    dir: Dir,
    /// Entries that were moved here from below.
    moved: Vec<OsString>,
}

/// Removes a file, a link or a folder; a folder with content only with `recursive`.
pub(super) fn remove_entry(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    recursive: bool,
) -> Result<(), PathError> {
    match remove_one(folder, name)? {
        Removed::Gone => Ok(()),
        Removed::NotEmpty if recursive => remove_tree(folder, name, Modes::Obey),
        Removed::NotEmpty => Err(PathError::NotEmpty),
    }
}

/// Removes a folder of the deployment in which nobody works any more, whatever modes its own folders have. One that
/// could never be made is gone, too.
pub(crate) fn remove_folder(path: &Path) -> Result<(), PathError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(PathError::Malformed);
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match rustix::fs::open(parent, flags, Mode::empty()) {
        Ok(parent) => parent,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    match remove_one(parent.as_fd(), name) {
        Ok(Removed::NotEmpty) => remove_tree(parent.as_fd(), name, Modes::Override),
        Ok(Removed::Gone) | Err(PathError::Absent) => Ok(()),
        Err(error) => Err(error),
    }
}

enum Removed {
    Gone,
    NotEmpty,
}

/// Removes a file, a link or an empty folder.
fn remove_one(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Removed, PathError> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => return Ok(Removed::Gone),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Removed::Gone),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removed::NotEmpty),
        Err(errno) => Err(errno.into()),
    }
}

fn remove_tree(folder: BorrowedFd<'_>, name: &OsStr, modes: Modes) -> Result<(), PathError> {
    let mut levels = vec![Level::open(folder, name.to_owned(), modes)?];
    while let Some(mut level) = levels.pop() {
        match level.next()? {
            Some(child) => match remove_one(level.dir.fd()?, &child) {
                Ok(Removed::Gone) | Err(PathError::Absent) => levels.push(level),
                Ok(Removed::NotEmpty) if levels.len() + 1 < MAX_OPEN => {
                    let below = Level::open(level.dir.fd()?, child, modes)?;
                    levels.extend([level, below]);
                }
                Ok(Removed::NotEmpty) => {
                    move_up(&mut levels, &level, &child, modes)?;
                    levels.push(level);
                }
                Err(error) => return Err(error),
            },
            None => {
                let above = match levels.last() {
                    Some(above) => above.dir.fd()?,
                    None => folder,
                };
                match unlinkat(above, &level.name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
    }
    Ok(())
}

/// Makes a folder that lies too deep an entry of the first level.
fn move_up(
    levels: &mut [Level],
    level: &Level,
    child: &OsStr,
    modes: Modes,
) -> Result<(), PathError> {
    let Some(first) = levels.first_mut() else {
        return Err(PathError::NotEmpty);
    };
    let folder = level.dir.fd()?;
    if modes == Modes::Override {
        chmodat(folder, child, Mode::RWXU, AtFlags::empty())?;
    }
    let name = OsString::from(format!(".tangle-{}", Uuid::new_v4().simple()));
    renameat(folder, child, first.dir.fd()?, &name)?;
    first.moved.push(name);
    Ok(())
}

impl Level {
    fn open(folder: BorrowedFd<'_>, name: OsString, modes: Modes) -> Result<Self, PathError> {
        if modes == Modes::Override {
            chmodat(folder, &name, Mode::RWXU, AtFlags::empty())?;
        }
        Ok(Self {
            dir: Dir::new(open_folder(folder, &name)?)?,
            name,
            moved: Vec::new(),
        })
    }

    fn next(&mut self) -> Result<Option<OsString>, PathError> {
        if let Some(moved) = self.moved.pop() {
            return Ok(Some(moved));
        }
        for entry in self.dir.by_ref() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}
