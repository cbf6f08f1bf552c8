//! Sandboxes, and the keys under which they were made.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tangle_sandbox::contract::digest::Digest;

use super::StoreError;
use super::changes::note;

/// A sandbox as it is recorded. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct SandboxRow {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) status: String,
    pub(crate) error: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) last_activity_at: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) stopped_at: Option<i64>,
    pub(crate) idle_seconds: i64,
    pub(crate) delete_after_seconds: i64,
    /// JSON object.
    pub(crate) metadata: String,
    /// JSON object of texts.
    pub(crate) env: String,
    /// JSON object without credentials.
    pub(crate) backend: Option<String>,
    /// JSON object.
    pub(crate) egress: Option<String>,
    /// False for a sandbox without a managed agent.
    pub(crate) managed: bool,
    /// Value of the variable that marks its processes.
    pub(crate) marker: String,
    /// Whether processes may have been left behind.
    pub(crate) processes: bool,
    pub(crate) incarnation: String,
    pub(crate) ready: bool,
}

const COLUMNS: &str = "id, name, status, error, created_at, started_at, last_activity_at, expires_at, stopped_at, \
    idle_seconds, delete_after_seconds, metadata, env, backend, egress, managed, marker, processes, incarnation, ready";

fn row(row: &Row<'_>) -> rusqlite::Result<SandboxRow> {
    Ok(SandboxRow {
        id: row.get(0)?,
        name: row.get(1)?,
        status: row.get(2)?,
        error: row.get(3)?,
        created_at: row.get(4)?,
        started_at: row.get(5)?,
        last_activity_at: row.get(6)?,
        expires_at: row.get(7)?,
        stopped_at: row.get(8)?,
        idle_seconds: row.get(9)?,
        delete_after_seconds: row.get(10)?,
        metadata: row.get(11)?,
        env: row.get(12)?,
        backend: row.get(13)?,
        egress: row.get(14)?,
        managed: row.get(15)?,
        marker: row.get(16)?,
        processes: row.get(17)?,
        incarnation: row.get(18)?,
        ready: row.get(19)?,
    })
}

/// What a create under a key came to.
#[derive(Debug)]
pub(crate) enum Created {
    /// This call made the sandbox.
    Fresh,
    /// An earlier call with the same request made it.
    Replay(Box<SandboxRow>),
    /// An earlier call with the same request made it, and it is gone.
    Gone,
    /// The key belongs to another request.
    Conflict,
}

/// Records a sandbox, and its key when there is one.
pub(crate) fn create(
    db: &Connection,
    sandbox: &SandboxRow,
    key: Option<(&str, Digest)>,
) -> Result<Created, StoreError> {
    if let Some((key, digest)) = key {
        let known: Option<(String, String)> = db
            .prepare_cached("SELECT digest, sandbox FROM creations WHERE key = ?1")?
            .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        if let Some((known, id)) = known {
            if known != digest.to_string() {
                return Ok(Created::Conflict);
            }
            return Ok(match get(db, &id)? {
                Some(sandbox) if sandbox.status != "deleted" => Created::Replay(Box::new(sandbox)),
                _ => Created::Gone,
            });
        }
        db.execute(
            "INSERT INTO creations (key, digest, sandbox) VALUES (?1, ?2, ?3)",
            params![key, digest.to_string(), sandbox.id],
        )?;
    }
    let s = sandbox;
    db.execute(
        &format!(
            "INSERT INTO sandboxes ({COLUMNS}) VALUES \
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
        ),
        params![
            s.id,
            s.name,
            s.status,
            s.error,
            s.created_at,
            s.started_at,
            s.last_activity_at,
            s.expires_at,
            s.stopped_at,
            s.idle_seconds,
            s.delete_after_seconds,
            s.metadata,
            s.env,
            s.backend,
            s.egress,
            s.managed,
            s.marker,
            s.processes,
            s.incarnation,
            s.ready,
        ],
    )?;
    note(db, &s.id, &s.status, s.created_at)?;
    Ok(Created::Fresh)
}

/// One sandbox; one whose deletion has begun is `deleted`.
pub(crate) fn get(db: &Connection, id: &str) -> Result<Option<SandboxRow>, StoreError> {
    let sandbox = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sandboxes WHERE id = ?1"))?
        .query_row([id], row)
        .optional()?;
    Ok(sandbox)
}

