//! Rounds: several workloads measured in turns, so that a noisy machine disturbs them alike.

#![allow(dead_code, reason = "each bench uses what it needs")]

use std::time::{Duration, Instant};

/// The fewest rounds that a median is taken of.
pub const ROUNDS: usize = 11;

/// Runs every workload once a round, for at least [`ROUNDS`] of them after one round to warm up, and returns
/// the median time of each in their order.
///
/// The order turns by one each round, so that no workload always follows the same other.
pub fn interleaved(workloads: &mut [(&str, &mut dyn FnMut())], rounds: usize) -> Vec<Duration> {
    let mut times = vec![Vec::new(); workloads.len()];
    for round in 0..=rounds.max(ROUNDS) {
        for turn in 0..workloads.len() {
            let at = (turn + round) % workloads.len();
            let start = Instant::now();
            (workloads[at].1)();
            let time = start.elapsed();
            if round > 0 {
                times[at].push(time);
            }
        }
    }
    times.iter_mut().map(|times| median(times)).collect()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The throughput of `bytes` in `time`, in megabytes (10^6) a second.
pub fn megabytes_a_second(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}
