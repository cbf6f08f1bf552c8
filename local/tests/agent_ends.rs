//! How turns and agents end: cancel, crash, silence, giant lines. Nothing is left behind, and nothing that was sent is lost.

#[path = "support/scripted.rs"]
mod scripted;

use std::time::{Duration, Instant};

use rustix::process::test_kill_process;
use scripted::{Bench, PATIENCE, deltas, failed, gone, last_part, pid_in, turn, turn_with};
use serde_json::Value;
use tangle_sandbox_local::agent::rpc::Bounds;
use tangle_sandbox_local::agent::{Agent, AgentEvent, Outcome};
use tangle_sandbox_local::process::sweep::marked;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Row 14 of the public reports: a cancel ends the whole tree, a second session stays.
#[tokio::test]
async fn a_cancel_ends_the_command_its_children_and_its_escaped_grandchild() {
    let (bench, other_bench) = (Bench::new(), Bench::new());
    let (mut agent, mut other) = (bench.agent().await, other_bench.agent().await);
    let other_turn = turn(
        &mut other,
        "run sleep 300 & echo $! > pid; sleep 3; kill $!",
    );
    let cancel = CancellationToken::new();
    let script = "say before\nrun setsid sleep 300 & sleep 300 & echo $$ > pid; wait\nsay never";
    let started = async {
        let shell = pid_in(&bench.file("pid")).await;
        cancel.cancel();
        (shell, Instant::now())
    };
    let cancelled = turn_with(&mut agent, script, cancel.clone(), PATIENCE);
    let (((end, events), (shell, at)), (other_end, _)) = tokio::join!(
        async {
            let joined = tokio::join!(cancelled, started);
            assert!(test_kill_process(pid_in(&other_bench.file("pid")).await).is_ok());
            joined
        },
        other_turn
    );
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert_eq!(deltas(&events, "text"), "before");
    assert!(gone(shell).await);
    assert!(at.elapsed() < Duration::from_secs(5), "{:?}", at.elapsed());
    assert_eq!(
        marked(agent.marker().unwrap()).len(),
        1,
        "only the agent itself is left"
    );
    assert_eq!(other_end.outcome, Outcome::Completed);
    let marker = agent.marker().unwrap().clone();
    agent.end().await;
    assert_eq!(marked(&marker), []);
    other.end().await;
}

#[tokio::test]
async fn an_end_in_order_leaves_no_marked_process() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    turn(
        &mut agent,
        "run setsid sleep 300 >/dev/null 2>&1 & echo started",
    )
    .await;
    let marker = agent.marker().unwrap().clone();
    assert_eq!(marked(&marker).len(), 2);
    let started = Instant::now();
    agent.end().await;
    assert_eq!(marked(&marker), []);
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_crash_fails_the_turn_with_what_was_sent_and_the_next_prompt_goes_on_with_the_session() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let session = agent.native_session_id().to_owned();
    let marker = agent.marker().unwrap().clone();
    let (end, events) = turn(
        &mut agent,
        "say before\nrun setsid sleep 300 >/dev/null 2>&1 &\ncrash\nsay after",
    )
    .await;
    assert_eq!(failed(&end).0, "AGENT_CRASHED");
    assert_eq!(deltas(&events, "text"), "before");
    assert_eq!(last_part(&events, "text")["text"], "before");
    assert_eq!(marked(&marker), []);
    assert!(!agent.is_alive());
    let (end, events) = turn(&mut agent, "say again").await;
    assert_eq!(
        (end.outcome, &*deltas(&events, "text")),
        (Outcome::Completed, "again")
    );
    assert_eq!(agent.native_session_id(), session);
    assert!(!end.metadata.contains_key("contextKept"));
    agent.end().await;
}

#[tokio::test]
async fn a_lost_session_is_said_and_never_silent() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    launch.resume = Some("scripted-gone".to_owned());
    let mut agent = Agent::start(launch).await.unwrap();
    turn(&mut agent, "crash").await;
    std::fs::remove_dir_all(bench.path("home")).unwrap();
    let (end, events) = turn(&mut agent, "say new").await;
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(end.metadata.get("contextKept"), Some(&Value::Bool(false)));
    assert_eq!(events[0].kind, "warning");
    assert_eq!(events[0].data["code"], "AGENT_CONTEXT_LOST");
    agent.end().await;
}

