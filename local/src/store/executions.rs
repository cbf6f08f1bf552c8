//! Executions, and the turns whose first run they are.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::StoreError;

/// An execution as it is recorded.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionRow {
    /// Its number in this file; `0` until it is recorded.
    pub(crate) pk: i64,
    pub(crate) sandbox: String,
    pub(crate) session: String,
    pub(crate) id: String,
    pub(crate) turn: Option<String>,
    /// Digest of the prompt.
    pub(crate) input: String,
    /// The exact control reference, as JSON.
    pub(crate) reference: String,
    /// `running`, `completed`, `failed` or `cancelled`.
    pub(crate) status: String,
    pub(crate) detached: bool,
    pub(crate) started_at: i64,
    pub(crate) completed_at: Option<i64>,
    /// Number of the newest frame.
    pub(crate) newest: i64,
    /// What the caller gave to have it back in the result, as JSON.
    pub(crate) context: Option<String>,
    /// Why it failed, when it has.
    pub(crate) failure: Option<Failure>,
}

/// Why an execution failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

impl ExecutionRow {
    /// Whether it is over.
    pub(crate) fn ended(&self) -> bool {
        self.status != "running"
    }
}

/// Without the result, which may be large.
const COLUMNS: &str = "pk, sandbox, session, id, turn, input, reference, status, detached, started_at, completed_at, \
    newest, context, \
    CASE status WHEN 'failed' THEN result ->> '$.errorCode' END, CASE status WHEN 'failed' THEN result ->> '$.error' END";

fn row(row: &Row<'_>) -> rusqlite::Result<ExecutionRow> {
    let status: String = row.get(7)?;
    let failure = match status.as_str() {
        "failed" => Some(Failure {
            code: row.get(13)?,
            message: row.get(14)?,
        }),
        _ => None,
    };
    Ok(ExecutionRow {
        pk: row.get(0)?,
        sandbox: row.get(1)?,
        session: row.get(2)?,
        id: row.get(3)?,
        turn: row.get(4)?,
        input: row.get(5)?,
        reference: row.get(6)?,
        status,
        detached: row.get(8)?,
        started_at: row.get(9)?,
        completed_at: row.get(10)?,
        newest: row.get(11)?,
        context: row.get(12)?,
        failure,
    })
}

fn one(
    db: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Option<ExecutionRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM executions WHERE {rest}");
    Ok(db.prepare_cached(&sql)?.query_row(values, row).optional()?)
}

/// The execution of a session.
pub(crate) fn get(
    db: &Connection,
    sandbox: &str,
    session: &str,
    id: &str,
) -> Result<Option<ExecutionRow>, StoreError> {
    one(
        db,
        "sandbox = ?1 AND session = ?2 AND id = ?3",
        [sandbox, session, id],
    )
}

/// The newest execution with this id in any session.
pub(crate) fn find(
    db: &Connection,
    sandbox: &str,
    id: &str,
) -> Result<Option<ExecutionRow>, StoreError> {
    one(
        db,
        "sandbox = ?1 AND id = ?2 ORDER BY pk DESC LIMIT 1",
        [sandbox, id],
    )
}

/// The first run of a turn.
pub(crate) fn of_turn(
    db: &Connection,
    sandbox: &str,
    session: &str,
    turn: &str,
) -> Result<Option<ExecutionRow>, StoreError> {
    one(
        db,
        "sandbox = ?1 AND session = ?2 AND turn = ?3",
        [sandbox, session, turn],
    )
}

/// The newest execution of a session.
pub(crate) fn latest(
    db: &Connection,
    sandbox: &str,
    session: &str,
) -> Result<Option<ExecutionRow>, StoreError> {
    one(
        db,
        "sandbox = ?1 AND session = ?2 ORDER BY pk DESC LIMIT 1",
        [sandbox, session],
    )
}

/// The executions of a session, newest first.
pub(crate) fn list(
    db: &Connection,
    sandbox: &str,
    session: &str,
) -> Result<Vec<ExecutionRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM executions WHERE sandbox = ?1 AND session = ?2 ORDER BY pk DESC"
    ))?;
    let rows = query.query_map([sandbox, session], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Every execution that is not over.
pub(crate) fn running(db: &Connection) -> Result<Vec<ExecutionRow>, StoreError> {
    let mut query = db.prepare(&format!(
        "SELECT {COLUMNS} FROM executions WHERE status = 'running'"
    ))?;
    let rows = query.query_map([], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The recorded result, as JSON; only of an execution that is over.
pub(crate) fn result(db: &Connection, pk: i64) -> Result<Option<String>, StoreError> {
    let result = db
        .prepare_cached("SELECT result FROM executions WHERE pk = ?1")?
        .query_row([pk], |row| row.get(0))
        .optional()?;
    Ok(result.flatten())
}

/// Number of the newest frame; 0 when nothing of the execution is there any more.
pub(crate) fn newest(db: &Connection, pk: i64) -> Result<i64, StoreError> {
    let newest = db
        .prepare_cached("SELECT newest FROM executions WHERE pk = ?1")?
        .query_row([pk], |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}

/// Records an execution and returns its number.
pub(crate) fn insert(db: &Connection, execution: &ExecutionRow) -> Result<i64, StoreError> {
    let e = execution;
    db.prepare_cached(
        "INSERT INTO executions (sandbox, session, id, turn, input, reference, status, detached, started_at, newest, \
         context) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        e.sandbox,
        e.session,
        e.id,
        e.turn,
        e.input,
        e.reference,
        e.status,
        e.detached,
        e.started_at,
        e.newest,
        e.context
    ])?;
    Ok(db.last_insert_rowid())
}

/// From here on the execution outlives its reader.
pub(crate) fn set_detached(db: &Connection, pk: i64) -> Result<(), StoreError> {
    db.execute("UPDATE executions SET detached = 1 WHERE pk = ?1", [pk])?;
    Ok(())
}

/// The execution is over.
pub(crate) fn set_ended(
    db: &Connection,
    pk: i64,
    status: &str,
    result: &str,
    now: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE executions SET status = ?2, result = ?3, completed_at = ?4 WHERE pk = ?1",
    )?
    .execute(params![pk, status, result, now])?;
    Ok(())
}
