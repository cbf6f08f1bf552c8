//! Measures cases against each other: in turns, so that what slows the machine slows all of them, and by the median.

use std::time::{Duration, Instant};

/// Runs all cases once per round, after one round to warm up; gives the median of each, in the order of the cases.
pub fn interleaved(rounds: usize, cases: &mut [(&str, &mut dyn FnMut())]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(rounds); cases.len()];
    for round in 0..=rounds {
        for ((_, case), times) in cases.iter_mut().zip(&mut times) {
            let started = Instant::now();
            case();
            if round > 0 {
                times.push(started.elapsed());
            }
        }
    }
    times
        .into_iter()
        .map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        })
        .collect()
}
