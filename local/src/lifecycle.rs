//! The life of a sandbox: provisioned, stopped, resumed, expired, deleted (wire protocol, 4.4).

use std::time::Duration;

use axum::http::StatusCode;

use crate::api::Shared;
use crate::api::answer::Fault;
use crate::ids::now;
use crate::occupancy::Lease;
use crate::process::{Home, Marker, sweep};
use crate::store::StoreError;
use crate::store::sandboxes::{self, SandboxRow};

/// How long those inside a sandbox may take to leave, before their processes are swept away.
const LEAVE: Duration = Duration::from_secs(20);
/// How long to wait before what could not be recorded is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long the timer sleeps at most.
const LONGEST_SLEEP: i64 = 3_600_000;

/// Prepares the sandbox in the background: `provisioning` becomes `running`, or `failed`.
pub(crate) fn provision(deployment: &Shared, id: String) {
    let Some(stay) = deployment.occupancy.enter(&id) else {
        return; // it is being deleted already
    };
    let deployment = deployment.clone();
    deployment.tasks.clone().spawn(async move {
        if get(&deployment, &id).await.is_err() {
            return;
        }
        let prepared = prepare(&deployment, &id).await;
        while let Err(error) = provisioned(&deployment, &id, prepared).await {
            tracing::error!(%error, "what became of a new sandbox could not be recorded");
            // A full disk may get room; the next start of the deployment provisions it again.
            tokio::select! {
                () = deployment.closing.cancelled() => return,
                () = stay.leave().cancelled() => return,
                () = tokio::time::sleep(TRY_AGAIN) => {}
            }
        }
        deployment.sandbox_changed();
    });
}

async fn provisioned(
    deployment: &Shared,
    id: &str,
    prepared: Result<(), std::io::ErrorKind>,
) -> Result<(), StoreError> {
    let id = id.to_owned();
    deployment
        .store
        .write(move |db| match prepared {
            Ok(()) => sandboxes::set_running(db, &id, now()),
            Err(kind) => {
                let error = format!("the sandbox's folders cannot be made: {kind}");
                sandboxes::set_failed(db, &id, &error, now())
            }
        })
        .await
}

/// Makes the folders. The reason of a failure is a kind of error, without a path of the host.
async fn prepare(deployment: &Shared, id: &str) -> Result<(), std::io::ErrorKind> {
    let (workspace, home) = (deployment.places.workspace(id), deployment.places.home(id));
    let work = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&workspace)?;
        Home::create(home).map(drop)
    });
    match work.await {
        Ok(made) => made.map_err(|error| error.kind()),
        Err(_) => Err(std::io::ErrorKind::Other),
    }
}

async fn get(deployment: &Shared, id: &str) -> Result<SandboxRow, Fault> {
    let wanted = id.to_owned();
    let found = deployment
        .store
        .read::<_, StoreError>(move |db| sandboxes::get(db, &wanted))
        .await?;
    found.ok_or_else(|| Fault::not_found("sandbox", id))
}

/// The lease and the sandbox as it is while nobody else changes it.
async fn leased(deployment: &Shared, id: &str) -> Result<(Lease, SandboxRow), Fault> {
    let row = get(deployment, id).await?; // so that unknown ids leave no trace
    let lease = deployment.occupancy.lease(id).ok_or_else(|| {
        Fault::state(
            &row.status,
            None,
            "another lifecycle operation is in progress",
        )
    })?;
    Ok((lease, get(deployment, id).await?))
}

/// Runs to its end although the caller may leave: what is recorded is also done, and a half-stopped sandbox is no state.
pub(crate) async fn whole<T: Send + 'static>(
    deployment: &Shared,
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let task = deployment.tasks.spawn(work);
    task.await.unwrap_or_else(|_| {
        Err(Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            "the operation ended unexpectedly",
        ))
    })
}

/// Ends every process of the sandbox; its state is kept.
pub(crate) async fn stop(deployment: &Shared, id: &str) -> Result<SandboxRow, Fault> {
    let (deployment, id) = (deployment.clone(), id.to_owned());
    whole(&deployment.clone(), async move {
        let (lease, row) = leased(&deployment, &id).await?;
        match row.status.as_str() {
            "stopped" => Ok(row),
            "running" => {
                end(&deployment, &lease, &row, "stopped").await?;
                get(&deployment, &id).await
            }
            current => Err(Fault::state(
                current,
                Some("running"),
                "only a running sandbox can be stopped",
            )),
        }
    })
    .await
}

/// Runs again with the files that it had.
pub(crate) async fn resume(deployment: &Shared, id: &str) -> Result<SandboxRow, Fault> {
    let (deployment, id) = (deployment.clone(), id.to_owned());
    whole(&deployment.clone(), async move {
        let (_lease, row) = leased(&deployment, &id).await?;
        match row.status.as_str() {
            "running" => Ok(row),
            "stopped" => {
                prepare(&deployment, &id).await.map_err(|kind| {
                    Fault::new(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "SERVER_ERROR",
                        format!("the sandbox's folders cannot be made: {kind}"),
                    )
                })?;
                let wanted = id.clone();
                deployment
                    .store
                    .write::<_, StoreError>(move |db| sandboxes::set_running(db, &wanted, now()))
                    .await?;
                deployment.sandbox_changed();
                get(&deployment, &id).await
            }
            current => Err(Fault::state(
                current,
                Some("stopped"),
                "only a stopped sandbox can be resumed",
            )),
        }
    })
    .await
}

