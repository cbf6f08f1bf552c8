//! What survives the death of the server (wire protocol, 20).

mod kit;

use kit::process::Process;
use kit::{Frame, alive, assert_contiguous, unique, until};
use serde_json::json;

#[tokio::test]
async fn wire_20_1_a_killed_server_reports_its_run_as_failed_once_and_replays_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::start(&data);
    let id = server.api.sandbox(json!({"idempotencyKey": "k"})).await;
    let request = json!({
        "message": format!("say one\nrun setsid sleep {} &\nflood 200\nsleep 60000", unique(0)), "sessionId": "s", "executionId": "e",
        "turnId": "t", "detach": true,
    });
    let mut stream = server.api.stream(&id, request.clone()).await;
    let mut seen: Vec<Frame> = Vec::new();
    while kit::text_of(&seen).len() < 400 {
        seen.push(stream.next().await.unwrap());
    }
    assert_eq!(alive(&unique(0)), 1);
    server.kill();
    while let Some(frame) = stream.next().await {
        seen.push(frame);
    }
    assert_contiguous(&seen, 1);

    let server = Process::start(&data);
    assert_eq!(alive(&unique(0)), 0, "a process of the old server lives on");
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"][0]["id"], json!(id));
    assert_eq!(list["sandboxes"][0]["status"], "running");
    let session = server
        .api
        .run_get(&id, "agents/sessions/s")
        .await
        .expect(200);
    assert_eq!(session["data"]["state"], "failed");
    assert_eq!(
        session["data"]["failureReason"]["code"],
        "STREAM_INTERRUPTED"
    );
    let rejoin = |cursor: &str| json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": cursor});
    let all = server.api.run(&id, rejoin("0")).await;
    assert_contiguous(&all, 1);
    assert_eq!(all[..seen.len()], seen);
    let ends: Vec<&Frame> = all
        .iter()
        .filter(|frame| matches!(&*frame.event, "error" | "done"))
        .collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0].data["code"], "STREAM_INTERRUPTED");
    assert_eq!(
        (&*ends[1].event, &ends[1].data["status"]),
        ("done", &json!("failed"))
    );
    let last = all.last().unwrap().id.clone();
    let over = server
        .api
        .run_post(&id, "agents/run/stream", rejoin(&last))
        .await;
    assert_eq!(over.status, 204);
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(
        (&result["data"]["status"], &result["data"]["errorCode"]),
        (&json!("failed"), &json!("STREAM_INTERRUPTED"))
    );
    server.kill();

    // Once: another restart adds nothing, and the turn is not run again.
    let server = Process::start(&data);
    assert_eq!(server.api.run(&id, rejoin("0")).await, all);
    let again = server.api.run(&id, request).await;
    assert_eq!(again[1..], all[1..]);
    let runs = server
        .api
        .run_get(&id, "agents/sessions/s/runs")
        .await
        .expect(200);
    assert_eq!(runs["data"]["runs"].as_array().unwrap().len(), 1);
    // The session goes on, with what its agent remembers.
    let next = server
        .api
        .run(&id, json!({"message": "say next", "sessionId": "s"}))
        .await;
    assert_eq!(next.last().unwrap().data["status"], "completed");
    server
        .api
        .call("DELETE", &format!("/v1/sandboxes/{id}"), None)
        .await
        .expect(200);
    server.kill();
}

#[tokio::test]
async fn a_server_killed_again_and_again_never_loses_or_repeats_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut server = Process::start(&data);
    let id = server.api.sandbox(json!({})).await;
    for round in 0..5_u64 {
        let execution = format!("e{round}");
        let request = json!({"message": "flood 5000\nsleep 60000", "sessionId": "s", "executionId": execution, "detach": true});
        let mut stream = server.api.stream(&id, request).await;
        let mut seen = Vec::new();
        for _ in 0..=round * 7 {
            seen.push(stream.next().await.unwrap());
        }
        server.kill();
        while let Some(frame) = stream.next().await {
            seen.push(frame);
        }
        server = Process::start(&data);
        let rejoin =
            json!({"message": "", "sessionId": "s", "executionId": execution, "lastEventId": "0"});
        let all = server.api.run(&id, rejoin).await;
        assert_contiguous(&all, 1);
        assert_eq!(all[..seen.len()], seen);
        assert_eq!(all.last().unwrap().data["status"], "failed");
    }
}

#[tokio::test]
async fn a_server_killed_in_the_first_turn_of_a_session_keeps_its_context() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::start(&data);
    let id = server.api.sandbox(json!({})).await;
    let first = json!({"message": "say remembered\nsleep 60000", "sessionId": "s", "detach": true});
    let mut stream = server.api.stream(&id, first).await;
    stream.until("message.part.updated").await;
    let native = kit::native_session(&data, &id, "s");
    assert!(native.is_some());
    server.kill();
    let server = Process::start(&data);
    let next = json!({"message": "say next", "sessionId": "s"});
    let frames = server.api.run(&id, next).await;
    let end = frames.last().unwrap();
    assert_eq!(end.data["status"], "completed", "{frames:?}");
    let lost = frames
        .iter()
        .any(|frame| frame.data["code"] == "AGENT_CONTEXT_LOST");
    let kept = kit::native_session(&data, &id, "s") == native;
    assert!(kept != lost, "kept {kept}, said to be lost {lost}");
}

#[tokio::test]
async fn an_unfinished_create_is_finished_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::start(&data);
    let created = server
        .api
        .post("/v1/sandboxes", json!({"backend": {"type": "scripted"}}))
        .await
        .expect(201);
    server.kill();
    let server = Process::start(&data);
    let id = created["id"].as_str().unwrap();
    server.api.ready(id).await;
    let frames = server.api.run(id, json!({"message": "say x"})).await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
}

#[tokio::test]
async fn an_orderly_stop_ends_runs_before_it_returns() {
    let server = kit::server().await;
    let id = server.sandbox().await;
    let request = json!({"message": "say one\nsleep 60000", "sessionId": "s", "executionId": "e", "detach": true});
    let mut stream = server.api.stream(&id, request).await;
    stream.until("message.part.updated").await;
    let rest = tokio::spawn(stream.all());
    let server = server.restart().await;
    let rest = rest.await.unwrap();
    assert_eq!(rest.last().unwrap().data["status"], "failed");
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(result["data"]["errorCode"], "STREAM_INTERRUPTED");
    until("the session is free", async || {
        server
            .api
            .run_get(&id, "agents/sessions/s")
            .await
            .expect(200)["data"]["reconnectable"]
            == false
    })
    .await;
    server.local.stop().await;
}
