//! Readers of a run: replay after a cursor, leaving, rejoining, slow ones (wire protocol, 7.3, 7.5, 7.6).

mod kit;

use std::time::Duration;

use kit::{Api, Server, assert_contiguous, server, server_with, text_of, until};
use serde_json::{Value, json};

/// The run record of an execution.
async fn run_record(server: &Server, id: &str, session: &str, execution: &str) -> Value {
    let path = format!("agents/sessions/{session}/runs/{execution}");
    server.api.run_get(id, &path).await.expect(200)["data"].clone()
}

/// How many turns the session's agent has had, which is how often a model would have been asked.
async fn turns(server: &Server, id: &str, session: &str) -> usize {
    let path = format!("agents/sessions/{session}/runs");
    let runs = server.api.run_get(id, &path).await.expect(200);
    runs["data"]["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn wire_7_6_a_rejoin_gets_the_next_frame_and_runs_nothing() {
    let server = server().await;
    let id = server.sandbox().await;
    let ask = json!({"message": "flood 60", "sessionId": "s", "executionId": "e"});
    let frames = server.api.run(&id, ask).await;
    let rejoin = |cursor: &str| json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": cursor});
    let rest = server.api.run(&id, rejoin("41")).await;
    assert_eq!(rest, frames[41..]);
    assert_eq!(server.api.run(&id, rejoin("0")).await, frames);
    let path = Api::runtime(&id, "agents/sessions/s/events?executionId=e");
    assert_eq!(
        server.api.events("GET", &path, b"").await.all().await,
        frames
    );
    let after = format!("{path}&lastEventId=41");
    assert_eq!(
        server.api.events("GET", &after, b"").await.all().await,
        frames[41..]
    );
    assert_eq!(turns(&server, &id, "s").await, 1);
    let server = server.restart().await;
    assert_eq!(server.api.run(&id, rejoin("41")).await, frames[41..]);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_7_an_unknown_cursor_is_410_with_the_oldest_one() {
    let server = server().await;
    let id = server.sandbox().await;
    server
        .api
        .run(
            &id,
            json!({"message": "say x", "sessionId": "s", "executionId": "e"}),
        )
        .await;
    for cursor in ["999", "x", "-1", "01", "1.0", "9999999999999999999999"] {
        let request =
            json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": cursor});
        let answer = server.api.run_post(&id, "agents/run/stream", request).await;
        assert_eq!(
            answer.fault(),
            (410, "EVENT_CURSOR_UNKNOWN".to_owned()),
            "{cursor}"
        );
        assert_eq!(answer.json()["error"]["oldestEventId"], "1");
        let path = format!("agents/sessions/s/events?executionId=e&lastEventId={cursor}");
        assert_eq!(server.api.run_get(&id, &path).await.status, 410, "{cursor}");
    }
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_15_a_rejoin_at_the_terminal_cursor_is_204() {
    let server = server().await;
    let id = server.sandbox().await;
    let ask = json!({"message": "say x", "sessionId": "s", "executionId": "e"});
    let frames = server.api.run(&id, ask).await;
    let last = frames.last().unwrap().id.clone();
    let request = json!({"message": "", "executionId": "e", "sessionId": "s", "lastEventId": last});
    let answer = server.api.run_post(&id, "agents/run/stream", request).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(result["data"]["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_8_a_reader_that_leaves_cancels_once_unless_detached() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    for (execution, detach, status) in [("a", false, "cancelled"), ("b", true, "completed")] {
        let request = json!({
            "message": "say one\nsay two\nsleep 700\nsay end", "sessionId": execution, "executionId": execution,
            "detach": detach,
        });
        let mut stream = server.api.stream(&id, request).await;
        for _ in 0..3 {
            stream.next().await.unwrap();
        }
        drop(stream);
        until("the run ends", async || {
            run_record(&server, &id, execution, execution).await["status"] == status
        })
        .await;
        let rejoin = json!({"message": "", "sessionId": execution, "executionId": execution, "lastEventId": "3"});
        let frames = server.api.run(&id, rejoin).await;
        assert_contiguous(&frames, 4);
        assert_eq!(
            frames.iter().filter(|frame| frame.event == "done").count(),
            1
        );
        assert_eq!(frames.last().unwrap().data["status"], status);
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_rejoin_within_the_grace_continues_the_run() {
    let server = server_with(|builder| builder.reader_grace(Duration::from_millis(1500))).await;
    let id = server.sandbox().await;
    let request =
        json!({"message": "say one\nsleep 2500\nsay end", "sessionId": "s", "executionId": "e"});
    let mut stream = server.api.stream(&id, request).await;
    stream.until("execution.started").await;
    drop(stream);
    let rejoin = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "1"});
    let frames = server.api.run(&id, rejoin).await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn a_rejoin_can_detach_the_run() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let request =
        json!({"message": "say one\nsleep 600\nsay end", "sessionId": "s", "executionId": "e"});
    let mut stream = server.api.stream(&id, request).await;
    stream.until("execution.started").await;
    let detach = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "1", "detach": true});
    let second = server.api.stream(&id, detach).await;
    drop(stream);
    drop(second);
    until("the run completes", async || {
        run_record(&server, &id, "s", "e").await["status"] == "completed"
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn two_readers_get_every_frame_and_one_that_leaves_does_not_cancel() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let request =
        json!({"message": "flood 300\nsleep 300\nsay end", "sessionId": "s", "executionId": "e"});
    let first = server.api.stream(&id, request).await;
    let rejoin = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "0"});
    let second = server.api.stream(&id, rejoin.clone()).await;
    let third = server.api.stream(&id, rejoin).await;
    drop(third);
    let (first, second) = tokio::join!(first.all(), second.all());
    assert_eq!(first, second);
    assert_contiguous(&first, 1);
    assert_eq!(first.last().unwrap().data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn a_reader_that_came_back_is_not_cancelled_when_its_dead_connection_ends() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let (mut first, rejoin) = waiting_run(&server, &id).await;
    first.until("message.part.updated").await;
    let mut back = server.api.stream(&id, rejoin).await;
    back.next().await.unwrap();
    drop(first); // as the server sees it when a half-open connection dies at last
    go(&server, &id).await;
    let frames = back.all().await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn an_observer_that_leaves_cancels_nothing() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let (first, rejoin) = waiting_run(&server, &id).await;
    let path = Api::runtime(&id, "agents/sessions/s/events?executionId=e");
    for _ in 0..5 {
        drop(server.api.stream(&id, rejoin.clone()).await);
        drop(server.api.events("GET", &path, b"").await);
    }
    go(&server, &id).await;
    let frames = first.all().await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn the_last_reader_that_leaves_cancels() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let (first, rejoin) = waiting_run(&server, &id).await;
    let mut observer = server.api.stream(&id, rejoin).await;
    drop(first);
    observer.next().await.unwrap();
    assert_eq!(
        run_record(&server, &id, "s", "e").await["status"],
        "running"
    );
    drop(observer);
    until("the run is cancelled", async || {
        run_record(&server, &id, "s", "e").await["status"] == "cancelled"
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn a_refused_detach_detaches_nothing() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let (first, mut detach) = waiting_run(&server, &id).await;
    detach["detach"] = json!(true);
    detach["lastEventId"] = json!("999");
    let refused = server.api.run_post(&id, "agents/run/stream", detach).await;
    assert_eq!(refused.fault(), (410, "EVENT_CURSOR_UNKNOWN".to_owned()));
    drop(first);
    until("the run is cancelled", async || {
        run_record(&server, &id, "s", "e").await["status"] == "cancelled"
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_6_a_rejoin_of_a_live_run_asks_nobody_again() {
    let server = server().await;
    let id = server.sandbox().await;
    let (mut first, rejoin) = waiting_run(&server, &id).await;
    first.until("message.part.updated").await;
    let asked = || std::fs::read_to_string(server.workspace(&id).join("asked"));
    until("the agent works", async || asked().is_ok()).await;
    let mut readers = Vec::new();
    for _ in 0..5 {
        let mut reader = server.api.stream(&id, rejoin.clone()).await;
        readers.push((reader.next().await.unwrap(), reader));
    }
    assert_eq!(
        run_record(&server, &id, "s", "e").await["status"],
        "running"
    );
    assert_eq!(asked().unwrap(), "once\n");
    assert_eq!(turns(&server, &id, "s").await, 1);
    go(&server, &id).await;
    let rest = first.all().await;
    for (frame, reader) in readers {
        assert_eq!(frame.id, "1");
        let frames = reader.all().await;
        assert!(frames.ends_with(&rest));
    }
    assert_eq!(asked().unwrap(), "once\n");
    assert_eq!(turns(&server, &id, "s").await, 1);
    server.local.stop().await;
}

/// A run that says something and then waits until `go`; its first reader, and the request that rejoins it.
async fn waiting_run(server: &Server, id: &str) -> (kit::Stream, Value) {
    let script =
        "say begun\nrun echo once >> asked\nrun while [ ! -e go ]; do sleep 0.02; done\nsay end";
    let request = json!({"message": script, "sessionId": "s", "executionId": "e"});
    let rejoin = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "0"});
    (server.api.stream(id, request).await, rejoin)
}

async fn go(server: &Server, id: &str) {
    let go = json!({"path": "go", "content": ""});
    server.api.run_post(id, "files/write", go).await.expect(200);
}

#[tokio::test]
async fn wire_7_12_a_silent_run_gets_comments() {
    let server = server_with(|builder| builder.keep_alive(Duration::from_millis(50))).await;
    let id = server.sandbox().await;
    let mut stream = server
        .api
        .stream(&id, json!({"message": "sleep 600\nsay end"}))
        .await;
    stream.until("done").await;
    assert!(stream.comments >= 5, "{}", stream.comments);
    assert_eq!(stream.next().await, None);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_13_a_delta_costs_at_most_300_bytes() {
    let server = server().await;
    let id = server.sandbox().await;
    let mut stream = server
        .api
        .stream(&id, json!({"message": "flood 20000"}))
        .await;
    let frames = stream.until("done").await;
    let deltas = frames
        .iter()
        .filter(|frame| frame.data.get("delta").is_some())
        .count();
    assert!(deltas >= 20_000, "{deltas}");
    let whole = frames
        .iter()
        .rev()
        .find(|frame| frame.data["part"]["text"].is_string())
        .unwrap();
    assert_eq!(whole.data["part"]["text"], text_of(&frames));
    let text = text_of(&frames).len();
    let spent = stream.bytes - 2 * text;
    assert!(spent / deltas <= 300, "{} bytes a delta", spent / deltas);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_14_a_reader_that_stalls_gets_every_frame() {
    let server = server().await;
    let id = server.sandbox().await;
    let mut stream = server
        .api
        .stream(
            &id,
            json!({"message": "flood 20000", "sessionId": "s", "executionId": "e", "detach": true}),
        )
        .await;
    stream.next().await.unwrap();
    until("the run is over", async || {
        run_record(&server, &id, "s", "e").await["status"] == "completed"
    })
    .await;
    let mut frames = vec![];
    while let Some(frame) = stream.next().await {
        frames.push(frame);
    }
    assert_contiguous(&frames, 2);
    assert_eq!(frames.last().unwrap().event, "done");
    server.local.stop().await;
}

#[tokio::test]
async fn a_reader_that_is_cut_anywhere_gets_every_frame_once() {
    let server = server().await;
    let id = server.sandbox().await;
    for cut in 1..=20 {
        let execution = format!("e{cut}");
        let request = json!({
            "message": "say one\nflood 20\nsleep 5\nflood 20\nsay end", "sessionId": "s", "executionId": execution,
        });
        let mut stream = server.api.stream(&id, request).await;
        let mut frames = Vec::new();
        loop {
            for _ in 0..cut {
                match stream.next().await {
                    Some(frame) => frames.push(frame),
                    None => break,
                }
            }
            drop(stream);
            if frames.last().is_some_and(|frame| frame.event == "done") {
                break;
            }
            let cursor = &frames.last().unwrap().id;
            let rejoin = json!({"message": "", "sessionId": "s", "executionId": execution, "lastEventId": cursor});
            stream = server.api.stream(&id, rejoin).await;
        }
        assert_contiguous(&frames, 1);
        assert_eq!(
            frames.last().unwrap().data["status"],
            "completed",
            "cut after {cut}"
        );
    }
    server.local.stop().await;
}
