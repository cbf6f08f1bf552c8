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
    /// Somebody cancelled it, or its reader left.
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
    owner: Mutex<Owner>,
}

/// The reader whose leaving cancels a run that is not detached.
#[derive(Debug, Default)]
struct Owner {
    present: bool,
    /// How often there was one, so that an old grace does not end a newer stay.
    stays: u64,
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
            owner: Mutex::new(Owner::default()),
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

    fn owner(&self) -> MutexGuard<'_, Owner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes the owner, unless there is one.
    pub(crate) fn own(self: &Arc<Self>, deployment: &Shared) -> Option<Ownership> {
        let mut owner = self.owner();
        if std::mem::replace(&mut owner.present, true) {
            return None;
        }
        owner.stays += 1;
        Some(Ownership {
            live: self.clone(),
            deployment: deployment.clone(),
        })
    }
}

/// Held by the response body of the reader that owns the run. When it is dropped before the run has ended, the run is
/// cancelled after the grace, unless somebody becomes its owner meanwhile or it was detached.
pub(crate) struct Ownership {
    live: Arc<Live>,
    deployment: Shared,
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let stays = {
            let mut owner = self.live.owner();
            owner.present = false;
            owner.stays
        };
        if self.live.is_detached() || self.live.progress.borrow().ended {
            return;
        }
        let (live, grace) = (self.live.clone(), self.deployment.settings.reader_grace);
        self.deployment.tasks.spawn(async move {
            let mut progress = live.follow();
            tokio::select! {
                _ = progress.wait_for(|progress| progress.ended) => return,
                () = tokio::time::sleep(grace) => {}
            }
            let returned = {
                let owner = live.owner();
                owner.present || owner.stays != stays
            };
            if !returned && !live.is_detached() {
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
            .filter(|live| live.sandbox == sandbox && !live.progress.borrow().ended && fits(live))
            .cloned()
            .collect()
    }
}
