//! The service as an SDK: create a sandbox, wait until it is ready, run a coding agent in it, use its files and shell.
//!
//! * [`Client`] and [`ClientBuilder`]: the way to one deployment.
//! * [`NewSandbox`]: what a new sandbox should be.
//! * [`Sandbox`]: the handle, in one of the states [`Provisioning`], [`Running`], [`Stopped`] and [`Ended`];
//!   [`AnySandbox`]: one whose state is known only at run time.
//! * [`Prompt`], [`PromptResult`]: a turn and its outcome; [`Run`] and [`Event`]: a turn as it happens.
//! * [`Exec`]: a shell command; `read`, `write` and `list` on the handle: files.
//! * [`Listing`]: the sandboxes of an account.
//! * [`Deadline`]: how long a caller waits; [`Lifetime`]: how long a sandbox lives.
//! * [`Error`]: the one error of this layer; [`Kept`]: an error that gives the handle back.

mod call;
mod client;
mod error;
mod event;
mod exec;
mod feed;
mod files;
mod handle;
mod inner;
mod list;
mod new_sandbox;
mod prompt;
mod record;
mod replay;
mod run;
mod runs;
mod session;
mod state;
mod summary;
mod verdict;

pub use call::Call;
pub use client::{Client, ClientBuilder};
pub use error::{Error, Kept};
pub use event::{Event, EventKind};
pub use exec::Exec;
pub use handle::{AnySandbox, Deleted, Sandbox};
pub use list::{ListOptions, Listing};
pub use new_sandbox::NewSandbox;
pub use prompt::{Prompt, PromptResult, PromptStatus, Rejoin};
pub use record::{Incarnation, Status};
pub use run::{Attached, Attachment, Detached, Run};
pub use state::{Deadline, Ended, Lifetime, Provisioning, Ready, Running, State, Stopped};

pub(crate) use feed::Feed;
pub(crate) use inner::{Identity, Inner, Joined};
pub(crate) use verdict::INTERRUPTED;
