//! The way to a place inside a workspace, folder by folder.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;
use tangle_sandbox::contract::limits::MAX_PATH;

use super::{PathError, Workspace};

/// Links that one path may go through.
const MAX_LINKS: usize = 40;

/// Folders above the present one that are kept open.
const MAX_ABOVE: usize = 32;

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

    /// Walks to `path`. Everything above its last name must be there.
    pub(super) fn walk(&self, path: &str, last: Last) -> Result<Spot, PathError> {
        let (spot, missing) = self.resolve(path, last)?;
        match missing.is_empty() {
            true => Ok(spot),
            false => Err(PathError::Absent),
        }
    }

    /// Walks to `path`, through a link at its end too. Once all of it was found to lie inside, missing folders on the way
    /// are made.
    pub(super) fn walk_making(&self, path: &str) -> Result<Spot, PathError> {
        let (mut spot, missing) = self.resolve(path, Last::Follow)?;
        for name in missing {
            match mkdirat(&spot.folder, &name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            spot.folder = open_folder(spot.folder.as_fd(), &name)?;
        }
        Ok(spot)
    }

    /// The deepest folder that is there, the folders that are missing below it, and the last name.
    fn resolve(&self, path: &str, last: Last) -> Result<(Spot, Vec<OsString>), PathError> {
        let mut rest: VecDeque<OsString> = components(self.inside(path)?).collect();
        let mut missing: Vec<OsString> = Vec::new();
        let mut way = Way::begin(self)?;
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                if missing.pop().is_none() {
                    way.up(self)?;
                }
                continue;
            }
            let is_last = rest.is_empty();
            let kind = match missing.is_empty() {
                true => kind(way.here.as_fd(), &name)?,
                false => None,
            };
            if kind == Some(FileType::Symlink) && (!is_last || last == Last::Follow) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::Links);
                }
                match readlinkat(&way.here, &name, Vec::new()) {
                    Ok(target) => {
                        let (parts, from_root) = self.link_target(target.as_bytes())?;
                        if from_root {
                            way = Way::begin(self)?;
                        }
                        for part in parts.into_iter().rev() {
                            rest.push_front(part);
                        }
                        continue;
                    }
                    Err(Errno::INVAL) => {} // it is no link any more
                    Err(errno) => return Err(errno.into()),
                }
            }
            if is_last {
                let (folder, name) = (way.here, Some(name));
                return Ok((Spot { folder, name }, missing));
            }
            match kind {
                None => missing.push(name),
                Some(_) => way.down(name)?,
            }
        }
        let (folder, name) = (way.here, missing.pop());
        Ok((Spot { folder, name }, missing))
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

/// An open folder and the names that lead to it from the workspace. However deep it lies, few of those above it are open.
struct Way {
    here: OwnedFd,
    names: Vec<OsString>,
    /// The nearest folders above.
    above: VecDeque<OwnedFd>,
}

impl Way {
    fn begin(workspace: &Workspace) -> Result<Self, PathError> {
        Ok(Self {
            here: workspace.root.try_clone()?,
            names: Vec::new(),
            above: VecDeque::new(),
        })
    }

    fn down(&mut self, name: OsString) -> Result<(), PathError> {
        let below = open_folder(self.here.as_fd(), &name)?;
        self.above
            .push_back(std::mem::replace(&mut self.here, below));
        if self.above.len() > MAX_ABOVE {
            self.above.pop_front();
        }
        self.names.push(name);
        Ok(())
    }

    /// A folder that is not open any more is walked to again from the workspace, since the parent of one that was moved
    /// meanwhile may lie outside.
    fn up(&mut self, workspace: &Workspace) -> Result<(), PathError> {
        self.names.pop().ok_or(PathError::Outside)?;
        if let Some(above) = self.above.pop_back() {
            self.here = above;
            return Ok(());
        }
        let names = std::mem::take(&mut self.names);
        *self = Self::begin(workspace)?;
        names.into_iter().try_for_each(|name| self.down(name))
    }
}

/// What is there under this name; `None` when there is nothing.
fn kind(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<FileType>, PathError> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
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
