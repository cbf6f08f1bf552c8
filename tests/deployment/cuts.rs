//! A stream that is cut: what the reader sees, what the deployment does meanwhile.

use std::time::{Duration, Instant};

use tangle_sandbox::sandbox::{EventKind, Prompt, PromptStatus, Rejoin};

use crate::support::deployed::{
    Deployed, Seeded, assert_recorded, assert_whole, drain, finish, pid_in, text, tool_status,
    until,
};
use crate::support::proxy::Proxy;
use crate::within;

pub fn a_run_cut_at_twenty_points_gives_every_event_once() {
    within(Duration::from_secs(120), async {
        let deployed = Deployed::start().await;
        let proxy = Proxy::start(deployed.local.base_url()).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let mut seeded = Seeded::new(0x7461_6e67_6c65);
        let points: Vec<usize> = (0..20).map(|_| seeded.within(900, 4000)).collect();
        proxy.cut_next(points.iter().copied());

        let script = "run echo once >> ran.txt\nflood 300\nsleep 3000\nflood 300\nsay the end";
        let run = through.stream(script).await.unwrap();
        let (execution, session) = (run.execution_id().clone(), run.session_id().clone());
        let (events, result) = finish(run).await;
        assert_eq!((proxy.cuts_left(), proxy.streams()), (0, 21), "{points:?}");
        assert_whole(&events);
        let numbers = (0..300).map(|n| format!("{n} ")).collect::<String>();
        let whole = format!("{numbers}{numbers}the end");
        assert_eq!(text(&events), whole);
        assert!(result.success(), "{result:?}");
        assert_eq!(result.text(), whole);
        assert_eq!(sandbox.read_text("ran.txt").await.unwrap(), "once\n");
        let frames = deployed.replay(sandbox.id(), &session, &execution).await;
        assert_recorded(&events, &frames);
        deployed.stop().await;
    });
}

pub fn a_reader_that_vanished_is_missed_only_after_the_grace() {
    within(Duration::from_secs(60), async {
        let grace = Duration::from_millis(1500);
        let deployed = Deployed::start_with(|builder| builder.reader_grace(grace)).await;
        let proxy = Proxy::start(deployed.local.base_url()).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let script = "run echo $$ > shell.pid; sleep 300";
        let mut run = through.stream(script).await.unwrap();
        let (execution, session) = (run.execution_id().clone(), run.session_id().clone());
        pid_in(&deployed.file(&sandbox, "shell.pid")).await;
        run.next().await.unwrap().unwrap();

        // Nobody polls the run, so that its client does not come back.
        let begun = Instant::now();
        proxy.cut_now();
        let record = until("the end of the run", async || {
            let record = deployed.run_record(sandbox.id(), &session, &execution);
            let record = record.await;
            (record["status"] != "running").then_some(record)
        })
        .await;
        assert!(begun.elapsed() >= grace, "{:?}", begun.elapsed());
        assert_eq!(record["status"], "cancelled");

        // The late reader gets what it missed, to the truthful end.
        let rest = drain(&mut run).await;
        assert_eq!(rest.last().unwrap().name, "done");
        let result = run.result().await.unwrap();
        assert_eq!(result.error_code.as_deref(), Some("CANCELLED"));
        deployed.stop().await;
    });
}

pub fn without_rejoin_a_cut_is_told_with_the_cursor() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let proxy = Proxy::start(deployed.local.base_url()).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let script = Prompt::new("run sleep 300").rejoin(Rejoin::Off);
        let mut run = through.stream(script).await.unwrap();
        let mut last = None;
        loop {
            let event = run.next().await.unwrap().unwrap();
            if tool_status(&event, "run") == Some("running") {
                proxy.cut_now();
            }
            if event.name == "error" {
                let EventKind::Error(error) = event.kind else {
                    panic!("{event:?}")
                };
                assert_eq!(error.code.as_deref(), Some("STREAM_INTERRUPTED"));
                assert_eq!(error.last_event_id, last);
                assert_eq!(
                    error.execution_id.as_deref(),
                    Some(run.execution_id().as_str())
                );
                assert_eq!(event.id, None);
                break;
            }
            last = event.id;
        }
        assert!(run.next().await.is_none());
        assert_eq!(proxy.streams(), 1);
        run.cancel().await.unwrap();
        deployed.stop().await;
    });
}

