//! The way to a place inside a workspace, folder by folder.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;
use tangle_sandbox::contract::limits::MAX_PATH;

use super::{PathError, Workspace};

/// Links that one path may go through.
const MAX_LINKS: usize = 40;

/// Whether a link at the end of a path is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// A place inside: an open folder and a name in it, or the workspace itself.
pub(super) struct Spot {
    pub(super) folder: OwnedFd,
    /// `None` for `folder` itself.
    pub(super) name: Option<OsString>,
}

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Workspace {
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

    /// Walks to `path`; with `make` missing folders on the way are made.
    pub(super) fn walk(&self, path: &str, last: Last, make: bool) -> Result<Spot, PathError> {
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
}

fn components(path: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| OsStr::from_bytes(part).to_owned())
}

/// A step that does not follow a link: one that was swapped in meanwhile is refused.
pub(super) fn open_folder(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, PathError> {
    openat(folder, name, FOLDER, Mode::empty()).map_err(no_link)
}

/// A link where none may be is how a swap shows.
pub(super) fn no_link(errno: Errno) -> PathError {
    match errno {
        Errno::LOOP => PathError::Outside,
        other => other.into(),
    }
}
