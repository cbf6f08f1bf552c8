//! Seeded choices: the same seed makes the same documents.

use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A source of choices.
#[derive(Debug)]
pub struct Dice(TestRunner);

impl Dice {
    /// The choices of `seed` for the purpose `name`.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        for (index, byte) in name.bytes().enumerate() {
            let place = &mut bytes[8 + index % 24];
            *place = place.wrapping_mul(31).wrapping_add(byte);
        }
        let source = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self(TestRunner::new_with_rng(Config::default(), source))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        proptest::prelude::Rng::next_u64(self.0.rng())
    }

    /// A number below `end`, 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            // Slightly uneven, which choices of a test may be.
            end => (self.bits() % end as u64) as usize,
        }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A value of a strategy; `None` when it finds none.
    pub fn of<S: Strategy>(&mut self, strategy: &S) -> Option<S::Value> {
        let tree = strategy.new_tree(&mut self.0).ok()?;
        Some(tree.current())
    }
}
