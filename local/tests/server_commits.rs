//! What becomes of a request whose client leaves, or whose record fails, while it is recorded.

mod kit;

use std::time::Duration;

use kit::{Api, record, send, server, server_with, until};
use serde_json::{Value, json};
use tangle_sandbox::contract::digest::Digest;

/// About as long as a request needs from the socket to its commit. Whatever comes in later is served as well, so that
/// only the sharpness of a test depends on it.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

#[tokio::test]
async fn wire_7_8_a_reader_that_leaves_before_its_answer_leaves_no_session_busy() {
    let server = server_with(|builder| builder.reader_grace(Duration::ZERO)).await;
    let id = server.sandbox().await;
    let held = record(server.local.data_dir());
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let path = Api::runtime(&id, "agents/run/stream");
    let mut clients = Vec::new();
    for session in 0..8 {
        let request =
            json!({"message": "say begun\nsleep 60000", "sessionId": format!("s{session}")});
        clients.push(send(&server.api, &path, &request).await);
    }
    tokio::time::sleep(ON_ITS_WAY).await;
    drop(clients);
    tokio::time::sleep(ON_ITS_WAY).await;
    held.execute_batch("ROLLBACK").unwrap();
    for session in 0..8 {
        until("the session is free", async || {
            let request = json!({"message": "say next", "sessionId": format!("s{session}")});
            server.api.run_post(&id, "agents/run", request).await.status == 200
        })
        .await;
        let path = Api::runtime(&id, &format!("agents/sessions/s{session}"));
        server.api.call("DELETE", &path, None).await.expect(200);
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_cancel_whose_caller_leaves_while_it_is_recorded_still_acts() {
    let server = server().await;
    let id = server.sandbox().await;
    let request = json!({"message": "say begun\nsleep 60000", "sessionId": "s", "executionId": "e", "detach": true});
    let mut stream = server.api.stream(&id, request).await;
    let run = stream.next().await.unwrap().data["runControlRef"].clone();
    let held = record(server.local.data_dir());
    let path = Api::runtime(&id, "agents/run/cancel");
    for operation in 0.. {
        let mut cancel = json!({"operationId": format!("op{operation}"), "run": run});
        cancel["requestDigest"] = Digest::of(&cancel).to_string().into();
        held.execute_batch("BEGIN IMMEDIATE").unwrap();
        let client = send(&server.api, &path, &cancel).await;
        tokio::time::sleep(ON_ITS_WAY).await;
        drop(client);
        tokio::time::sleep(ON_ITS_WAY).await;
        held.execute_batch("ROLLBACK").unwrap();
        tokio::time::sleep(ON_ITS_WAY).await;
        let recorded = "SELECT count(*) FROM cancels";
        let recorded: i64 = held.query_row(recorded, [], |row| row.get(0)).unwrap();
        if recorded > 0 {
            break;
        }
        assert!(operation < 20, "no cancel was ever recorded");
    }
    let frames = stream.all().await;
    assert_eq!(frames.last().unwrap().data["status"], "cancelled");
    server.local.stop().await;
}

#[tokio::test]
async fn a_run_whose_events_were_lost_is_not_completed() {
    let server = server().await;
    let id = server.sandbox().await;
    record(server.local.data_dir())
        .execute_batch(
            "CREATE TRIGGER lost BEFORE INSERT ON frames WHEN new.kind = 'message.part.updated' \
             BEGIN SELECT RAISE(ABORT, 'lost'); END",
        )
        .unwrap();
    let answer = server
        .api
        .run_post(
            &id,
            "agents/run",
            json!({"message": "say x", "sessionId": "s"}),
        )
        .await;
    let reason = answer.json()["error"]["reason"].clone();
    assert_eq!((answer.status, reason), (500, json!("STREAM_INTERRUPTED")));
    server.local.stop().await;
}

#[tokio::test]
async fn an_end_that_is_recorded_at_the_second_attempt_keeps_the_agents_session() {
    let server = server().await;
    let id = server.sandbox().await;
    let data = server.local.data_dir().to_owned();
    let held = record(&data);
    held.execute_batch(
        "CREATE TRIGGER refused BEFORE UPDATE OF status ON executions BEGIN SELECT RAISE(ABORT, 'refused'); END",
    )
    .unwrap();
    let script = "say begun\nrun while [ ! -e go ]; do sleep 0.02; done";
    let request = json!({"message": script, "sessionId": "s", "executionId": "e", "detach": true});
    let mut stream = server.api.stream(&id, request).await;
    stream.until("message.part.updated").await;
    let native = kit::native_session(&data, &id, "s");
    assert!(native.is_some());
    // As if the agent's process and its session had been replaced in the turn.
    held.execute("UPDATE sessions SET native = NULL", [])
        .unwrap();
    let go = json!({"path": "go", "content": ""});
    server
        .api
        .run_post(&id, "files/write", go)
        .await
        .expect(200);
    let frames = stream.all().await;
    assert!(frames.iter().all(|frame| frame.event != "done"));
    held.execute_batch("DROP TRIGGER refused").unwrap();
    until("the end is recorded", async || {
        let path = "agents/sessions/s/runs/e";
        let record: Value = server.api.run_get(&id, path).await.expect(200);
        record["data"]["status"] == "completed"
    })
    .await;
    assert_eq!(kit::native_session(&data, &id, "s"), native);
    server.local.stop().await;
}
