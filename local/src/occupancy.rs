//! Who is inside a sandbox right now, and the one lease for `stop`, `resume` and `delete` (wire protocol, 4.4).
//!
//! Whatever touches a sandbox's files or processes enters it first. A lease keeps newcomers out; its holder can tell
//! those inside to leave and wait until they have.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::ids::now;

#[derive(Clone, Debug, Default)]
pub(crate) struct Occupancy {
    sandboxes: Arc<Mutex<HashMap<String, Place>>>,
    /// Fires when somebody came or left, so that the activity is recorded.
    used: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Place {
    leased: bool,
    inside: usize,
    leave: CancellationToken,
    changed: Arc<Notify>,
    last_activity: i64,
    /// Whether `last_activity` is newer than what was taken for the record.
    unrecorded: bool,
    /// Whether somebody prepares the sandbox.
    preparing: bool,
}

/// Somebody is inside until this is dropped.
#[derive(Debug)]
pub(crate) struct Stay {
    of: Occupancy,
    id: String,
    leave: CancellationToken,
    prepares: bool,
}

/// Nobody enters until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    of: Occupancy,
    id: String,
}

impl Occupancy {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the sandbox; `None` while another operation holds its lease.
    pub(crate) fn enter(&self, id: &str) -> Option<Stay> {
        self.come(id, false)
    }

    /// Enters the sandbox to prepare it; `None` also while somebody else does.
    pub(crate) fn prepare(&self, id: &str) -> Option<Stay> {
        self.come(id, true)
    }

    fn come(&self, id: &str, prepares: bool) -> Option<Stay> {
        let mut sandboxes = self.lock();
        let place = sandboxes.entry(id.to_owned()).or_default();
        if place.leased || (prepares && place.preparing) {
            return None;
        }
        place.preparing |= prepares;
        place.inside += 1;
        place.used();
        self.used.notify_one();
        Some(Stay {
            of: self.clone(),
            id: id.to_owned(),
            leave: place.leave.clone(),
            prepares,
        })
    }

    /// Takes the lease; `None` while somebody else has it.
    pub(crate) fn lease(&self, id: &str) -> Option<Lease> {
        let mut sandboxes = self.lock();
        let place = sandboxes.entry(id.to_owned()).or_default();
        if std::mem::replace(&mut place.leased, true) {
            return None;
        }
        Some(Lease {
            of: self.clone(),
            id: id.to_owned(),
        })
    }

    /// Milliseconds since 1970 of the last use, when there was one since the start; the present while somebody is inside.
    pub(crate) fn last_activity(&self, id: &str) -> Option<i64> {
        let sandboxes = self.lock();
        let place = sandboxes.get(id)?;
        match (place.inside, place.last_activity) {
            (0, 0) => None,
            (0, last) => Some(last),
            _ => Some(now()),
        }
    }
}

impl Occupancy {
    /// Waits until there is activity that is not recorded.
    pub(crate) async fn used(&self) {
        self.used.notified().await;
    }

    /// When sandboxes were last used, of those used since the last call.
    pub(crate) fn take_unrecorded(&self) -> BTreeMap<String, i64> {
        let mut sandboxes = self.lock();
        let used = sandboxes.iter_mut().filter(|(_, place)| place.unrecorded);
        used.map(|(id, place)| {
            place.unrecorded = false;
            (id.clone(), place.last_activity)
        })
        .collect()
    }
}

impl Place {
    fn used(&mut self) {
        self.last_activity = now();
        self.unrecorded = true;
    }
}

impl Stay {
    /// Fires when those inside have to leave.
    pub(crate) fn leave(&self) -> &CancellationToken {
        &self.leave
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut sandboxes = self.of.lock();
        if let Some(place) = sandboxes.get_mut(&self.id) {
            place.inside -= 1;
            place.preparing &= !self.prepares;
            place.used();
            place.changed.notify_waiters();
            self.of.used.notify_one();
        }
    }
}

impl Lease {
    /// Tells those inside to leave and waits, at most `limit`; true when nobody is inside.
    pub(crate) async fn evict(&self, limit: Duration) -> bool {
        let changed = match self.of.lock().get(&self.id) {
            Some(place) => {
                place.leave.cancel();
                place.changed.clone()
            }
            None => return true,
        };
        let empty = async {
            loop {
                let change = changed.notified();
                tokio::pin!(change);
                change.as_mut().enable();
                if self
                    .of
                    .lock()
                    .get(&self.id)
                    .is_none_or(|place| place.inside == 0)
                {
                    return;
                }
                change.await;
            }
        };
        tokio::time::timeout(limit, empty).await.is_ok()
    }

    /// The sandbox is gone: nothing is remembered of it.
    pub(crate) fn forget(self) {
        self.of.lock().remove(&self.id);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(place) = self.of.lock().get_mut(&self.id) {
            place.leased = false;
            place.leave = CancellationToken::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Occupancy;

    #[tokio::test]
    async fn a_lease_keeps_out_and_waits_for_those_inside() {
        let occupancy = Occupancy::default();
        let stay = occupancy.enter("a").unwrap();
        let lease = occupancy.lease("a").unwrap();
        assert!(occupancy.enter("a").is_none() && occupancy.lease("a").is_none());
        assert!(occupancy.enter("b").is_some());
        assert!(!lease.evict(Duration::from_millis(1)).await);
        assert!(stay.leave().is_cancelled());
        drop(stay);
        assert!(lease.evict(Duration::from_secs(5)).await);
        drop(lease);
        assert!(!occupancy.enter("a").unwrap().leave().is_cancelled());
    }

    #[test]
    fn one_at_a_time_prepares() {
        let occupancy = Occupancy::default();
        let first = occupancy.prepare("a").unwrap();
        assert!(occupancy.prepare("a").is_none() && occupancy.enter("a").is_some());
        drop(first);
        assert!(occupancy.prepare("a").is_some());
    }

    #[test]
    fn activity_is_taken_for_the_record_once() {
        let occupancy = Occupancy::default();
        drop(occupancy.enter("a"));
        let taken = occupancy.take_unrecorded();
        assert_eq!(taken.keys().collect::<Vec<_>>(), ["a"]);
        assert!(occupancy.take_unrecorded().is_empty());
        drop(occupancy.enter("a"));
        assert_eq!(occupancy.take_unrecorded().len(), 1);
    }
}
