//! The changes of a sandbox's status, numbered 1, 2, 3, … within the sandbox.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::StoreError;

/// A change of status.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) number: i64,
    pub(crate) status: String,
    pub(crate) at: i64,
}

/// Notes that the sandbox has this status from now on.
pub(super) fn note(
    db: &Connection,
    sandbox: &str,
    status: &str,
    at: i64,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO changes (sandbox, number, status, at) \
         SELECT ?1, 1 + coalesce(max(number), 0), ?2, ?3 FROM changes WHERE sandbox = ?1",
    )?
    .execute(params![sandbox, status, at])?;
    Ok(())
}

/// The number of the newest change; 0 when there is none.
pub(crate) fn newest(db: &Connection, sandbox: &str) -> Result<i64, StoreError> {
    let newest = db
        .prepare_cached("SELECT coalesce(max(number), 0) FROM changes WHERE sandbox = ?1")?
        .query_row([sandbox], |row| row.get(0))?;
    Ok(newest)
}

/// The changes after `cursor`, in order, and whether the sandbox is still there in any form.
pub(crate) fn after(
    db: &Connection,
    sandbox: &str,
    cursor: i64,
) -> Result<(Vec<Change>, bool), StoreError> {
    let mut query = db.prepare_cached(
        "SELECT number, status, at FROM changes WHERE sandbox = ?1 AND number > ?2 ORDER BY number LIMIT 500",
    )?;
    let changes = query.query_map(params![sandbox, cursor], |row| {
        Ok(Change {
            number: row.get(0)?,
            status: row.get(1)?,
            at: row.get(2)?,
        })
    })?;
    let changes = changes.collect::<Result<_, _>>()?;
    let there = db
        .prepare_cached("SELECT 1 FROM sandboxes WHERE id = ?1")?
        .query_row([sandbox], |_| Ok(()))
        .optional()?;
    Ok((changes, there.is_some()))
}
