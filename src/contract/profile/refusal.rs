//! Why a create cannot carry a profile: the codes of core contracts, 3.13.

use thiserror::Error;

use crate::contract::check::Refused;
use crate::contract::limits::{MAX_ARRAY, MAX_FILE_PAYLOAD};

/// Why a create cannot carry a profile. It names fields and sizes, never contents; a repeat of the same call cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProfileRefusal {
    /// The profile breaks its schema, or asks the harness for something that it cannot do. Change the profile, or choose the
    /// harness that it was written for.
    #[error("{0}")]
    Unsupported(Refused),
    /// The path of a mounted file leaves the workspace, or may on some system. Give a relative path of plain segments.
    #[error(
        "/resources/files/{mount}/path: must be a relative path that cannot leave the workspace"
    )]
    MountPathInvalid {
        /// Which mount, from 0.
        mount: usize,
    },
    /// The path of a mounted file lies where the workspace keeps its own. Choose another place.
    #[error("/resources/files/{mount}/path: `.git` and `.sidecar` belong to the workspace")]
    MountPathReserved {
        /// Which mount, from 0.
        mount: usize,
    },
    /// Two mounts have the same path. Remove one.
    #[error("/resources/files/{mount}/path: is the path of mount {first} too")]
    MountDuplicatePath {
        /// The second of the two, from 0.
        mount: usize,
        /// The first of the two.
        first: usize,
    },
    /// There are more mounts than a create takes. Put them into a repository.
    #[error("/resources/files: has {mounts} mounts, limit {MAX_ARRAY}")]
    MountTooMany {
        /// How many there are.
        mounts: usize,
    },
    /// The content of one mounted file is too large. Put it into a repository.
    #[error(
        "/resources/files/{mount}/resource/content: has {bytes} bytes, limit {MAX_FILE_PAYLOAD}"
    )]
    MountTooLarge {
        /// Which mount, from 0.
        mount: usize,
        /// How many bytes of UTF-8 it has.
        bytes: usize,
    },
    /// The profile is too large, without the contents of its mounted files or with all payload. Move inline resources into
    /// mounted files or a repository.
    #[error("has {bytes} bytes of {what}, limit {limit}")]
    TooLarge {
        /// What was counted.
        what: Counted,
        /// How many bytes of UTF-8 there are.
        bytes: usize,
        /// How many are taken.
        limit: u64,
    },
}

/// What a profile was measured by.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The canonical text of the profile without the contents of inline files.
    Profile,
    /// The contents of files and inline resources together.
    Payload,
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Profile => "JSON without the contents of its files",
            Self::Payload => "payload",
        })
    }
}

impl ProfileRefusal {
    /// `PROFILE_UNSUPPORTED`, `PAYLOAD_TOO_LARGE`, or one of the codes of file mounts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsupported(_) => "PROFILE_UNSUPPORTED",
            Self::MountPathInvalid { .. } => "FILE_MOUNT_PATH_INVALID",
            Self::MountPathReserved { .. } => "FILE_MOUNT_PATH_RESERVED",
            Self::MountDuplicatePath { .. } => "FILE_MOUNT_DUPLICATE_PATH",
            Self::MountTooMany { .. } => "FILE_MOUNT_TOO_MANY",
            Self::MountTooLarge { .. } => "FILE_MOUNT_TOO_LARGE",
            Self::TooLarge { .. } => "PAYLOAD_TOO_LARGE",
        }
    }

    /// Where, as a JSON pointer into the profile; empty for the whole of it.
    pub fn path(&self) -> String {
        match self {
            Self::Unsupported(refused) => refused.path().to_owned(),
            Self::MountPathInvalid { mount }
            | Self::MountPathReserved { mount }
            | Self::MountDuplicatePath { mount, .. } => format!("/resources/files/{mount}/path"),
            Self::MountTooMany { .. } => "/resources/files".to_owned(),
            Self::MountTooLarge { mount, .. } => {
                format!("/resources/files/{mount}/resource/content")
            }
            Self::TooLarge { .. } => String::new(),
        }
    }
}
