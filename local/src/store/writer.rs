//! The thread that writes. What is queued is committed in one transaction; a caller hears of its job only afterwards.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::StoreError;

/// Jobs that may wait.
const QUEUE: usize = 1024;
/// Jobs in one transaction.
const BATCH: usize = 512;

/// Tells the caller, after the commit or its failure.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Does the work inside the transaction, or nothing when there is none; true when it is to be kept.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> (bool, Answer) + Send>;

enum Message {
    Job(Job),
    Close,
}

#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("tangle-store".to_owned())
            .spawn(move || serve(&connection, jobs))
            .map_err(|error| StoreError::Broken(error.to_string().into()))?;
        Ok(Self {
            queue,
            thread: Arc::new(Mutex::new(Some(thread))),
        })
    }

    pub(super) async fn write<T, E>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let result = connection.map_err(E::from).and_then(job);
            let keep = result.is_ok();
            let tell: Answer = Box::new(move |committed| {
                let result = result.and_then(|value| committed.map(|()| value).map_err(E::from));
                let _ = answer.send(result); // a caller that is gone needs no answer
            });
            (keep, tell)
        });
        let sent = self.queue.send(Message::Job(job)).await;
        sent.map_err(|_| StoreError::Closed)?;
        answered
            .await
            .unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    pub(super) async fn close(&self) {
        let _ = self.queue.send(Message::Close).await; // already closed is what we want
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn serve(connection: &Connection, mut jobs: mpsc::Receiver<Message>) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(Message::Job(first)) = jobs.blocking_recv() {
        batch.push(first);
        let mut close = false;
        while batch.len() < BATCH {
            match jobs.try_recv() {
                Ok(Message::Job(job)) => batch.push(job),
                Ok(Message::Close) => {
                    close = true;
                    break;
                }
                Err(_) => break,
            }
        }
        commit(connection, &mut batch);
        if close {
            break;
        }
    }
}

/// Runs the jobs in one transaction. Once there is none, since it could not be begun or SQLite has rolled it back, the
/// jobs that are left do not run, and every caller gets the error: outside of a transaction each statement would stay.
fn commit(connection: &Connection, batch: &mut Vec<Job>) {
    let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    let mut transaction = begun.map_err(StoreError::from);
    for job in batch.drain(..) {
        let marked = transaction
            .clone()
            .and_then(|()| Ok(connection.execute_batch("SAVEPOINT job")?));
        let (keep, answer) = job(marked.clone().map(|()| connection));
        answers.push(answer);
        if transaction.is_ok() {
            transaction = marked.and_then(|()| leave(connection, keep));
        }
    }
    let committed = transaction.and_then(|()| Ok(connection.execute_batch("COMMIT")?));
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK"); // nothing of the batch was acknowledged
    }
    for answer in answers {
        answer(committed.clone());
    }
}

/// Leaves the savepoint of a job; without what the job did, unless it is to be kept.
fn leave(connection: &Connection, keep: bool) -> Result<(), StoreError> {
    if connection.is_autocommit() {
        return Err(StoreError::Broken("the transaction was lost".into()));
    }
    let end = match keep {
        true => "RELEASE job",
        false => "ROLLBACK TO job; RELEASE job",
    };
    Ok(connection.execute_batch(end)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::Connection;

    use super::super::StoreError;
    use super::Writer;

    fn writer() -> Writer {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (n INTEGER UNIQUE)")
            .unwrap();
        Writer::start(connection).unwrap()
    }

    async fn count(writer: &Writer) -> i64 {
        let rows = writer.write::<_, StoreError>(|db| {
            Ok(db.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
        });
        rows.await.unwrap()
    }

    async fn insert(writer: &Writer, number: i64) -> Result<(), StoreError> {
        writer
            .write(move |db| {
                db.execute("INSERT INTO t VALUES (?1)", [number])?;
                // The second statement fails for an even number, so that the first must be undone.
                db.execute(
                    "INSERT INTO t VALUES (?1)",
                    [if number % 2 == 0 { number } else { -number }],
                )?;
                Ok(())
            })
            .await
    }

    #[tokio::test]
    async fn a_job_that_fails_leaves_nothing_and_its_neighbours_stay() {
        let writer = writer();
        let results = futures_util::future::join_all((1..=40).map(|n| insert(&writer, n))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 20);
        assert_eq!(count(&writer).await, 40);
    }

    #[tokio::test]
    async fn without_a_transaction_no_job_runs_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let connection = Connection::open(&path).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        connection
            .execute_batch("CREATE TABLE t (n INTEGER UNIQUE)")
            .unwrap();
        let other = Connection::open(&path).unwrap();
        let writer = Writer::start(connection).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The lock goes in the middle of the job, so that its statement would succeed on its own.
        let job = writer.write::<_, StoreError>(move |db| {
            other.execute_batch("ROLLBACK")?;
            Ok(db.execute("INSERT INTO t VALUES (1)", [])?)
        });
        assert!(job.await.is_err());
        assert_eq!(count(&writer).await, 0);
    }

    #[tokio::test]
    async fn a_job_that_loses_the_transaction_fails_the_batch_and_nothing_stays() {
        let writer = writer();
        let jobs = (1..=3).map(|number| {
            writer.write::<_, StoreError>(move |db| {
                db.execute("INSERT INTO t VALUES (?1)", [number])?;
                if number == 2 {
                    db.execute_batch("ROLLBACK")?; // as SQLite does by itself, for example on a full disk
                }
                Ok(())
            })
        });
        // One batch or several: the job that lost the transaction fails, and what was not acknowledged is not there.
        let results = futures_util::future::join_all(jobs).await;
        assert!(results[1].is_err());
        let kept = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(count(&writer).await, kept as i64);
    }

    #[tokio::test]
    async fn a_closed_writer_refuses() {
        let writer = writer();
        writer.close().await;
        assert!(matches!(insert(&writer, 1).await, Err(StoreError::Closed)));
        writer.close().await;
    }
}
