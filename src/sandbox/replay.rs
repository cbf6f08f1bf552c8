//! Frames that come again on a later connection, although the cursor was named.

use crate::contract::types::EventId;

/// How frames are recognised that were handed out on an earlier connection.
#[derive(Default)]
pub(crate) struct Replay {
    /// The id of the run's first frame.
    first: Option<EventId>,
    rejoined: bool,
    /// The frames come from the first one again, up to the cursor.
    running: bool,
}

impl Replay {
    /// Another connection begins.
    pub fn rejoined(&mut self) {
        self.rejoined = true;
        self.running = false;
    }

    /// Whether the frame with this id was handed out already.
    pub fn repeats(&mut self, id: &EventId, cursor: Option<&EventId>) -> bool {
        let Some(cursor) = cursor else {
            self.first.get_or_insert_with(|| id.clone());
            return false;
        };
        if id == cursor {
            self.running = false;
            return true;
        }
        if !self.rejoined {
            return false;
        }
        // Ids are opaque; those that are numbers can be told apart without having seen the replay from its begin.
        if let (Ok(id), Ok(cursor)) = (id.parse::<u64>(), cursor.parse::<u64>()) {
            return id < cursor;
        }
        self.running |= self.first.as_ref() == Some(id);
        self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(ids: &[&str], again: &[&str]) -> Vec<bool> {
        let mut replay = Replay::default();
        let mut cursor = None;
        let mut take = |replay: &mut Replay, id: &str| {
            let id = EventId::new(id).unwrap();
            let repeats = replay.repeats(&id, cursor.as_ref());
            if !repeats {
                cursor = Some(id);
            }
            repeats
        };
        for id in ids {
            assert!(!take(&mut replay, id));
        }
        replay.rejoined();
        again.iter().map(|id| take(&mut replay, id)).collect()
    }

    #[test]
    fn numbers_are_told_apart_from_any_point_on() {
        assert_eq!(
            repeated(&["1", "2", "9"], &["2", "9", "10"]),
            [true, true, false]
        );
        assert_eq!(repeated(&["1", "2"], &["3", "4"]), [false, false]);
    }

    #[test]
    fn words_are_told_apart_when_they_come_from_the_first_one_on() {
        assert_eq!(
            repeated(&["b", "a", "c"], &["b", "a", "c", "a2"]),
            [true, true, true, false]
        );
        assert_eq!(repeated(&["b", "a"], &["c"]), [false]);
    }

    #[test]
    fn on_one_connection_every_frame_counts() {
        assert!(repeated(&["5", "4", "3"], &[]).is_empty());
    }
}
