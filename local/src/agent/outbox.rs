//! The way of a turn's events to their reader: bounded in number by the channel, in bytes by what still lies in it.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::sync::mpsc::{self, Permit};

use super::size::held_bytes;
use super::turn::AgentEvent;

/// Bytes in memory of the events that wait for the reader. The largest single event passes whatever it takes.
const WAITING_LIMIT: usize = 16 << 20;

pub(super) struct Outbox<'a> {
    events: &'a mpsc::Sender<AgentEvent>,
    /// The sizes of the newest events, at least of those that the reader has not taken.
    sizes: VecDeque<usize>,
    waiting: usize,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(events: &'a mpsc::Sender<AgentEvent>) -> Self {
        Self {
            events,
            sizes: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Waits until the reader has gone away.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }

    /// Waits until an event of so many bytes has room; `None` when the reader has gone away. Cancel safe.
    pub(super) async fn room(&mut self, bytes: usize) -> Option<Permit<'a, AgentEvent>> {
        let slots = self.slots(bytes);
        self.events.reserve_many(slots).await.ok()?.next()
    }

    /// Hands an event over.
    pub(super) fn send(&mut self, permit: Permit<'a, AgentEvent>, event: AgentEvent, bytes: usize) {
        self.sizes.push_back(bytes);
        self.waiting += bytes;
        permit.send(event);
    }

    /// How many places must be free, so that the reader has taken enough of the oldest events.
    fn slots(&mut self, bytes: usize) -> usize {
        let (free, all) = (self.events.capacity(), self.events.max_capacity());
        while self.sizes.len() > all - free {
            self.waiting -= self.sizes.pop_front().unwrap_or_default();
        }
        let (mut waiting, mut taken) = (self.waiting, 0);
        for size in &self.sizes {
            if waiting + bytes <= WAITING_LIMIT {
                break;
            }
            waiting -= size;
            taken += 1;
        }
        if taken == 0 {
            1
        } else {
            (free + taken).min(all)
        }
    }
}

/// Bytes of an event in memory.
pub(super) fn bytes_of(event: &AgentEvent) -> usize {
    let data = event.data.iter();
    data.map(|(name, value): (&String, &Value)| name.len() + held_bytes(value))
        .sum()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::{Outbox, WAITING_LIMIT, bytes_of};
    use crate::agent::turn::AgentEvent;

    fn event(bytes: usize) -> AgentEvent {
        AgentEvent::new("raw", json!({ "x": "y".repeat(bytes) }))
    }

    /// Sends as many as there is room for.
    fn fill(outbox: &mut Outbox<'_>, each: usize) -> usize {
        let mut sent = 0;
        loop {
            let event = event(each);
            let bytes = bytes_of(&event);
            let Some(permit) = outbox.room(bytes).now_or_never() else {
                return sent;
            };
            outbox.send(permit.unwrap(), event, bytes);
            sent += 1;
        }
    }

    #[test]
    fn acp_12_2_waiting_events_are_bounded_in_bytes_and_in_number() {
        let (sender, mut receiver) = mpsc::channel(256);
        let mut outbox = Outbox::new(&sender);
        assert_eq!(fill(&mut outbox, 2 << 20), 7);
        assert_eq!(fill(&mut outbox, 1), 249, "small ones still have room");
        for _ in 0..7 {
            receiver.try_recv().unwrap();
        }
        assert_eq!(fill(&mut outbox, 4 << 20), 3);
        while receiver.try_recv().is_ok() {}
        assert_eq!(
            fill(&mut outbox, WAITING_LIMIT * 2),
            1,
            "the largest one passes alone"
        );
    }

    #[test]
    fn an_outbox_whose_reader_went_away_has_no_room() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        assert!(
            Outbox::new(&sender)
                .room(1)
                .now_or_never()
                .unwrap()
                .is_none()
        );
    }
}
