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

/// Does the work inside the transaction; true when it is to be kept.
type Job = Box<dyn FnOnce(&Connection) -> (bool, Answer) + Send>;

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
            let result = job(connection);
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

fn commit(connection: &Connection, batch: &mut Vec<Job>) {
    let mut answers: Vec<(bool, Answer)> = Vec::with_capacity(batch.len());
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    for job in batch.drain(..) {
        let marked = connection.execute_batch("SAVEPOINT job").is_ok();
        let (keep, answer) = job(connection);
        if marked && !keep {
            let _ = connection.execute_batch("ROLLBACK TO job"); // a failed one rolls back everything below
        }
        let released = !marked || connection.execute_batch("RELEASE job").is_ok();
        answers.push((marked && released, answer));
    }
    let committed = begun.and_then(|()| connection.execute_batch("COMMIT"));
    let committed = committed.map_err(StoreError::from);
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK"); // nothing of the batch was acknowledged
    }
    for (whole, answer) in answers {
        let result = match &committed {
            Ok(()) if whole => Ok(()),
            Ok(()) => Err(StoreError::Broken("a savepoint was lost".into())),
            Err(error) => Err(error.clone()),
        };
        answer(result);
    }
}

#[cfg(test)]
mod tests {
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
        let count: i64 = writer
            .write(|db| {
                Ok::<_, StoreError>(db.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
            })
            .await
            .unwrap();
        assert_eq!(count, 40);
    }

    #[tokio::test]
    async fn a_closed_writer_refuses() {
        let writer = writer();
        writer.close().await;
        assert!(matches!(insert(&writer, 1).await, Err(StoreError::Closed)));
        writer.close().await;
    }
}
