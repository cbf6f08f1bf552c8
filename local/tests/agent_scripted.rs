//! The scripted agent, end to end through the driver: real processes, real pipes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use serde_json::Value;
use tangle_sandbox_local::agent::launch::{AgentPrograms, KnownAgent, Launch, Place};
use tangle_sandbox_local::agent::rpc::Bounds;
use tangle_sandbox_local::agent::{Agent, AgentEvent, Outcome, TurnEnd};
use tangle_sandbox_local::process::sweep::marked;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Far longer than any turn here is silent.
const PATIENCE: Duration = Duration::from_secs(60);

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path("workspace").join(name)
    }

    fn launch(&self) -> Launch {
        let programs = AgentPrograms {
            scripted: Some(env!("CARGO_BIN_EXE_scripted-agent").into()),
            ..AgentPrograms::default()
        };
        let place = Place {
            workspace: self.path("workspace"),
            home: self.path("home"),
            log: self.path("agent.log"),
            env: Vec::new(),
        };
        programs
            .find(KnownAgent::Scripted)
            .unwrap()
            .launch(place, None)
    }

    async fn agent(&self) -> Agent {
        Agent::start(self.launch()).await.unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("agent.log")).unwrap()
    }
}

/// Runs a turn to its end and collects its events.
async fn turn(agent: &mut Agent, script: &str) -> (TurnEnd, Vec<AgentEvent>) {
    turn_with(agent, script, CancellationToken::new(), PATIENCE).await
}

async fn turn_with(
    agent: &mut Agent,
    script: &str,
    cancel: CancellationToken,
    watchdog: Duration,
) -> (TurnEnd, Vec<AgentEvent>) {
    let (sender, mut receiver) = mpsc::channel(8);
    let collect = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    tokio::join!(agent.prompt(script, sender, cancel, watchdog), collect)
}

fn deltas(events: &[AgentEvent], kind: &str) -> String {
    let parts = events.iter().filter(|event| {
        event
            .data
            .get("part")
            .is_some_and(|part| part["type"] == kind)
    });
    parts
        .filter_map(|event| event.data.get("delta").and_then(Value::as_str))
        .collect()
}

fn last_part<'a>(events: &'a [AgentEvent], kind: &str) -> &'a Value {
    let mut parts = events
        .iter()
        .rev()
        .filter_map(|event| event.data.get("part"));
    parts.find(|part| part["type"] == kind).unwrap()
}

