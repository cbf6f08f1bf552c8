//! Creating an environment (core contracts, 7; provider runtime, 3.3 to 3.7): what a caller asks, and the request that comes of
//! it.
//!
//! * [`read`]: a create input from JSON.
//! * [`Mapping`]: the default mapping to the request that the service gets.
//! * [`check_mapped`]: what a caller's own mapping has to keep.
//! * [`supported`]: whether a provider can carry a mapped request out.
//! * `identity`: the digest under which a create happens once.
//! * `directory`, `workspace`: paths and the rules between the fields of a workspace.
//! * [`Refusal`]: every way in which a create is refused, with its code.

mod directory;
mod identity;
mod mapped;
mod mapping;
mod read;
mod refusal;
mod support;
mod workspace;

pub(super) use directory::{host_path, repository_path};
pub use identity::same_create;
pub use mapped::{Mapped, check_mapped};
pub use mapping::Mapping;
pub use read::read;
pub use refusal::Refusal;
pub use support::supported;
pub(super) use workspace::{checkpoint_reference, workspace_request};

/// Where the provider keeps the public reference of the selected credentials, in the metadata of an environment.
pub const CREDENTIALS_MARKER: &str = "modelCredentials";
/// Where the provider keeps the checkpoint that an environment was restored from, in its metadata.
pub const CHECKPOINT_MARKER: &str = "tangleNativeResumeCheckpointId";
