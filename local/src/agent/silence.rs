//! How long an agent has sent nothing in its turn, and the event that says so: while a model is not reached, an agent may
//! retry for minutes without a word.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::turn::AgentEvent;

#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    since: Instant,
    said: Instant,
    period: Duration,
}

impl Silence {
    /// Silence begins now and is said once in a period.
    pub(super) fn new(now: Instant, period: Duration) -> Self {
        Self {
            since: now,
            said: now,
            period: period.max(Duration::from_millis(1)),
        }
    }

    /// The agent sent something.
    pub(super) fn broken(&mut self, now: Instant) {
        (self.since, self.said) = (now, now);
    }

    /// When the agent sent something last.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// When it is to be said next.
    pub(super) fn due(&self) -> Instant {
        self.said + self.period
    }

    /// Says it: `model-processing` with the milliseconds since the agent sent something last.
    pub(super) fn say(&mut self, now: Instant) -> AgentEvent {
        self.said = now;
        let elapsed = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        AgentEvent::new(
            "model-processing",
            json!({ "phase": "generating", "elapsedMs": elapsed }),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Silence;

    #[test]
    fn a_silence_is_said_once_in_a_period_and_counts_from_the_last_update() {
        let (period, begun) = (Duration::from_secs(15), Instant::now());
        let mut silence = Silence::new(begun, period);
        let heard = begun + Duration::from_secs(10);
        silence.broken(heard);
        for times in [1, 2, 3] {
            let now = heard + period * times;
            assert_eq!(silence.due(), now);
            let event = silence.say(now);
            assert_eq!(event.kind, "model-processing");
            assert_eq!(event.data["phase"], "generating");
            assert_eq!(event.data["elapsedMs"], 15_000 * times);
        }
    }
}