/// A proxy that gives up a connection after a second of silence.
async fn impatient(deployed: &Deployed) -> Proxy {
    Proxy::start_with(deployed.local.base_url(), Some(Duration::from_secs(1))).await
}

pub fn wire_7_12_keep_alives_carry_a_silent_turn_over_an_idle_proxy() {
    within(Duration::from_secs(60), async {
        let often = Duration::from_millis(300);
        let deployed = Deployed::start_with(|builder| builder.keep_alive(often)).await;
        let proxy = impatient(&deployed).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let run = through.stream("say a\nsleep 4000\nsay b").await.unwrap();
        let (events, result) = finish(run).await;
        assert_whole(&events);
        assert_eq!((result.success(), result.text()), (true, "ab"));
        assert_eq!((proxy.streams(), proxy.silenced()), (1, 0));
        deployed.stop().await;
    });
}

/// Effectively no keep-alive at all.
const NEVER: Duration = Duration::from_secs(3600);

pub fn without_keep_alives_the_client_rejoins_and_gives_one_result() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start_with(|builder| builder.keep_alive(NEVER)).await;
        let proxy = impatient(&deployed).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let run = through.stream("say a\nsleep 4000\nsay b").await.unwrap();
        let (events, result) = finish(run).await;
        assert_whole(&events);
        assert_eq!((result.success(), result.text()), (true, "ab"));
        assert!(proxy.silenced() >= 1 && proxy.streams() >= 2);
        deployed.stop().await;
    });
}

pub fn a_silence_longer_than_every_rejoin_is_settled_from_the_record() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start_with(|builder| builder.keep_alive(NEVER)).await;
        let proxy = impatient(&deployed).await;
        let sandbox = deployed.sandbox().await;
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let script = "run echo once >> ran.txt\nsleep 10000\nsay b";
        let result = through.prompt(script).await.unwrap();
        assert_eq!(result.status, PromptStatus::Success, "{result:?}");
        assert_eq!(result.text(), "b");
        assert!(proxy.silenced() >= 4, "{}", proxy.silenced());
        assert_eq!(sandbox.read_text("ran.txt").await.unwrap(), "once\n");
        deployed.stop().await;
    });
}

pub fn wire_7_6_the_frames_after_a_cursor_are_sent_and_nothing_runs_again() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let run = sandbox
            .stream("run echo once >> ran.txt\nflood 50")
            .await
            .unwrap();
        let (execution, session) = (run.execution_id().clone(), run.session_id().clone());
        let (events, _) = finish(run).await;
        let whole = deployed.replay(sandbox.id(), &session, &execution).await;
        assert_recorded(&events, &whole);
        let after = |cursor: &str| {
            let path = format!(
                "/v1/sandboxes/{}/runtime/agents/sessions/{session}/events?executionId={execution}&lastEventId={cursor}",
                sandbox.id()
            );
            let client = deployed.client.clone();
            async move { client.fetch("GET", &path, &[], None).await.unwrap() }
        };
        let answer = after("41").await;
        let rest = crate::support::deployed::frames(&answer.body);
        assert_eq!(rest[0].id, "42");
        assert_eq!(rest, whole[41..]);
        let end = whole.len().to_string();
        assert_eq!(after(&end).await.status, 204);
        let unknown = after("99999").await;
        assert_eq!(unknown.status, 410);
        assert!(String::from_utf8_lossy(&unknown.body).contains("EVENT_CURSOR_UNKNOWN"));
        assert_eq!(sandbox.read_text("ran.txt").await.unwrap(), "once\n");
        deployed.stop().await;
    });
}
