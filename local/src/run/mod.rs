//! Running agents: a run is admitted and recorded before anything starts, and every frame is recorded before it is sent.
//!
//! * [`admission`] – one transaction decides whether a request starts a run, joins one, or is refused.
//! * [`engine`] – the task of one run: the agent, its events, the end.
//! * [`verdict`] – how a run ended: status, last frames, result.
//! * [`recorder`] – numbers frames and records them in batches.
//! * [`live`] – what is known of a run while it goes on: progress, readers, how it is to end.
//! * [`reader`] – the frames of an execution for one reader, from the record, at the reader's pace.
//! * [`warm`] – agent processes that are kept for the next turn.
//! * [`backend`] – which agent a turn gets, with which model.
//! * [`recovery`] – what a start does about runs that did not survive.

pub(crate) mod admission;
pub(crate) mod backend;
pub(crate) mod engine;
pub(crate) mod live;
pub(crate) mod reader;
mod recorder;
pub(crate) mod recovery;
mod verdict;
mod warm;

pub(crate) use live::{Ending, Runs};
pub(crate) use warm::Warm;

use crate::api::Shared;
use crate::store::StoreError;
use crate::store::sandboxes::{SandboxRow, set_processes};

/// Records that processes of the sandbox may be alive from here on, so that the next start looks for them.
pub(crate) async fn mark_processes(
    deployment: &Shared,
    sandbox: &SandboxRow,
) -> Result<(), StoreError> {
    if sandbox.processes {
        return Ok(());
    }
    let id = sandbox.id.clone();
    deployment
        .store
        .write(move |db| set_processes(db, &id, true))
        .await
}