/// A page, newest first, without those whose deletion has begun. No status means every one.
pub(crate) fn list(
    db: &Connection,
    statuses: &[String],
    limit: usize,
    offset: u64,
) -> Result<Vec<SandboxRow>, StoreError> {
    let wanted = serde_json::to_string(statuses).unwrap_or_default();
    let mut query = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sandboxes WHERE deleting = 0 \
         AND (?1 = '[]' OR status IN (SELECT value FROM json_each(?1))) \
         ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3"
    ))?;
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    let rows = query.query_map(params![wanted, limit as i64, offset], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Every sandbox in one of `statuses`.
pub(crate) fn in_status(db: &Connection, statuses: &[&str]) -> Result<Vec<SandboxRow>, StoreError> {
    let statuses: Vec<String> = statuses.iter().map(|status| (*status).to_owned()).collect();
    list(db, &statuses, i64::MAX as usize, 0)
}

/// Every sandbox that may be retired, or whose retirement was cut short.
pub(crate) fn to_retire(db: &Connection) -> Result<Vec<SandboxRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sandboxes WHERE status IN ('running', 'stopped', 'provisioning', 'deleted') \
         OR (status = 'expired' AND files = 1) ORDER BY created_at DESC, id"
    ))?;
    let rows = query.query_map([], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Nothing is left of the files of an expired sandbox.
pub(crate) fn set_files_gone(db: &Connection, id: &str) -> Result<(), StoreError> {
    db.execute("UPDATE sandboxes SET files = 0 WHERE id = ?1", [id])?;
    Ok(())
}

/// The sandbox runs, its workspace is ready.
pub(crate) fn set_running(db: &Connection, id: &str, now: i64) -> Result<(), StoreError> {
    let changed = db.execute(
        "UPDATE sandboxes SET status = 'running', ready = 1, error = NULL, started_at = ?2, \
         last_activity_at = ?2, stopped_at = NULL WHERE id = ?1 AND deleting = 0",
        params![id, now],
    )?;
    noted(db, changed, id, "running", now)
}

/// The sandbox does not run any longer: `stopped` or `expired`. None of its processes is left.
pub(crate) fn set_ended(
    db: &Connection,
    id: &str,
    status: &str,
    now: i64,
) -> Result<(), StoreError> {
    let changed = db.execute(
        "UPDATE sandboxes SET status = ?2, stopped_at = ?3, processes = 0 WHERE id = ?1 AND deleting = 0",
        params![id, status, now],
    )?;
    noted(db, changed, id, status, now)
}

/// The sandbox could not be made.
pub(crate) fn set_failed(
    db: &Connection,
    id: &str,
    error: &str,
    now: i64,
) -> Result<(), StoreError> {
    let changed = db.execute(
        "UPDATE sandboxes SET status = 'failed', error = ?2 WHERE id = ?1 AND deleting = 0",
        params![id, error],
    )?;
    noted(db, changed, id, "failed", now)
}

/// One that is being deleted, or gone, changes no more.
fn noted(
    db: &Connection,
    changed: usize,
    id: &str,
    status: &str,
    now: i64,
) -> Result<(), StoreError> {
    match changed {
        0 => Ok(()),
        _ => note(db, id, status, now),
    }
}

/// Another idle limit in seconds; 0 is none.
pub(crate) fn set_idle(db: &Connection, id: &str, seconds: i64) -> Result<(), StoreError> {
    db.execute(
        "UPDATE sandboxes SET idle_seconds = ?2 WHERE id = ?1",
        params![id, seconds],
    )?;
    Ok(())
}

/// When the sandbox was last used.
pub(crate) fn set_activity(db: &Connection, id: &str, at: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE sandboxes SET last_activity_at = ?2 WHERE id = ?1 AND last_activity_at < ?2",
    )?
    .execute(params![id, at])?;
    Ok(())
}

/// Whether processes of the sandbox may be alive.
pub(crate) fn set_processes(db: &Connection, id: &str, some: bool) -> Result<(), StoreError> {
    db.execute(
        "UPDATE sandboxes SET processes = ?2 WHERE id = ?1",
        params![id, some],
    )?;
    Ok(())
}

/// From here on the sandbox is listed no more, and nothing but its deletion happens to it.
pub(crate) fn set_deleting(db: &Connection, id: &str) -> Result<(), StoreError> {
    db.execute(
        "UPDATE sandboxes SET deleting = 1, status = 'deleted' WHERE id = ?1",
        [id],
    )?;
    Ok(())
}

/// Id and marker of every sandbox whose deletion has begun.
pub(crate) fn deleting(db: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let mut query = db.prepare("SELECT id, marker FROM sandboxes WHERE deleting = 1")?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Removes a part of what belongs to the sandbox; true when nothing is left, the sandbox itself included.
pub(crate) fn erase(db: &Connection, id: &str) -> Result<bool, StoreError> {
    const PART: i64 = 10_000;
    let execution: Option<i64> = db
        .prepare_cached("SELECT pk FROM executions WHERE sandbox = ?1 LIMIT 1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if let Some(execution) = execution {
        let oldest: Option<i64> = db
            .prepare_cached("SELECT min(number) FROM frames WHERE execution = ?1")?
            .query_row([execution], |row| row.get(0))?;
        match oldest {
            Some(oldest) => {
                let until = oldest + PART;
                db.prepare_cached("DELETE FROM frames WHERE execution = ?1 AND number < ?2")?
                    .execute([execution, until])?;
            }
            None => {
                db.prepare_cached("DELETE FROM executions WHERE pk = ?1")?
                    .execute([execution])?;
            }
        }
        return Ok(false);
    }
    db.execute("DELETE FROM sessions WHERE sandbox = ?1", [id])?;
    db.execute("DELETE FROM cancels WHERE sandbox = ?1", [id])?;
    db.execute("DELETE FROM changes WHERE sandbox = ?1", [id])?;
    db.execute("DELETE FROM sandboxes WHERE id = ?1", [id])?;
    Ok(true)
}
