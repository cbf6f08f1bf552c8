//! What a start does about what the last process left: processes end, runs that did not survive fail once, sandboxes
//! that were being made or deleted are taken up again (wire protocol, 20).

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::verdict::{failed_frames, failure_fields, own_metadata};
use crate::api::Shared;
use crate::ids::now;
use crate::lifecycle;
use crate::process::{Marker, sweep};
use crate::store::StoreError;
use crate::store::executions::{self, ExecutionRow};
use crate::store::frames::append;
use crate::store::sandboxes;

/// Sandboxes that are swept at the same time.
const AT_ONCE: usize = 4;

const INTERRUPTED: &str = "the deployment ended while the run went on";

/// Before anything is served: nothing of the old process runs on, and no run seems to.
pub(crate) async fn before_serving(deployment: &Shared) -> Result<(), StoreError> {
    let (left, deleting) = deployment
        .store
        .read::<_, StoreError>(|db| {
            let all = sandboxes::list(db, &[], i64::MAX as usize, 0)?;
            let left = all
                .into_iter()
                .filter(|sandbox| sandbox.processes)
                .map(|sandbox| (sandbox.id, sandbox.marker));
            Ok((left.collect::<Vec<_>>(), sandboxes::deleting(db)?))
        })
        .await?;
    let sweeps = left.iter().chain(&deleting).map(|(id, marker)| async move {
        let swept = sweep(&Marker::sandbox(&**marker), None).await;
        (id.clone(), swept.clean)
    });
    let swept: Vec<(String, bool)> = futures_util::stream::iter(sweeps)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    deployment
        .store
        .write::<_, StoreError>(move |db| {
            for (id, _) in swept.iter().filter(|(_, clean)| *clean) {
                sandboxes::set_processes(db, id, false)?;
            }
            for execution in executions::running(db)? {
                interrupt(db, &execution)?;
            }
            Ok(())
        })
        .await
}

fn interrupt(db: &rusqlite::Connection, execution: &ExecutionRow) -> Result<(), StoreError> {
    const CODE: &str = "STREAM_INTERRUPTED";
    let frames = failed_frames(execution, CODE, INTERRUPTED);
    append(db, execution.pk, execution.newest, &frames)?;
    let mut result = failure_fields(CODE, INTERRUPTED);
    result.insert("executionId".to_owned(), execution.id.clone().into());
    result.insert("sessionId".to_owned(), execution.session.clone().into());
    result.insert("toolInvocations".to_owned(), json!([]));
    result.insert("metadata".to_owned(), own_metadata(execution).into());
    let result = Value::Object(result).to_string();
    executions::set_ended(db, execution.pk, "failed", &result, now())
}

/// Once it serves: sandboxes that were being made are made. Deletions are taken up by the timer of the lifecycle.
pub(crate) async fn take_up(deployment: &Shared) -> Result<(), StoreError> {
    let making = deployment
        .store
        .read::<_, StoreError>(|db| sandboxes::in_status(db, &["provisioning"]))
        .await?;
    for sandbox in making {
        lifecycle::provision(deployment, sandbox.id);
    }
    Ok(())
}
