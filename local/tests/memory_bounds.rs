//! The deployment's memory while a command or an agent writes without end. One test, so that nothing else is measured.
#![cfg(target_os = "linux")]

#[path = "support/scripted.rs"]
mod scripted;

use std::time::Duration;

use scripted::{Bench, PATIENCE};
use tangle_sandbox_local::agent::{AgentEvent, Outcome};
use tangle_sandbox_local::process::exec::OUTPUT_LIMIT;
use tangle_sandbox_local::process::{ExecSpec, Home, Marker, exec};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The largest resident size of this process so far, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_is_not_read_is_not_held() {
    let bench = Bench::new();
    flood_without_a_reader(&bench).await;
    fifty_megabytes_on_each_stream(&bench).await;
}

async fn flood_without_a_reader(bench: &Bench) {
    let mut agent = bench.agent().await;
    let before = peak();
    let (sender, mut receiver) = mpsc::channel::<AgentEvent>(4);
    let cancel = CancellationToken::new();
    let stall = async {
        tokio::time::sleep(Duration::from_secs(1)).await; // as long as the flood could grow us
        cancel.cancel();
        while receiver.recv().await.is_some() {}
    };
    let prompt = agent.prompt("flood 100000000", sender, cancel.clone(), PATIENCE);
    let (end, ()) = tokio::join!(prompt, stall);
    assert_eq!(end.outcome, Outcome::Cancelled);
    let grown = peak() - before;
    assert!(grown < 8 << 10, "grew by {grown} KiB");
    agent.end().await;
}

async fn fifty_megabytes_on_each_stream(bench: &Bench) {
    let spec = ExecSpec {
        command: "head -c 50000000 /dev/zero & head -c 50000000 /dev/zero >&2; wait".to_owned(),
        cwd: bench.path("workspace"),
        env: Home::create(bench.path("home")).unwrap().environment(),
        timeout: Some(PATIENCE),
        output_limit: OUTPUT_LIMIT,
    };
    let before = peak();
    let outcome = exec(spec, &Marker::run()).await.unwrap();
    assert!(
        outcome.truncated
            && outcome.stdout.len() == OUTPUT_LIMIT
            && outcome.stderr.len() == OUTPUT_LIMIT
    );
    let grown = peak() - before;
    assert!(grown < 48 << 10, "grew by {grown} KiB");
}
