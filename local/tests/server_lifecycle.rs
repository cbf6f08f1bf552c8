//! The life of a sandbox: stop, resume, delete, expiry, its changes as a stream (wire protocol, 4.4 and 4.7).

mod kit;

use kit::{alive, server, unique, until};
use serde_json::json;

#[tokio::test]
async fn wire_4_4_stop_and_resume_keep_the_files_and_hold_one_lease() {
    let server = server().await;
    let id = server.sandbox().await;
    let path = |what: &str| format!("/v1/sandboxes/{id}/{what}");
    server
        .api
        .run_post(&id, "files/write", json!({"path": "f", "content": "kept"}))
        .await
        .expect(200);
    // An agent that ignores its cancellation makes the stop hold the lease for a while.
    let mut run = server
        .api
        .stream(&id, json!({"message": "say x\nhang", "detach": true}))
        .await;
    run.until("message.part.updated").await;
    let stop = path("stop");
    let (one, two) = tokio::join!(
        server.api.call("POST", &stop, None),
        server.api.call("POST", &stop, None)
    );
    let (done, refused) = match one.status {
        200 => (one, two),
        _ => (two, one),
    };
    done.expect(200);
    assert_eq!(refused.fault(), (409, "INVALID_STATE".to_owned()));
    let body = refused.json();
    assert!(body.get("requiredState").is_none(), "{body}");
    assert!(body["error"].as_str().unwrap().contains("in progress"));
    until("stop answers 200", async || {
        server.api.call("POST", &stop, None).await.status == 200
    })
    .await;
    let record = server
        .api
        .get(&path("")[..path("").len() - 1])
        .await
        .expect(200);
    assert_eq!(record["status"], "stopped");
    assert!(record.get("connection").is_none());
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "f"}))
        .await;
    assert_eq!(read.fault(), (409, "INVALID_STATE".to_owned()));
    assert_eq!(read.json()["error"]["requiredState"], "running");
    let server = server.restart().await;
    server
        .api
        .call("POST", &path("resume"), None)
        .await
        .expect(200);
    server
        .api
        .call("POST", &path("resume"), None)
        .await
        .expect(200);
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "f"}))
        .await
        .expect(200);
    assert_eq!(read["data"]["content"], "kept");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_4_4_a_call_during_a_lifecycle_operation_names_no_state_to_wait_for() {
    let server = server().await;
    let id = server.sandbox().await;
    let mut run = server
        .api
        .stream(&id, json!({"message": "say x\nhang", "detach": true}))
        .await;
    run.until("message.part.updated").await;
    let stop = format!("/v1/sandboxes/{id}/stop");
    let read = async {
        let mut refused = None;
        until("the lease is held", async || {
            let answer = server.api.run_get(&id, "health").await;
            refused = (answer.status == 409).then_some(answer);
            refused.is_some()
        })
        .await;
        refused.unwrap().json()["error"].clone()
    };
    let (stopped, error) = tokio::join!(server.api.call("POST", &stop, None), read);
    stopped.expect(200);
    assert_eq!(
        (&error["code"], &error["currentState"]),
        (&json!("INVALID_STATE"), &json!("running"))
    );
    assert!(error.get("requiredState").is_none(), "{error}");
    server.local.stop().await;
}

