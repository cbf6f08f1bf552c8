//! The retry budget of one client.

use std::sync::Mutex;

use tokio::time::Instant;

/// Repeats of one client draw on one budget, so that an outage does not multiply its load: a repeat costs one token, a
/// success gives back a tenth, and one token comes back each second.
#[derive(Debug)]
pub struct Budget {
    state: Mutex<(f64, Instant)>,
}

impl Budget {
    const CAPACITY: f64 = 20.0;
    const PER_SUCCESS: f64 = 0.1;
    const PER_SECOND: f64 = 1.0;

    /// A full budget.
    pub fn new() -> Self {
        Self {
            state: Mutex::new((Self::CAPACITY, Instant::now())),
        }
    }

    /// Takes one token, or says that there is none.
    pub fn take(&self) -> bool {
        self.change(|tokens| {
            let enough = *tokens >= 1.0;
            if enough {
                *tokens -= 1.0;
            }
            enough
        })
    }

    /// Notes a call that succeeded.
    pub fn give_back(&self) {
        self.change(|tokens| *tokens += Self::PER_SUCCESS);
    }

    fn change<T>(&self, change: impl FnOnce(&mut f64) -> T) -> T {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = Instant::now();
        let refilled = (now - state.1).as_secs_f64() * Self::PER_SECOND;
        state.0 = (state.0 + refilled).min(Self::CAPACITY);
        state.1 = now;
        let result = change(&mut state.0);
        state.0 = state.0.min(Self::CAPACITY);
        result
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_budget_is_spent_and_comes_back() {
        let budget = Budget::new();
        let spend = |budget: &Budget| (0..1000).take_while(|_| budget.take()).count();
        assert_eq!(spend(&budget), 20);
        (0..20).for_each(|_| budget.give_back());
        assert_eq!(spend(&budget), 2);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(spend(&budget), 5);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(spend(&budget), 20);
    }
}