#[tokio::test]
async fn a_silent_agent_is_stopped_by_the_watchdog() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    launch.limits.cancel = Duration::from_millis(200);
    let mut agent = Agent::start(launch).await.unwrap();
    let marker = agent.marker().unwrap().clone();
    let (end, events) = turn_with(
        &mut agent,
        "say before\nhang",
        CancellationToken::new(),
        Duration::from_millis(300),
    )
    .await;
    assert_eq!(failed(&end).0, "AGENT_SILENT");
    assert_eq!(deltas(&events, "text"), "before");
    assert_eq!(
        marked(&marker),
        [],
        "an agent that does not end its turn is ended itself"
    );
    agent.end().await;
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancel_is_ended_and_the_turn_is_cancelled() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    launch.limits.cancel = Duration::from_millis(200);
    let mut agent = Agent::start(launch).await.unwrap();
    let marker = agent.marker().unwrap().clone();
    let cancel = CancellationToken::new();
    let (sender, mut receiver) = mpsc::channel::<AgentEvent>(8);
    let watch = async {
        while let Some(event) = receiver.recv().await {
            if event.data.get("delta").is_some() {
                cancel.cancel();
            }
        }
    };
    let (end, ()) = tokio::join!(
        agent.prompt("say on\nhang", sender, cancel.clone(), PATIENCE),
        watch
    );
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert_eq!(marked(&marker), []);
    agent.end().await;
}

#[tokio::test]
async fn a_prompt_that_was_cancelled_before_it_began_sends_nothing() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (end, events) = turn_with(&mut agent, "write a.txt b", cancel, PATIENCE).await;
    assert_eq!((end.outcome, events.len()), (Outcome::Cancelled, 0));
    assert!(!bench.file("a.txt").exists());
    assert!(agent.is_alive());
    agent.end().await;
}

#[tokio::test]
async fn a_reader_that_goes_away_cancels_the_turn() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (sender, receiver) = mpsc::channel(8);
    drop(receiver);
    let end = agent
        .prompt("sleep 60000", sender, CancellationToken::new(), PATIENCE)
        .await;
    assert_eq!(end.outcome, Outcome::Cancelled);
    agent.end().await;
}

#[tokio::test]
async fn a_dropped_prompt_kills_the_agent_and_the_next_one_starts_another() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let marker = agent.marker().unwrap().clone();
    let (sender, _receiver) = mpsc::channel(8);
    {
        let file = bench.file("pid");
        let prompt = agent.prompt(
            "run echo $$ > pid; sleep 300",
            sender,
            CancellationToken::new(),
            PATIENCE,
        );
        tokio::select! {
            _ = prompt => panic!("the turn cannot have ended"),
            _ = pid_in(&file) => {}
        }
    }
    for _ in 0..500 {
        if marked(&marker).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(marked(&marker), []);
    let (end, _) = turn(&mut agent, "say again").await;
    assert_eq!(end.final_text.as_deref(), Some("again"));
    agent.end().await;
}

/// Row 27 of the public reports.
#[tokio::test]
async fn a_giant_line_ends_only_that_agent_with_a_named_error() {
    let (bench, other_bench) = (Bench::new(), Bench::new());
    let mut launch = bench.launch();
    launch.limits.bounds = Bounds {
        line: 1 << 20,
        ..Bounds::default()
    };
    let (mut agent, mut other) = (
        Agent::start(launch).await.unwrap(),
        other_bench.agent().await,
    );
    let marker = agent.marker().unwrap().clone();
    let started = Instant::now();
    let (end, events) = turn(&mut agent, "say before\ngiant 3000000\nsay after").await;
    assert_eq!(failed(&end).0, "AGENT_LINE_TOO_LONG");
    assert_eq!(deltas(&events, "text"), "before");
    assert_eq!(marked(&marker), []);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        turn(&mut other, "say fine").await.0.final_text.as_deref(),
        Some("fine")
    );
    agent.end().await;
    other.end().await;
}