#[tokio::test]
async fn a_stop_ends_runs_and_commands_of_this_sandbox_only() {
    let server = server().await;
    let (one, two) = (server.sandbox().await, server.sandbox().await);
    let script = json!({"message": "run sleep 300\nsay done", "sessionId": "s", "executionId": "e", "detach": true});
    let mut stopped = server.api.stream(&one, script.clone()).await;
    stopped.until("execution.started").await;
    let mut other = server
        .api
        .stream(&two, json!({"message": "sleep 500\nsay done"}))
        .await;
    other.until("execution.started").await;
    let command = server.api.run_post(
        &one,
        "terminals/commands",
        json!({"command": "touch begun; sleep 300"}),
    );
    let stop = async {
        let begun = server.workspace(&one).join("begun");
        until("the command runs", async || begun.exists()).await;
        server
            .api
            .call("POST", &format!("/v1/sandboxes/{one}/stop"), None)
            .await
    };
    let (command, stop) = tokio::join!(command, stop);
    stop.expect(200);
    assert_eq!(command.status, 409);
    let last = stopped.all().await.pop().unwrap();
    assert_eq!(
        (last.event.as_str(), &last.data["status"]),
        ("done", &json!("cancelled"))
    );
    let end = other.all().await.pop().unwrap();
    assert_eq!(end.data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn a_deleted_sandbox_leaves_no_file_and_no_process() {
    let server = server().await;
    let id = server.sandbox().await;
    let seconds = unique(0);
    let _run = server
        .api
        .stream(
            &id,
            json!({"message": format!("run setsid sleep {seconds} &\nsleep 60000"), "detach": true}),
        )
        .await;
    until("the process runs", async || alive(&seconds) == 1).await;
    let path = format!("/v1/sandboxes/{id}");
    let deleted = server.api.call("DELETE", &path, None).await.expect(200);
    assert_eq!(
        deleted,
        json!({"success": true, "sandboxId": id, "outcome": "destroyed"})
    );
    assert_eq!(
        server.api.get(&path).await.fault(),
        (404, "NOT_FOUND".to_owned())
    );
    assert_eq!(server.api.call("DELETE", &path, None).await.status, 404);
    assert!(!server.workspace(&id).parent().unwrap().exists());
    assert_eq!(alive(&seconds), 0, "a process of the sandbox lives on");
    server.local.stop().await;
}

#[tokio::test]
async fn a_lifetime_ends_also_over_a_restart() {
    let server = server().await;
    let id = server.api.sandbox(json!({"maxLifetimeSeconds": 1})).await;
    let server = server.restart().await;
    let path = format!("/v1/sandboxes/{id}");
    until("the sandbox expires", async || {
        server.api.get(&path).await.json()["status"] == "expired"
    })
    .await;
    // Its files may still be on their way out, under the lease.
    until("resume is refused for its state", async || {
        let resume = server
            .api
            .call("POST", &format!("{path}/resume"), None)
            .await;
        assert_eq!(resume.fault(), (409, "INVALID_STATE".to_owned()));
        resume.json()["requiredState"] == "stopped"
    })
    .await;
    assert!(!server.workspace(&id).exists());
    server.local.stop().await;
}

#[tokio::test]
async fn an_idle_sandbox_stops_and_is_deleted_later() {
    let server = server().await;
    let id = server
        .api
        .sandbox(json!({"deleteAfterStoppedSeconds": 1}))
        .await;
    let path = format!("/v1/sandboxes/{id}");
    server
        .api
        .call("PATCH", &path, Some(json!({"idleTimeoutSeconds": 1})))
        .await
        .expect(200);
    until("the sandbox stops", async || {
        let answer = server.api.get(&path).await;
        answer.status == 404 || answer.json()["status"] == "stopped"
    })
    .await;
    until("the sandbox is deleted", async || {
        server.api.get(&path).await.status == 404
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn the_changes_of_a_sandbox_are_streamed_until_it_is_deleted() {
    let server = server().await;
    let id = server.sandbox().await;
    let path = format!("/v1/sandboxes/{id}");
    let events = format!("{path}/events");
    let mut stream = server.api.events("GET", &events, b"").await;
    let (one, two) = (stream.next().await.unwrap(), stream.next().await.unwrap());
    assert_eq!(
        (&*one.event, &one.data["status"]),
        ("sandbox.status", &json!("provisioning"))
    );
    assert_eq!((&*two.id, &two.data["status"]), ("2", &json!("running")));
    server
        .api
        .call("POST", &format!("{path}/stop"), None)
        .await
        .expect(200);
    assert_eq!(stream.next().await.unwrap().data["status"], "stopped");
    let resumed = format!("{events}?lastEventId=2");
    let mut later = server.api.events("GET", &resumed, b"").await;
    assert_eq!(later.next().await.unwrap().id, "3");
    assert_eq!(
        server
            .api
            .get(&format!("{events}?lastEventId=9"))
            .await
            .status,
        410
    );
    server.api.call("DELETE", &path, None).await.expect(200);
    for stream in [stream, later] {
        let rest = stream.all().await;
        assert_eq!(
            (rest.len(), &*rest[0].event, &*rest[0].id),
            (1, "sandbox.deleted", "4")
        );
    }
    assert_eq!(server.api.get(&events).await.status, 404);
    server.local.stop().await;
}
