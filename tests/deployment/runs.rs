//! Who ends a run: its reader, its deadline, its sandbox, or nobody.

use std::time::Duration;

use tangle_sandbox::claims::{Detach, Interactions, Replay};
use tangle_sandbox::contract::types::{SessionId, TurnId};
use tangle_sandbox::provider::{PROVIDER, Turn};
use tangle_sandbox::sandbox::{Deadline, Prompt, PromptStatus};

use crate::support::deployed::{Deployed, alive, assert_recorded, finish, gone, pid_in, until};
use crate::within;

/// A child, a grandchild that leaves its session, and a shell that waits for both.
const TREE: &str =
    "run sleep 300 & echo $! > child.pid; setsid sleep 300 & echo $! > escaped.pid; wait";

pub fn wire_7_8_dropping_an_attached_run_cancels_it_and_ends_its_processes_only() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let neighbour = "run sleep 300 & echo $! > neighbour.pid; wait";
        let neighbour = sandbox.stream(neighbour).await.unwrap();
        let mut run = sandbox.stream(TREE).await.unwrap();
        for _ in 0..3 {
            run.next().await.unwrap().unwrap();
        }
        let file = |name| deployed.file(&sandbox, name);
        let pids = [
            pid_in(&file("child.pid")).await,
            pid_in(&file("escaped.pid")).await,
        ];
        let other = pid_in(&file("neighbour.pid")).await;
        assert!(pids.into_iter().all(alive) && alive(other));
        let execution = run.execution_id().clone();
        let session = run.session_id().clone();

        drop(run);
        let took = gone(&pids).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
        let record = until("the end of the run", async || {
            let record = deployed.run_record(sandbox.id(), &session, &execution);
            let record = record.await;
            (record["status"] != "running").then_some(record)
        })
        .await;
        assert_eq!(record["status"], "cancelled");
        let frames = deployed.replay(sandbox.id(), &session, &execution).await;
        assert_eq!(frames.last().unwrap().data["status"], "cancelled");

        assert!(alive(other), "the other session's processes go on");
        neighbour.cancel().await.unwrap();
        gone(&[other]).await;
        sandbox.delete().await.unwrap();
        deployed.stop().await;
    });
}

pub fn wire_7_8_a_detached_run_completes_and_its_events_replay() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let script = "say before\nrun while [ ! -e go ]; do sleep 0.05; done\nwrite made.txt it went on\nsay after";
        let mut run = sandbox.stream(script).await.unwrap();
        let first = run.next().await.unwrap().unwrap();
        assert_eq!(first.name, "execution.started");
        let run = run.detach().await.unwrap();
        let reference = run.control_ref().clone();
        drop(run);

        // Longer gone than a reader that vanished would be waited for, had the run not been detached.
        sandbox.write("go", "").await.unwrap();
        let (session, execution) = (&reference.session_id, &reference.execution_id);
        let record = until("the end of the run", async || {
            let record = deployed.run_record(sandbox.id(), session, execution).await;
            (record["status"] != "running").then_some(record)
        })
        .await;
        assert_eq!(record["status"], "completed");
        let frames = deployed.replay(sandbox.id(), session, execution).await;
        let ids: Vec<_> = frames.iter().map(|frame| frame.id.clone()).collect();
        let wanted: Vec<_> = (1..=frames.len()).map(|id| id.to_string()).collect();
        assert_eq!(ids, wanted);
        assert_eq!(frames.last().unwrap().data["status"], "completed");
        let path = format!("/agents/sessions/{session}/runs/{execution}/result");
        let result = deployed.data(sandbox.id(), &path).await;
        assert_eq!(result["finalText"], "after");
        assert_eq!(sandbox.read_text("made.txt").await.unwrap(), "it went on");
        deployed.stop().await;
    });
}