fn failed(end: &TurnEnd) -> (&str, &str) {
    match &end.outcome {
        Outcome::Failed { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

async fn pid_in(path: &Path) -> Pid {
    for _ in 0..1000 {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no process id was written");
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
async fn a_turn_says_runs_and_writes_for_real() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let script = "say Hel\nsay lo\nrun echo out; echo err >&2; exit 3\nwrite notes/a.txt first\\nsecond\nsay done";
    let (end, events) = turn(&mut agent, script).await;
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(end.final_text.as_deref(), Some("done"));
    assert_eq!(end.stop_reason.as_deref(), Some("end_turn"));
    assert!(end.usage.is_some() && end.cost_usd.is_none());
    assert_eq!(
        std::fs::read_to_string(bench.file("notes/a.txt")).unwrap(),
        "first\nsecond"
    );
    assert_eq!(deltas(&events, "text"), "Hellodone");
    assert_eq!(deltas(&events, "tool"), "out\nerr\n");
    let names: Vec<_> = end
        .tool_invocations
        .iter()
        .map(|tool| (&*tool.tool_name, &*tool.status))
        .collect();
    assert_eq!(names, [("run", "error"), ("write", "completed")]);
    assert_eq!(
        end.tool_invocations[0].result.as_deref(),
        Some("out\nerr\n")
    );
    assert_eq!(last_part(&events[..1], "step-start")["type"], "step-start");
    assert_eq!(last_part(&events, "step-finish")["reason"], "stop");
    agent.end().await;
}

#[tokio::test]
async fn a_second_turn_uses_the_warm_process() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    turn(&mut agent, "run echo $PPID > one").await;
    turn(&mut agent, "run echo $PPID > two").await;
    assert_eq!(
        pid_in(&bench.file("one")).await,
        pid_in(&bench.file("two")).await
    );
    agent.end().await;
}

#[tokio::test]
async fn the_agent_sees_a_private_environment_only() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    turn(&mut agent, "run env > env").await;
    let env = std::fs::read_to_string(bench.file("env")).unwrap();
    assert!(!env.contains("CARGO"), "{env}");
    assert!(
        env.contains(&format!("HOME={}\n", bench.path("home").display())),
        "{env}"
    );
    assert!(env.contains("TANGLE_RUN_MARKER="), "{env}");
    agent.end().await;
}

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
async fn a_banner_an_unknown_update_and_escapes_do_not_disturb_a_turn() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (end, events) = turn(
        &mut agent,
        "banner Welcome to the agent!\nfuture\nescaped\nsay .",
    )
    .await;
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(deltas(&events, "text"), "a/b \u{1f600}.");
    let raw = events.iter().find(|event| event.kind == "raw").unwrap();
    assert_eq!(
        (&raw.data["sessionUpdate"], &raw.data["depth"]),
        (&"hologram".into(), &3.into())
    );
    agent.end().await;
    assert!(bench.log().contains("Welcome to the agent!"));
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

#[tokio::test]
async fn a_flood_with_a_slow_reader_loses_nothing_and_slows_the_agent_down() {
    const COUNT: usize = 20_000;
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (sender, mut receiver) = mpsc::channel(4);
    let script = format!("flood {COUNT}\nwrite over.txt yes");
    let read = async {
        // One event, then a pause that a flood without back-pressure would use to get to its end.
        let mut events = vec![receiver.recv().await.unwrap()];
        tokio::time::sleep(Duration::from_millis(500)).await;
        let stalled = !bench.file("over.txt").exists();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        (events, stalled)
    };
    let (end, (events, stalled)) = tokio::join!(
        agent.prompt(&script, sender, CancellationToken::new(), PATIENCE),
        read
    );
    assert!(stalled, "the agent ran ahead of its reader");
    assert_eq!(end.outcome, Outcome::Completed);
    let expected: String = (0..COUNT).map(|n| format!("{n} ")).collect();
    assert!(
        deltas(&events, "text") == expected,
        "something was lost or reordered"
    );
    assert!(last_part(&events, "text")["text"] == *expected);
    agent.end().await;
}

#[tokio::test]
async fn a_rejected_permission_never_looks_like_a_plain_success() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (end, events) = turn(&mut agent, "ask delete everything\nsay over").await;
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(
        end.metadata["rejectedPermissions"][0]["title"],
        "delete everything"
    );
    let warning = events.iter().find(|event| event.kind == "warning").unwrap();
    assert_eq!(warning.data["code"], "PERMISSION_REJECTED");
    assert_eq!(deltas(&events, "text"), "answer: rejectover");
    assert_eq!(end.tool_invocations[0].status, "error");
    agent.end().await;
}

#[tokio::test]
async fn a_declined_question_is_visible() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (end, events) = turn(&mut agent, "question Which colour?|Red|Blue").await;
    assert_eq!(
        end.metadata["declinedQuestions"][0]["title"],
        "Which colour?"
    );
    assert_eq!(deltas(&events, "text"), "answer: declined");
    assert!(
        events
            .iter()
            .any(|event| event.data.get("code") == Some(&"QUESTION_DECLINED".into()))
    );
    agent.end().await;
}

#[tokio::test]
async fn a_failed_turn_has_the_agents_message_and_the_agent_stays() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (end, events) = turn(&mut agent, "say before\nfail no luck today").await;
    assert_eq!(failed(&end), ("AGENT_EXECUTION_FAILED", "no luck today"));
    assert_eq!(last_part(&events, "step-finish")["reason"], "error");
    assert!(agent.is_alive());
    agent.end().await;
}

#[tokio::test]
async fn a_program_that_is_no_agent_fails_the_start_and_leaves_nothing() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    launch.program = "/bin/cat".into(); // sends our own requests back
    assert_eq!(
        Agent::start(launch.clone()).await.unwrap_err().code(),
        "AGENT_EXECUTION_FAILED"
    );
    (launch.program, launch.args) = ("/bin/sleep".into(), vec!["300".to_owned()]);
    launch.limits.start = Duration::from_millis(500);
    assert_eq!(
        Agent::start(launch.clone()).await.unwrap_err().code(),
        "AGENT_START_TIMEOUT"
    );
    launch.program = "/bin/true".into();
    assert_eq!(
        Agent::start(launch.clone()).await.unwrap_err().code(),
        "AGENT_CRASHED"
    );
    launch.program = bench.path("missing");
    assert_eq!(
        Agent::start(launch).await.unwrap_err().code(),
        "AGENT_START_FAILED"
    );
}

#[tokio::test]
async fn a_plan_of_the_agent_is_a_to_do_list_and_not_for_review() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let (_, events) = turn(&mut agent, "plan one|two\nthink hm").await;
    let todo = events.iter().find(|event| event.kind == "raw").unwrap();
    assert_eq!(
        (&todo.data["kind"], &todo.data["entries"][1]["content"]),
        (&"todo".into(), &"two".into())
    );
    assert_eq!(deltas(&events, "reasoning"), "hm");
    agent.end().await;
}
