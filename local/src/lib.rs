//! The embedded deployment of the Tangle Sandbox protocol: real processes, files and coding agents on this machine.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let local = tangle_sandbox_local::Local::builder()
//!     .data_dir("/var/lib/tangle")
//!     .start()
//!     .await?;
//! println!("{}", local.base_url());
//! local.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! A sandbox is a folder of the data directory with its own workspace, and processes of this machine that work in it.
//! They are not isolated from the machine: run only agents that you would run yourself.
//!
//! * [`Local`], [`LocalBuilder`] – the deployment, and how it is started.
//! * [`agent`] – coding agents as child processes, and the scripted agent.
//! * [`process`] – commands and process groups.
//!
//! A run that is not detached ends when it has had no reader for the grace (10 seconds, see
//! [`LocalBuilder::reader_grace`]). Every connection that reads an execution counts: the one that started it, one that
//! came back, one that only watches. Leaving on purpose is said by a cancel.
//!
//! The events of one execution are kept and replayed. A stream of a whole session
//! (`GET …/sessions/{id}/events` without `executionId`) is refused with 501 `NOT_SUPPORTED`.
//!
//! Behind them: `api` (the routes), `run` (the run engine), `store` (the record), `lifecycle` and `occupancy` (the life
//! of a sandbox), `workspace` (paths that never leave it).

pub mod agent;
mod api;
mod backends;
mod builder;
mod deployment;
mod ids;
mod lifecycle;
mod occupancy;
pub mod process;
mod run;
mod server;
mod store;
mod workspace;

pub use agent::agent_main;
pub use builder::{LocalBuilder, StartError};
pub use server::Local;
pub use store::StoreError;
