//! What survives a restart: one SQLite file, written by one thread.
//!
//! * [`writer`] – the thread that writes; it commits what is queued in one transaction and answers only then.
//! * [`schema`] – the tables.
//! * [`sandboxes`] – sandboxes and the keys under which they were made.
//! * [`sessions`] – sessions.
//! * [`executions`] – executions and turns.
//! * [`frames`] – the frames of executions.
//! * [`cancels`] – the ledger of cancellations.
//! * [`changes`] – the changes of a sandbox's status.
//!
//! The file is in WAL mode with `synchronous = NORMAL`: what was acknowledged survives the death of the process. A power
//! failure may lose the last moments, never the integrity of the file.

pub(crate) mod cancels;
pub(crate) mod changes;
pub(crate) mod executions;
pub(crate) mod frames;
pub(crate) mod sandboxes;
mod schema;
pub(crate) mod sessions;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;

use writer::Writer;

/// Connections that read at the same time.
const READERS: usize = 8;

/// Why something could not be recorded or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk is full. Make room and repeat.
    #[error("the disk of the data directory is full")]
    Full,
    /// The file cannot be written, usually because the data directory is read-only.
    #[error("the data directory cannot be written")]
    ReadOnly,
    /// The file was written by a newer version of this program.
    #[error("the data directory was written by a newer version")]
    Newer,
    /// Somebody else holds the file. Repeat in a moment.
    #[error("the record is busy")]
    Busy,
    /// The deployment is being stopped.
    #[error("the deployment is being stopped")]
    Closed,
    /// Anything else that SQLite reports; the text is its own and holds no value.
    #[error("the record cannot be used: {0}")]
    Broken(Arc<str>),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        match code {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly
            }
            Some(code) => Self::Broken(format!("{code:?}").into()),
            None => Self::Broken(error.to_string().into()),
        }
    }
}

/// The record.
#[derive(Clone)]
pub(crate) struct Store {
    writer: Writer,
    readers: Arc<Readers>,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Store {
    /// Opens or makes the file and starts its writer.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        schema::prepare(&connection)?;
        Ok(Self {
            writer: Writer::start(connection)?,
            readers: Arc::new(Readers {
                path: path.to_owned(),
                idle: Mutex::new(Vec::new()),
                permits: Semaphore::new(READERS),
            }),
        })
    }

    /// Runs `job` in a transaction, together with others that wait, and returns when it is committed. When `job` fails,
    /// nothing of it is kept.
    pub(crate) async fn write<T, E>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.writer.write(job).await
    }

    /// Runs `job` on what is committed.
    pub(crate) async fn read<T, E>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let readers = self.readers.clone();
        let permit = readers.permits.acquire().await;
        permit.map_err(|_| StoreError::Closed)?.forget();
        let work = tokio::task::spawn_blocking(move || {
            let result = readers.with(job);
            readers.permits.add_permits(1);
            result
        });
        work.await
            .unwrap_or_else(|_| Err(StoreError::Broken("a read ended unexpectedly".into()).into()))
    }

    /// Ends the writer after everything that is queued; later calls fail with [`StoreError::Closed`].
    pub(crate) async fn close(&self) {
        self.writer.close().await;
        self.readers.permits.close();
        self.readers
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Readers {
    fn with<T, E: From<StoreError>>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let result = job(&connection);
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        result
    }

    fn open(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(schema::BUSY)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}