/// Ends the sandbox and removes everything of it.
pub(crate) async fn delete(deployment: &Shared, id: &str) -> Result<(), Fault> {
    let (deployment, id) = (deployment.clone(), id.to_owned());
    whole(&deployment.clone(), async move {
        let (lease, row) = leased(&deployment, &id).await?;
        let wanted = id.clone();
        deployment
            .store
            .write::<_, StoreError>(move |db| sandboxes::set_deleting(db, &wanted))
            .await?;
        clear(&deployment, &lease, &row.id, &row.marker).await;
        deployment.credentials.forget(&id);
        erase(&deployment, &id).await?;
        lease.forget();
        Ok(())
    })
    .await
}

/// Everybody leaves, agents end, and what is left of the sandbox's processes is swept.
async fn clear(deployment: &Shared, lease: &Lease, id: &str, marker: &str) {
    lease.evict(LEAVE).await;
    deployment.warm.end_of(id).await;
    let swept = sweep(&Marker::sandbox(marker), None).await;
    if !swept.clean {
        tracing::warn!(
            sandbox = id,
            "it could not be proven that no process of the sandbox is left"
        );
    }
}

/// `running` becomes `stopped` or `expired`.
async fn end(
    deployment: &Shared,
    lease: &Lease,
    row: &SandboxRow,
    status: &'static str,
) -> Result<(), Fault> {
    clear(deployment, lease, &row.id, &row.marker).await;
    deployment.credentials.forget(&row.id);
    let id = row.id.clone();
    deployment
        .store
        .write::<_, StoreError>(move |db| sandboxes::set_ended(db, &id, status, now()))
        .await?;
    deployment.sandbox_changed();
    Ok(())
}

/// Removes the files, then what is recorded; repeated after a restart when it was cut short.
pub(crate) async fn erase(deployment: &Shared, id: &str) -> Result<(), Fault> {
    remove_files(deployment, id).await?;
    loop {
        let id = id.to_owned();
        let done = deployment
            .store
            .write::<_, StoreError>(move |db| sandboxes::erase(db, &id))
            .await?;
        if done {
            deployment.sandbox_changed();
            return Ok(());
        }
    }
}

async fn remove_files(deployment: &Shared, id: &str) -> Result<(), Fault> {
    let folder = deployment.places.sandbox(id);
    let removed = tokio::task::spawn_blocking(move || remove_tree(&folder)).await;
    match removed {
        Ok(Ok(())) => Ok(()),
        _ => Err(Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            "the sandbox's files cannot be removed",
        )),
    }
}

/// Removes a folder whatever modes its own folders have. One that could never be made is gone, too.
fn remove_tree(folder: &std::path::Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_dir_all(folder) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(()),
        Err(error) if error.kind() == PermissionDenied => {}
        other => return other,
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    std::fs::remove_dir_all(folder)
}

/// Retires sandboxes at the times that their requests stated, until the deployment ends.
pub(crate) async fn watch_deadlines(deployment: Shared) {
    loop {
        let next = match retire(&deployment).await {
            Ok(next) => next,
            Err(fault) => {
                tracing::error!(code = fault.code, "sandboxes could not be retired");
                now() + 5_000
            }
        };
        let sleep = next.saturating_sub(now()).clamp(10, LONGEST_SLEEP);
        tokio::select! {
            () = deployment.closing.cancelled() => return,
            () = deployment.deadlines.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(sleep.unsigned_abs())) => {}
        }
    }
}

/// Retires what is due; the time of the next deadline.
async fn retire(deployment: &Shared) -> Result<i64, Fault> {
    let rows = deployment
        .store
        .read::<_, StoreError>(|db| {
            sandboxes::in_status(db, &["running", "stopped", "provisioning"])
        })
        .await?;
    let mut next = i64::MAX;
    for row in rows {
        let Some((at, what)) = deadline(deployment, &row) else {
            continue;
        };
        if at > now() {
            next = next.min(at);
            continue;
        }
        let outcome = match what {
            Retirement::Delete => delete(deployment, &row.id).await,
            Retirement::Stop => stop(deployment, &row.id).await.map(drop),
            Retirement::Expire => expire(deployment, &row.id).await,
        };
        if let Err(fault) = outcome {
            tracing::warn!(
                sandbox = row.id,
                code = fault.code,
                "a sandbox could not be retired yet"
            );
            next = next.min(now() + 1_000);
        } else {
            next = next.min(now());
        }
    }
    Ok(next)
}

#[derive(Clone, Copy, Debug)]
enum Retirement {
    Expire,
    Stop,
    Delete,
}

/// The next deadline of a sandbox.
fn deadline(deployment: &Shared, row: &SandboxRow) -> Option<(i64, Retirement)> {
    let expiry = row.expires_at.map(|at| (at, Retirement::Expire));
    let other = match row.status.as_str() {
        "running" if row.idle_seconds > 0 => {
            let active = deployment.occupancy.last_activity(&row.id);
            let last = row.last_activity_at.max(active).unwrap_or(row.created_at);
            Some((
                last.saturating_add(row.idle_seconds * 1000),
                Retirement::Stop,
            ))
        }
        "stopped" if row.delete_after_seconds > 0 => {
            let stopped = row.stopped_at.unwrap_or(row.created_at);
            let at = stopped.saturating_add(row.delete_after_seconds * 1000);
            Some((at, Retirement::Delete))
        }
        _ => None,
    };
    [expiry, other]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
}

/// The lifetime is over: processes end, files go, the record stays.
async fn expire(deployment: &Shared, id: &str) -> Result<(), Fault> {
    let (deployment, id) = (deployment.clone(), id.to_owned());
    whole(&deployment.clone(), async move {
        let (lease, row) = leased(&deployment, &id).await?;
        end(&deployment, &lease, &row, "expired").await?;
        remove_files(&deployment, &id).await
    })
    .await
}
