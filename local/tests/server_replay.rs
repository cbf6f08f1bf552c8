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
    tokio::time::sleep(Duration::from_millis(200)).await;
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
async fn two_readers_get_every_frame_and_only_the_first_one_cancels() {
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
            json!({"message": "flood 20000", "sessionId": "s", "executionId": "e"}),
        )
        .await;
    stream.next().await.unwrap();
    let before = resident();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = resident().saturating_sub(before);
    let mut frames = vec![];
    while let Some(frame) = stream.next().await {
        frames.push(frame);
    }
    assert_contiguous(&frames, 2);
    assert_eq!(frames.last().unwrap().event, "done");
    assert!(grown < 32 << 20, "{grown} bytes more for what waits");
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

/// Resident bytes of this process, in which the server runs.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .unwrap()
        * 1024
}
