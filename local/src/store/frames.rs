//! The frames of executions. They are numbered 1, 2, 3, … and recorded before anybody sees them.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::StoreError;

/// A frame before it has a number: the event's name and its data as JSON text.
#[derive(Clone, Debug)]
pub(crate) struct NewFrame {
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// A recorded frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) number: i64,
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// Records `frames` with the numbers after `newest` and returns the newest number then.
pub(crate) fn append(
    db: &Connection,
    execution: i64,
    newest: i64,
    frames: &[NewFrame],
) -> Result<i64, StoreError> {
    let mut insert = db.prepare_cached(
        "INSERT INTO frames (execution, number, kind, data) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut number = newest;
    for frame in frames {
        number += 1;
        insert.execute(params![execution, number, frame.kind, frame.data])?;
    }
    db.prepare_cached("UPDATE executions SET newest = ?2 WHERE pk = ?1")?
        .execute([execution, number])?;
    Ok(number)
}

/// The frames after `cursor`, in order: at most `count`, and no further one once `bytes` are reached.
pub(crate) fn page(
    db: &Connection,
    execution: i64,
    cursor: i64,
    count: usize,
    bytes: usize,
) -> Result<Vec<Frame>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT number, kind, data FROM frames WHERE execution = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let mut rows = query.query(params![execution, cursor, count as i64])?;
    let (mut frames, mut size) = (Vec::new(), 0);
    while size < bytes
        && let Some(row) = rows.next()?
    {
        let frame = Frame {
            number: row.get(0)?,
            kind: row.get(1)?,
            data: row.get(2)?,
        };
        size += frame.data.len();
        frames.push(frame);
    }
    Ok(frames)
}

/// The oldest frame that is held.
pub(crate) fn oldest(db: &Connection, execution: i64) -> Result<Option<i64>, StoreError> {
    let oldest = db
        .prepare_cached("SELECT number FROM frames WHERE execution = ?1 ORDER BY number LIMIT 1")?
        .query_row([execution], |row| row.get(0))
        .optional()?;
    Ok(oldest)
}
