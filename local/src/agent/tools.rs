//! The tool calls of one turn: merged one by one, bounded together.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::size::{held_bytes, pieces, text_bytes};
use super::tool_part::{Change, ToolPart};
use super::translate::DELTA_LIMIT;
use super::turn::{AgentEvent, ToolInvocation};

/// Calls that a turn keeps apart.
const CALL_LIMIT: usize = 4096;
/// Bytes in memory of all open calls; the oldest let go of what they hold first.
const HELD_LIMIT: usize = 16 << 20;
/// Calls in the list of the result.
const LISTED_LIMIT: usize = 1000;
/// Bytes of the inputs and results in that list, as JSON or in memory, whichever is more.
const LIST_LIMIT: usize = 4 << 20;

/// The calls in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: HashMap<String, Call>,
    order: Vec<String>,
    /// Bytes that the open calls hold.
    held: usize,
    /// Every call before this place in the order holds as little as it can.
    cut_before: usize,
    /// Bytes of the list's inputs and results so far.
    listed: usize,
}

#[derive(Debug)]
enum Call {
    Open {
        part: Box<ToolPart>,
        listed: bool,
    },
    /// The entry for the result, when the call is among the listed ones.
    Ended(Option<ToolInvocation>),
}

impl Tools {
    pub(super) fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// True when no further call is kept apart.
    pub(super) fn is_full(&self) -> bool {
        self.order.len() >= CALL_LIMIT
    }

    pub(super) fn begin(&mut self, id: String, part_id: String) {
        let call = Call::Open {
            part: Box::new(ToolPart::new(part_id, id.clone())),
            listed: self.order.len() < LISTED_LIMIT,
        };
        self.calls.insert(id.clone(), call);
        self.order.push(id);
    }

    /// The events of an update; `None` when it is news of a call whose part has had its last frame.
    pub(super) fn merge(
        &mut self,
        id: &str,
        update: &Map<String, Value>,
    ) -> Option<Vec<AgentEvent>> {
        let Some(Call::Open { part, .. }) = self.calls.get_mut(id) else {
            let status = update.get("status").and_then(Value::as_str);
            return matches!(status, Some("completed" | "failed")).then(Vec::new); // a repeated end
        };
        let before = part.held();
        let events = match part.merge(update) {
            Change::None => Vec::new(),
            Change::Some { part: new, delta } => in_pieces(part, new, delta.as_deref()),
            Change::Last { delta } => in_pieces(part, part.whole(), delta.as_deref()),
        };
        let (after, ended) = (part.held(), part.ended());
        self.held = self.held - before + after;
        if ended {
            self.close(id);
        }
        self.cut_oldest();
        Some(events)
    }

    /// Ends the calls that are still open, since their turn ends.
    pub(super) fn interrupt(&mut self) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for id in self.order.clone() {
            if let Some(Call::Open { part, .. }) = self.calls.get_mut(&id) {
                let before = part.held();
                part.interrupt();
                self.held = self.held - before + part.held();
                events.push(AgentEvent::part(part.whole(), None));
                self.close(&id);
            }
        }
        events
    }

    /// The list of the result.
    pub(super) fn invocations(mut self) -> Vec<ToolInvocation> {
        for id in self.order.clone() {
            self.close(&id);
        }
        let listed = self
            .order
            .iter()
            .filter_map(|id| match self.calls.remove(id) {
                Some(Call::Ended(entry)) => entry,
                Some(Call::Open { .. }) | None => None,
            });
        listed.collect()
    }

    /// Leaves of a call what the result says of it.
    fn close(&mut self, id: &str) {
        let Some(Call::Open { part, listed }) = self.calls.get(id) else {
            return;
        };
        self.held -= part.held();
        let mut entry = listed.then(|| part.invocation());
        if let Some(entry) = &mut entry {
            let input = entry
                .input
                .as_ref()
                .map_or(0, |input| text_bytes(input).max(held_bytes(input)));
            let bytes = input + entry.result.as_ref().map_or(0, text_bytes);
            if self.listed + bytes > LIST_LIMIT {
                (entry.input, entry.result, entry.truncated) = (None, None, true);
            } else {
                self.listed += bytes;
            }
        }
        self.calls.insert(id.to_owned(), Call::Ended(entry));
    }

    fn cut_oldest(&mut self) {
        while self.held > HELD_LIMIT
            && let Some(id) = self.order.get(self.cut_before)
        {
            if let Some(Call::Open { part, .. }) = self.calls.get_mut(id) {
                let before = part.held();
                part.let_go();
                self.held = self.held - before + part.held();
            }
            self.cut_before += 1;
        }
    }
}

/// The event of a change. An increment that is too long for one event goes before it in pieces.
fn in_pieces(part: &ToolPart, new: Value, delta: Option<&str>) -> Vec<AgentEvent> {
    let mut pieces = delta.map_or_else(Vec::new, |delta| pieces(delta, DELTA_LIMIT));
    let last = pieces.pop();
    let before = pieces.into_iter();
    let mut events: Vec<AgentEvent> = before
        .map(|piece| AgentEvent::part(part.running(), Some(piece)))
        .collect();
    events.push(AgentEvent::part(new, last));
    events
}
