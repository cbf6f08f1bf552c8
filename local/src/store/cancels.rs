//! The ledger of cancellations: an operation id is bound to one request for ever.

use rusqlite::{Connection, OptionalExtension as _};

use super::StoreError;

/// What is recorded of a cancellation.
#[derive(Clone, Debug)]
pub(crate) struct CancelRow {
    pub(crate) digest: String,
    pub(crate) effect: String,
}

/// A cancellation by its operation id.
pub(crate) fn get(
    db: &Connection,
    sandbox: &str,
    operation: &str,
) -> Result<Option<CancelRow>, StoreError> {
    let cancel = db
        .prepare_cached("SELECT digest, effect FROM cancels WHERE sandbox = ?1 AND operation = ?2")?
        .query_row([sandbox, operation], |row| {
            Ok(CancelRow {
                digest: row.get(0)?,
                effect: row.get(1)?,
            })
        })
        .optional()?;
    Ok(cancel)
}

/// Records a cancellation.
pub(crate) fn insert(
    db: &Connection,
    sandbox: &str,
    operation: &str,
    cancel: &CancelRow,
) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO cancels (sandbox, operation, digest, effect) VALUES (?1, ?2, ?3, ?4)",
        [sandbox, operation, &cancel.digest, &cancel.effect],
    )?;
    Ok(())
}
