//! Exec: exact bounded output, time limits that leave nothing behind (wire protocol, 14.1).

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use sha2::{Digest as _, Sha256};
use tangle_sandbox_local::process::exec::OUTPUT_LIMIT;
use tangle_sandbox_local::process::sweep::marked;
use tangle_sandbox_local::process::{ExecOutcome, ExecSpec, Home, Marker, exec};

fn spec(folder: &Path, command: &str) -> ExecSpec {
    let home = Home::create(folder.join("home")).unwrap();
    ExecSpec {
        command: command.to_owned(),
        cwd: folder.to_owned(),
        env: home.environment(),
        timeout: Some(Duration::from_secs(120)),
        output_limit: OUTPUT_LIMIT,
    }
}

async fn run(command: &str) -> ExecOutcome {
    let folder = tempfile::tempdir().unwrap();
    exec(spec(folder.path(), command), &Marker::run())
        .await
        .unwrap()
}

async fn gone(pid: Pid) -> bool {
    for _ in 0..500 {
        if test_kill_process(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn wire_14_1_a_non_zero_exit_is_not_an_error() {
    let outcome = run("echo out; echo err >&2; exit 3").await;
    assert_eq!((outcome.exit_code, outcome.signal), (Some(3), None));
    assert_eq!(
        (&outcome.stdout[..], &outcome.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
    assert!(!outcome.truncated && !outcome.timed_out);
}

#[tokio::test]
async fn a_shell_ended_by_a_signal_has_no_exit_code() {
    let outcome = run("kill -9 $$").await;
    assert_eq!((outcome.exit_code, outcome.signal), (None, Some(9)));
}

#[tokio::test]
async fn wire_14_1_a_time_limit_ends_the_command_and_its_escaped_children() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(
        folder.path(),
        "setsid sleep 300 & (setsid sleep 300 >/dev/null 2>&1 &) ; sleep 300; touch late",
    );
    spec.timeout = Some(Duration::from_millis(300));
    let marker = Marker::run();
    let outcome = exec(spec, &marker).await.unwrap();
    assert!(outcome.timed_out);
    assert!(
        outcome.duration < Duration::from_secs(10),
        "{:?}",
        outcome.duration
    );
    assert_eq!(marked(&marker), []);
    assert!(!folder.path().join("late").exists());
}

#[tokio::test]
async fn a_background_child_that_holds_the_pipe_does_not_hang_the_command() {
    let started = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let marker = Marker::run();
    let outcome = exec(
        spec(folder.path(), "sleep 300 & setsid sleep 300 & echo done"),
        &marker,
    )
    .await
    .unwrap();
    assert_eq!(
        (outcome.exit_code, &outcome.stdout[..]),
        (Some(0), &b"done\n"[..])
    );
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(marked(&marker), []);
}

#[tokio::test]
async fn a_background_child_without_the_pipes_goes_on_until_its_marker_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Marker::sandbox(uuid::Uuid::new_v4().to_string());
    let mut spec = spec(folder.path(), "sleep 300 >/dev/null 2>&1 & echo $!");
    spec.env.push(sandbox.entry());
    let outcome = exec(spec, &Marker::run()).await.unwrap();
    let pid = String::from_utf8(outcome.stdout)
        .unwrap()
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .unwrap();
    assert_eq!(marked(&sandbox), [pid]);
    assert!(
        tangle_sandbox_local::process::sweep(&sandbox, None)
            .await
            .clean
    );
    assert_eq!(marked(&sandbox), []);
}

#[tokio::test]
async fn a_dropped_exec_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let marker = Marker::run();
    let running = exec(
        spec(folder.path(), "setsid sleep 300 & echo $$ > pid; sleep 300"),
        &marker,
    );
    let started = async {
        loop {
            match std::fs::read_to_string(folder.path().join("pid")) {
                Ok(text) if text.ends_with('\n') => {
                    break text.trim().parse().ok().and_then(Pid::from_raw).unwrap();
                }
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let shell = tokio::select! {
        _ = running => panic!("the command cannot have ended"),
        pid = started => pid,
    };
    assert!(gone(shell).await);
    for _ in 0..500 {
        if marked(&marker).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left: {:?}", marked(&marker));
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(folder.path(), "env");
    spec.env.push(("GREETING".to_owned(), "hi".to_owned()));
    let outcome = exec(spec, &Marker::run()).await.unwrap();
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert!(text.contains("GREETING=hi\n"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
}

#[tokio::test]
async fn a_missing_working_directory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(folder.path(), "true");
    spec.cwd = folder.path().join("nowhere");
    assert!(exec(spec, &Marker::run()).await.is_err());
}

/// Row 21 of the public reports, as far as exec goes.
#[tokio::test]
async fn huge_output_on_both_streams_at_once_ends_and_its_first_10_mib_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let command = "seq 1 7000000 & seq 7000001 13300000 >&2; wait";
    let outcome = exec(spec(folder.path(), command), &Marker::run())
        .await
        .unwrap();
    assert_eq!(outcome.exit_code, Some(0));
    assert!(outcome.truncated);
    assert_eq!(
        (outcome.stdout.len(), outcome.stderr.len()),
        (OUTPUT_LIMIT, OUTPUT_LIMIT)
    );
    assert_eq!(Sha256::digest(&outcome.stdout), Sha256::digest(numbers(1)));
    assert_eq!(
        Sha256::digest(&outcome.stderr),
        Sha256::digest(numbers(7_000_001))
    );
}

/// The first 10 MiB of `seq FROM …`.
fn numbers(from: u64) -> Vec<u8> {
    let mut text = String::with_capacity(OUTPUT_LIMIT + 16);
    for number in from.. {
        if text.len() >= OUTPUT_LIMIT {
            break;
        }
        text.push_str(&number.to_string());
        text.push('\n');
    }
    text.truncate(OUTPUT_LIMIT);
    text.into_bytes()
}
