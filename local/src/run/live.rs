//! What is known of a run while it goes on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::Shared;

/// How far the record of an execution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of the newest recorded frame.
    pub(crate) newest: i64,
    /// True when no frame follows.
    pub(crate) ended: bool,
}

/// Why a run is ended before its agent has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Somebody cancelled it, or its last reader left.
    Cancelled,
    /// The caller's limit passed.
    TimedOut,
    /// The deployment is being stopped.
    Stopped,
    /// Its events cannot be recorded.
    Unrecorded,
}

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) sandbox: String,
    pub(crate) session: String,
    pub(crate) execution: String,
    progress: watch::Sender<Progress>,
    ending: Mutex<Option<Ending>>,
    stop: CancellationToken,
    detached: AtomicBool,
    readers: Mutex<Readers>,
}

/// The readers of a run. A run that is not detached ends when it has had none for the grace (wire protocol, 7.5).
#[derive(Debug, Default)]
struct Readers {
    present: usize,
    /// How many there have been, so that an old grace does not end a run that was read meanwhile.
    arrivals: u64,
}

impl Live {
    pub(crate) fn new(sandbox: &str, session: &str, execution: &str, detached: bool) -> Self {
        let begin = Progress {
            newest: 0,
            ended: false,
        };
        Self {
            sandbox: sandbox.to_owned(),
            session: session.to_owned(),
            execution: execution.to_owned(),
            progress: watch::Sender::new(begin),
            ending: Mutex::new(None),
            stop: CancellationToken::new(),
            detached: AtomicBool::new(detached),
            readers: Mutex::new(Readers::default()),
        }
    }

    /// Tells readers of newly recorded frames.
    pub(crate) fn publish(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }

    /// Follows the record.
    pub(crate) fn follow(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Whether no frame follows.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.borrow().ended
    }

    /// Asks for the end. The first reason counts.
    pub(crate) fn end(&self, why: Ending) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.get_or_insert(why);
        drop(ending);
        self.stop.cancel();
    }

    /// Asks for the end for a reason that goes before every other.
    pub(crate) fn fail(&self, why: Ending) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        *ending = Some(why);
        drop(ending);
        self.stop.cancel();
    }

    /// Fires when the run is to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Why the run is to end, when it is.
    pub(crate) fn ending(&self) -> Option<Ending> {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on the run outlives its readers.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::SeqCst);
    }

    /// Whether the run outlives its readers.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::SeqCst)
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reader until what is returned is dropped.
    pub(crate) fn attach(self: &Arc<Self>, deployment: &Shared) -> Attached {
        let mut readers = self.readers();
        readers.present += 1;
        readers.arrivals += 1;
        Attached {
            live: self.clone(),
            deployment: deployment.clone(),
        }
    }
}

/// Held by whoever answers a reader: the one that started the run, one that came back, one that only watches. The
/// deployment cannot tell them apart, and a connection that is dead may end after its reader has come back on another
/// one; therefore only the last of them to leave begins the grace, after which the run is cancelled unless somebody reads
/// it again or it was detached.
pub(crate) struct Attached {
    live: Arc<Live>,
    deployment: Shared,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let arrivals = {
            let mut readers = self.live.readers();
            readers.present -= 1;
            if readers.present > 0 {
                return;
            }
            readers.arrivals
        };
        if self.live.is_detached() || self.live.is_over() {
            return;
        }
        let (live, grace) = (self.live.clone(), self.deployment.settings.reader_grace);
        self.deployment.tasks.spawn(async move {
            let mut progress = live.follow();
            tokio::select! {
                _ = progress.wait_for(|progress| progress.ended) => return,
                () = tokio::time::sleep(grace) => {}
            }
            let read_again = live.readers().arrivals != arrivals;
            if !read_again && !live.is_detached() {
                live.end(Ending::Cancelled);
            }
        });
    }
}

/// The runs that go on, by the number of their execution.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<HashMap<i64, Arc<Live>>>);

impl Runs {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, pk: i64, live: Arc<Live>) {
        self.lock().insert(pk, live);
    }

    pub(crate) fn remove(&self, pk: i64) {
        self.lock().remove(&pk);
    }

    /// Removes exactly this run, whatever number it was given.
    pub(crate) fn forget(&self, live: &Arc<Live>) {
        self.lock().retain(|_, known| !Arc::ptr_eq(known, live));
    }

    pub(crate) fn get(&self, pk: i64) -> Option<Arc<Live>> {
        self.lock().get(&pk).cloned()
    }

    /// The runs of a sandbox that fit. One whose end was told to its readers does not go on any more.
    pub(crate) fn of(&self, sandbox: &str, fits: impl Fn(&Live) -> bool) -> Vec<Arc<Live>> {
        self.lock()
            .values()
            .filter(|live| live.sandbox == sandbox && !live.is_over() && fits(live))
            .cloned()
            .collect()
    }
}
