//! The tables.

use std::time::Duration;

use rusqlite::Connection;

use super::StoreError;

/// How long a connection waits for another.
pub(super) const BUSY: Duration = Duration::from_secs(10);

const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT,
    status TEXT NOT NULL,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    last_activity_at INTEGER,
    expires_at INTEGER,
    stopped_at INTEGER,
    idle_seconds INTEGER NOT NULL DEFAULT 0,
    delete_after_seconds INTEGER NOT NULL DEFAULT 0,
    metadata TEXT NOT NULL,
    env TEXT NOT NULL,
    backend TEXT,
    egress TEXT,
    managed INTEGER NOT NULL,
    marker TEXT NOT NULL,
    processes INTEGER NOT NULL DEFAULT 0,
    incarnation TEXT NOT NULL,
    ready INTEGER NOT NULL DEFAULT 0,
    deleting INTEGER NOT NULL DEFAULT 0,
    files INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX sandboxes_listed ON sandboxes (created_at DESC, id);
CREATE TABLE creations (
    key TEXT PRIMARY KEY NOT NULL,
    digest TEXT NOT NULL,
    sandbox TEXT NOT NULL
) STRICT;
CREATE TABLE sessions (
    sandbox TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT,
    backend TEXT NOT NULL,
    model TEXT,
    native TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE executions (
    pk INTEGER PRIMARY KEY AUTOINCREMENT,
    sandbox TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    turn TEXT,
    input TEXT NOT NULL,
    reference TEXT NOT NULL,
    status TEXT NOT NULL,
    detached INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    completed_at INTEGER,
    newest INTEGER NOT NULL,
    context TEXT,
    result TEXT,
    UNIQUE (sandbox, session, id)
) STRICT;
CREATE UNIQUE INDEX executions_turn ON executions (sandbox, session, turn) WHERE turn IS NOT NULL;
CREATE INDEX executions_active ON executions (status) WHERE status = 'running';
CREATE TABLE frames (
    execution INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE changes (
    sandbox TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (sandbox, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE cancels (
    sandbox TEXT NOT NULL,
    operation TEXT NOT NULL,
    digest TEXT NOT NULL,
    effect TEXT NOT NULL,
    PRIMARY KEY (sandbox, operation)
) STRICT, WITHOUT ROWID;
";

/// Sets the connection up and makes the tables of a new file.
pub(super) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        VERSION => Ok(()),
        0 => {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?;
            Ok(())
        }
        _ => Err(StoreError::Newer),
    }
}
