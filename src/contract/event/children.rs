//! Updates of child tasks, each counted once (core contracts, 10.4).

use std::collections::HashSet;

use crate::contract::types::{Identifier, StreamEvent};

/// Tells the first update of a child task from its repetitions: two of one child that come from the same source event
/// are one update, and the first of them counts.
#[derive(Debug, Clone, Default)]
pub struct ChildUpdates {
    seen: HashSet<(Identifier, Identifier)>,
}

impl ChildUpdates {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `event` tells something new: a child's update for the first time, or anything that is no child task.
    pub fn is_new(&mut self, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::ChildTask {
                child_id,
                source_event_id,
                ..
            } => self
                .seen
                .insert((child_id.clone(), source_event_id.clone())),
            _ => true,
        }
    }
}
