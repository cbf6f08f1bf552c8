//! Sessions.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::StoreError;

/// A session as it is recorded.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    /// Backend type.
    pub(crate) backend: String,
    pub(crate) model: Option<String>,
    /// The agent's own id of its session with `backend`.
    pub(crate) native: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

const COLUMNS: &str = "id, title, backend, model, native, created_at, updated_at";

fn row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: row.get(0)?,
        title: row.get(1)?,
        backend: row.get(2)?,
        model: row.get(3)?,
        native: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
    })
}

/// One session.
pub(crate) fn get(
    db: &Connection,
    sandbox: &str,
    id: &str,
) -> Result<Option<SessionRow>, StoreError> {
    let session = db
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions WHERE sandbox = ?1 AND id = ?2"
        ))?
        .query_row([sandbox, id], row)
        .optional()?;
    Ok(session)
}

/// The sessions of a sandbox, newest first.
pub(crate) fn list(db: &Connection, sandbox: &str) -> Result<Vec<SessionRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE sandbox = ?1 ORDER BY created_at DESC, id"
    ))?;
    let rows = query.query_map([sandbox], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Records a session that is not there yet.
pub(crate) fn insert(
    db: &Connection,
    sandbox: &str,
    session: &SessionRow,
) -> Result<(), StoreError> {
    let s = session;
    db.execute(
        &format!(
            "INSERT INTO sessions (sandbox, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ),
        params![
            sandbox,
            s.id,
            s.title,
            s.backend,
            s.model,
            s.native,
            s.created_at,
            s.updated_at
        ],
    )?;
    Ok(())
}

/// The backend of the newest turn. The agent's own session belongs to one backend only.
pub(crate) fn set_backend(
    db: &Connection,
    sandbox: &str,
    id: &str,
    backend: &str,
    model: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    db.execute(
        "UPDATE sessions SET native = CASE WHEN backend = ?3 THEN native ELSE NULL END, backend = ?3, \
         model = ?4, updated_at = ?5 WHERE sandbox = ?1 AND id = ?2",
        params![sandbox, id, backend, model, now],
    )?;
    Ok(())
}

/// The agent's own id of its session with `backend`.
pub(crate) fn set_native(
    db: &Connection,
    sandbox: &str,
    id: &str,
    backend: &str,
    native: &str,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE sessions SET native = ?4 WHERE sandbox = ?1 AND id = ?2 AND backend = ?3",
    )?
    .execute([sandbox, id, backend, native])?;
    Ok(())
}

/// The session changed.
pub(crate) fn touch(db: &Connection, sandbox: &str, id: &str, now: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE sessions SET updated_at = ?3 WHERE sandbox = ?1 AND id = ?2")?
        .execute(params![sandbox, id, now])?;
    Ok(())
}

/// Removes a session with its executions and their frames.
pub(crate) fn erase(db: &Connection, sandbox: &str, id: &str) -> Result<(), StoreError> {
    db.execute(
        "DELETE FROM frames WHERE execution IN (SELECT pk FROM executions WHERE sandbox = ?1 AND session = ?2)",
        [sandbox, id],
    )?;
    db.execute(
        "DELETE FROM executions WHERE sandbox = ?1 AND session = ?2",
        [sandbox, id],
    )?;
    db.execute(
        "DELETE FROM sessions WHERE sandbox = ?1 AND id = ?2",
        [sandbox, id],
    )?;
    Ok(())
}
