//! The event that comes out of a frame.

use serde_json::{Map, Value};

use crate::contract::types::{EventDocument, StreamEvent, TokenUsage, UsageMode};

use super::{RawFrame, is_terminal};

/// An event of an environment (core contracts, 10.1).
///
/// It holds the data of its frame once: what [`EventDocument`] repeats as `providerEvent` is a view here. The data of a
/// terminal event is the summary, without the tool history.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvironmentEvent {
    frame: RawFrame,
    normalized: Option<StreamEvent>,
    usage: Option<TokenUsage>,
    usage_mode: Option<UsageMode>,
    provider_event: ProviderEvent,
}

/// What the event says that the transport delivered.
#[derive(Debug, Clone, PartialEq)]
enum ProviderEvent {
    Nothing,
    Frame,
    Other(Value),
}

impl EnvironmentEvent {
    pub(super) fn of_frame(
        frame: RawFrame,
        normalized: Option<StreamEvent>,
        usage: Option<TokenUsage>,
        usage_mode: Option<UsageMode>,
    ) -> Self {
        let provider_event = match is_terminal(frame.kind()) {
            true => ProviderEvent::Nothing,
            false => ProviderEvent::Frame,
        };
        Self {
            frame,
            normalized,
            usage,
            usage_mode,
            provider_event,
        }
    }

    /// The type, as the transport said it.
    pub fn kind(&self) -> &str {
        self.frame.kind()
    }

    /// Identity inside the execution, and the exclusive cursor to come back with.
    pub fn id(&self) -> Option<&str> {
        self.frame.id()
    }

    /// The data; of a terminal event its summary.
    pub fn data(&self) -> &Map<String, Value> {
        self.frame.data()
    }

    /// The event in its canonical form. A terminal event has none, nor has one whose data does not make one.
    pub fn normalized(&self) -> Option<&StreamEvent> {
        self.normalized.as_ref()
    }

    /// Tokens used, where the event tells both sides.
    pub fn usage(&self) -> Option<&TokenUsage> {
        self.usage.as_ref()
    }

    /// How the usage adds up; unknown when absent. Only `delta` may be summed.
    pub fn usage_mode(&self) -> Option<UsageMode> {
        self.usage_mode
    }

    /// Whether the event carries the frame as it came: every event of a stream but the terminal ones.
    pub fn has_provider_event(&self) -> bool {
        self.provider_event != ProviderEvent::Nothing
    }

    /// The frame as it came.
    pub fn provider_event(&self) -> Option<Value> {
        match &self.provider_event {
            ProviderEvent::Nothing => None,
            ProviderEvent::Frame => Some(self.frame.to_value()),
            ProviderEvent::Other(event) => Some(event.clone()),
        }
    }

    /// Whether the event ends its run.
    pub fn is_terminal(&self) -> bool {
        is_terminal(self.kind())
    }

    /// Gives the event the usage that was measured by it.
    pub(in crate::contract) fn measure(&mut self, usage: TokenUsage, mode: UsageMode) {
        self.usage = Some(usage);
        self.usage_mode = Some(mode);
    }
}

impl From<EnvironmentEvent> for EventDocument {
    fn from(event: EnvironmentEvent) -> Self {
        let provider_event = event.provider_event();
        let (type_, id, data) = event.frame.into_parts();
        Self {
            type_,
            id,
            data,
            normalized: event.normalized,
            usage: event.usage,
            usage_mode: event.usage_mode,
            provider_event,
        }
    }
}

impl From<EventDocument> for EnvironmentEvent {
    fn from(document: EventDocument) -> Self {
        let frame = RawFrame::new(document.type_, document.id, document.data);
        Self {
            frame,
            normalized: document.normalized,
            usage: document.usage,
            usage_mode: document.usage_mode,
            provider_event: match document.provider_event {
                None => ProviderEvent::Nothing,
                Some(event) => ProviderEvent::Other(event),
            },
        }
    }
}