pub fn wire_8_1_a_turn_dispatched_twice_is_one_run_under_one_reference() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let environment = sandbox.environment().await.unwrap();
        let environment = environment.claim::<(Detach, Replay)>().unwrap();
        let environment = environment.narrow::<tangle_sandbox::claims![Detach]>();
        let script = "run echo once >> ran.txt; while [ ! -e go ]; do sleep 0.05; done\nsay done";
        let turn = || Turn::new(script).turn(TurnId::new("turn-1").unwrap());

        let first = environment.dispatch(turn()).await.unwrap();
        let second = environment.dispatch(turn()).await.unwrap();
        let reference = first.control_ref();
        assert_eq!(reference, second.control_ref());
        let fields = serde_json::to_value(reference).unwrap();
        let mut names: Vec<_> = fields.as_object().unwrap().keys().cloned().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "environmentId",
                "executionId",
                "provider",
                "requestDigest",
                "runId",
                "sessionId"
            ]
        );
        assert_eq!(reference.provider.as_str(), PROVIDER);
        assert_eq!(reference.environment_id.as_str(), sandbox.id().as_str());

        sandbox.write("go", "").await.unwrap();
        let (session, execution) = (&reference.session_id, &reference.execution_id);
        until("the end of the run", async || {
            let record = deployed.run_record(sandbox.id(), session, execution).await;
            (record["status"] == "completed").then_some(())
        })
        .await;
        let third = environment.dispatch(turn()).await.unwrap();
        assert_eq!(third.control_ref(), reference);
        assert_eq!(sandbox.read_text("ran.txt").await.unwrap(), "once\n");
        let runs = format!("/agents/sessions/{session}/runs");
        let runs = deployed.data(sandbox.id(), &runs).await;
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");

        let changed = Turn::new("say else").turn(TurnId::new("turn-1").unwrap());
        let refused = environment.dispatch(changed).await.unwrap_err();
        assert!(
            ["RUN_CONFLICT", "TURN_CONFLICT"].contains(&refused.code().as_str()),
            "{refused:?}"
        );
        deployed.stop().await;
    });
}

pub fn a_claim_that_is_not_proven_names_its_flag_and_gives_the_environment_back() {
    within(Duration::from_secs(30), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let environment = sandbox.environment().await.unwrap();
        let unproven = environment.claim::<Interactions>().unwrap_err();
        assert_eq!(unproven.missing().collect::<Vec<_>>(), ["Interactions"]);
        let flags: Vec<_> = unproven.unset_flags().collect();
        assert_eq!(flags, ["/interactions/responseDedupe"]);
        assert!(
            unproven
                .to_string()
                .contains("/interactions/responseDedupe")
        );
        let environment = unproven.environment.claim::<Detach>().unwrap();
        let run = environment.dispatch("say still usable").await.unwrap();
        let reference = run.control_ref();
        until("the end of the run", async || {
            let (session, execution) = (&reference.session_id, &reference.execution_id);
            let record = deployed.run_record(sandbox.id(), session, execution).await;
            (record["status"] == "completed").then_some(())
        })
        .await;
        deployed.stop().await;
    });
}

pub fn stopping_a_sandbox_ends_its_run_as_cancelled() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let id = sandbox.id().clone();
        let session = SessionId::new("s-stop").unwrap();
        let prompt = Prompt::new(TREE).session(session.clone());
        let run = sandbox.stream(prompt).await.unwrap();
        let pids = [
            pid_in(&deployed.file(&sandbox, "child.pid")).await,
            pid_in(&deployed.file(&sandbox, "escaped.pid")).await,
        ];
        let execution = run.execution_id().clone();
        let (stopped, ended) = tokio::join!(sandbox.stop(), finish(run));
        let stopped = stopped.unwrap();
        assert_eq!(stopped.record().status, "stopped");
        let (events, result) = ended;
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("CANCELLED"));
        assert!(
            !pids.into_iter().any(alive),
            "stopped means that nothing runs"
        );

        let sandbox = stopped.resume().await.unwrap().wait_ready().await.unwrap();
        let record = deployed.run_record(&id, &session, &execution).await;
        assert_eq!(record["status"], "cancelled");
        let frames = deployed.replay(&id, &session, &execution).await;
        assert_recorded(&events, &frames);
        let next = Prompt::new("say again").session(session);
        let result = sandbox.prompt(next).await.unwrap();
        assert_eq!(
            (result.success(), result.text()),
            (true, "again"),
            "{result:?}"
        );
        deployed.stop().await;
    });
}

pub fn a_turn_past_its_deadline_is_ended_and_says_timeout() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let prompt = Prompt::new(TREE).deadline(Deadline::from_millis(1500));
        let waiting = sandbox.prompt(prompt);
        let (result, pids) = tokio::join!(waiting, async {
            [
                pid_in(&deployed.file(&sandbox, "child.pid")).await,
                pid_in(&deployed.file(&sandbox, "escaped.pid")).await,
            ]
        });
        let result = result.unwrap();
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("TIMEOUT"), "{result:?}");
        assert!(gone(&pids).await < Duration::from_secs(5));
        deployed.stop().await;
    });
}
