//! Why a path was refused or a file could not be used.

use std::io;

use rustix::io::Errno;
use tangle_sandbox::contract::limits::MAX_PATH;

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
    /// It leads through more symbolic links than a path may have, usually in a circle.
    #[error("leads through too many symbolic links")]
    Links,
    /// A folder would be moved into itself.
    #[error("cannot be moved into itself")]
    IntoItself,
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
            Errno::LOOP => Self::Links,
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
