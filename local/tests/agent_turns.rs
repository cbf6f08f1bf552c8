//! Turns of the scripted agent, end to end through the driver: real processes, real pipes.

#[path = "support/scripted.rs"]
mod scripted;

use std::time::{Duration, Instant};

use scripted::{Bench, PATIENCE, deltas, failed, last_part, pid_in, turn};
use tangle_sandbox_local::agent::{Agent, Outcome};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

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
async fn given_variables_never_replace_the_agents_home_path_or_own_variables() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    let names = [
        "HOME",
        "TMPDIR",
        "PATH",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "TANGLE_SCRIPTED_AGENT",
        "TANGLE_RUN_MARKER",
        "MINE",
    ];
    launch.place.env = names
        .map(|name| (name.to_owned(), "/given".to_owned()))
        .into();
    let mut agent = Agent::start(launch).await.unwrap();
    let (_, events) = turn(&mut agent, "run env | grep =/given | sort").await;
    assert_eq!(deltas(&events, "tool"), "MINE=/given\n");
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
        "AGENT_START_FAILED"
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

#[tokio::test]
async fn a_silent_agent_is_said_to_be_at_work_once_in_a_period() {
    let bench = Bench::new();
    let mut launch = bench.launch();
    launch.limits.silence = Duration::from_millis(200);
    let mut agent = Agent::start(launch).await.unwrap();
    let started = Instant::now();
    let (end, events) = turn(&mut agent, "say a\nsleep 900\nsay b").await;
    let periods = started.elapsed().as_millis() / 200;
    let said: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "model-processing")
        .collect();
    assert!((1..=periods).contains(&(said.len() as u128)), "{said:?}");
    for event in said {
        assert_eq!(event.data["phase"], "generating");
        assert!(
            event.data["elapsedMs"].as_u64().unwrap() >= 200,
            "{event:?}"
        );
    }
    assert_eq!(end.final_text.as_deref(), Some("ab"));
    agent.end().await;
}

#[tokio::test]
async fn an_update_that_is_nested_too_deep_to_be_read_is_not_lost_silently() {
    let bench = Bench::new();
    let mut agent = bench.agent().await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let line =
        format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{deep}}}}}"#);
    let (end, events) = turn(&mut agent, &format!("banner {line}\nsay on")).await;
    let raw = events.iter().find(|event| event.kind == "raw").unwrap();
    assert_eq!(raw.data["truncated"], true);
    assert_eq!(end.final_text.as_deref(), Some("on"));
    agent.end().await;
}
