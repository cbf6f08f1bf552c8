//! Sessions, and stopping their runs (wire protocol, 9).

mod kit;

use kit::{Server, alive, server, unique, until};
use serde_json::{Value, json};
use tangle_sandbox::contract::digest::Digest;

/// A detached run that goes on until it is stopped; its reference.
async fn running(server: &Server, id: &str, session: &str, execution: &str) -> Value {
    let request = json!({
        "message": format!(
            "say begun\nrun sh -c 'sleep {} & setsid sleep {} & wait'\nsay end", unique(0), unique(1)
        ),
        "sessionId": session, "executionId": execution, "detach": true,
    });
    let mut stream = server.api.stream(id, request).await;
    let frames = stream.until("execution.started").await;
    frames.last().unwrap().data["runControlRef"].clone()
}

fn cancel(operation: &str, run: &Value, reason: Option<&str>) -> Value {
    let mut material = json!({"operationId": operation, "run": run});
    if let Some(reason) = reason {
        material["reason"] = reason.into();
    }
    let digest = Digest::of(&material).to_string();
    material["requestDigest"] = digest.into();
    material
}

async fn ended(server: &Server, id: &str, session: &str, execution: &str, status: &str) {
    let path = format!("agents/sessions/{session}/runs/{execution}");
    until("the run is over", async || {
        server.api.run_get(id, &path).await.expect(200)["data"]["status"] == status
    })
    .await;
}

#[tokio::test]
async fn wire_9_5_a_cancel_is_accepted_once_replayed_and_bound_to_its_digest() {
    let server = server().await;
    let id = server.sandbox().await;
    let run = running(&server, &id, "s", "e").await;
    let request = cancel("op", &run, Some("enough"));
    let first = server
        .api
        .run_post(&id, "agents/run/cancel", request.clone())
        .await
        .expect(200);
    let first = &first["data"];
    assert_eq!(
        (&first["status"], &first["effect"]),
        (&json!("accepted"), &json!("cancel_requested"))
    );
    assert_eq!((&first["operationId"], &first["run"]), (&json!("op"), &run));
    ended(&server, &id, "s", "e", "cancelled").await;
    let server = server.restart().await;
    let again = server
        .api
        .run_post(&id, "agents/run/cancel", request.clone())
        .await
        .expect(200);
    assert_eq!(
        (&again["data"]["status"], &again["data"]["effect"]),
        (&json!("replayed"), &first["effect"])
    );
    let other = server
        .api
        .run_post(&id, "agents/run/cancel", cancel("op", &run, None))
        .await
        .expect(200);
    let other = &other["data"];
    assert_eq!(
        (&other["status"], &other["effect"]),
        (&json!("conflict"), &json!("unknown"))
    );
    assert_eq!(other["existingRequestDigest"], request["requestDigest"]);
    assert_ne!(other["requestDigest"], request["requestDigest"]);
    let late = server
        .api
        .run_post(&id, "agents/run/cancel", cancel("op2", &run, None))
        .await
        .expect(200);
    assert_eq!(
        (&late["data"]["status"], &late["data"]["effect"]),
        (&json!("accepted"), &json!("not_live"))
    );
    server.local.stop().await;
}

#[tokio::test]
async fn wire_9_5_a_cancel_repeated_while_the_run_still_goes_on_is_replayed() {
    let server = server().await;
    let id = server.sandbox().await;
    // This agent does not listen to a cancel, so that it takes a while until it is killed.
    let request =
        json!({"message": "say begun\nhang", "sessionId": "s", "executionId": "e", "detach": true});
    let mut stream = server.api.stream(&id, request).await;
    let run = stream.next().await.unwrap().data["runControlRef"].clone();
    stream.until("message.part.updated").await;
    let request = cancel("op", &run, None);
    for status in ["accepted", "replayed", "replayed"] {
        let answer = server
            .api
            .run_post(&id, "agents/run/cancel", request.clone())
            .await
            .expect(200);
        let answer = &answer["data"];
        assert_eq!(
            (&answer["status"], &answer["effect"]),
            (&json!(status), &json!("cancel_requested"))
        );
        let path = "agents/sessions/s/runs/e";
        let record = server.api.run_get(&id, path).await.expect(200);
        assert_eq!(record["data"]["status"], "running");
    }
    ended(&server, &id, "s", "e", "cancelled").await;
    server.local.stop().await;
}

#[tokio::test]
async fn a_replayed_cancel_ends_a_run_that_still_goes_on() {
    let server = server().await;
    let id = server.sandbox().await;
    let run = running(&server, &id, "s", "e").await;
    let request = cancel("op", &run, None);
    // Recorded, and not done.
    let digest = request["requestDigest"].as_str().unwrap();
    kit::record(server.local.data_dir())
        .execute(
            "INSERT INTO cancels (sandbox, operation, digest, effect) VALUES (?1, 'op', ?2, 'cancel_requested')",
            [&*id, digest],
        )
        .unwrap();
    let answer = server
        .api
        .run_post(&id, "agents/run/cancel", request)
        .await
        .expect(200);
    assert_eq!(answer["data"]["status"], "replayed");
    ended(&server, &id, "s", "e", "cancelled").await;
    server.local.stop().await;
}

#[tokio::test]
async fn an_abort_shows_the_session_with_the_run_that_it_stops() {
    let server = server().await;
    let id = server.sandbox().await;
    for round in 0..20 {
        let (session, execution) = (format!("s{round}"), format!("e{round}"));
        let request = json!({"message": "say begun\nsleep 60000", "sessionId": session, "executionId": execution, "detach": true});
        let mut stream = server.api.stream(&id, request).await;
        stream.until("message.part.updated").await;
        let path = format!("agents/sessions/{session}/abort");
        let answer = server.api.run_post(&id, &path, json!({})).await.expect(200);
        let answer = &answer["data"];
        assert_eq!(answer["cancelled"], true);
        assert_eq!(
            (
                &answer["session"]["state"],
                &answer["session"]["activeExecutionId"]
            ),
            (&json!("running"), &json!(execution))
        );
        stream.all().await;
        let answer = server.api.run_post(&id, &path, json!({})).await.expect(200);
        let answer = &answer["data"];
        assert_eq!(
            (&answer["cancelled"], &answer["session"]["state"]),
            (&json!(false), &json!("idle"))
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn what_a_session_cannot_do_here_is_refused_by_name() {
    let server = server().await;
    let id = server.sandbox().await;
    let create = async |body: Value| server.api.run_post(&id, "agents/sessions", body).await;
    create(json!({"sessionId": "s", "retention": "workspace"}))
        .await
        .expect(201);
    for (field, body) in [
        ("retention", json!({"retention": "forever"})),
        ("task", json!({"task": {"branch": "b"}})),
    ] {
        let refused = create(body).await;
        assert_eq!(refused.fault(), (501, "NOT_SUPPORTED".to_owned()));
        assert!(refused.json()["error"]["fields"][field].is_string());
    }
    let tail = server.api.run_get(&id, "agents/sessions/s/events").await;
    assert_eq!(tail.fault(), (501, "NOT_SUPPORTED".to_owned()));
    for body in [json!({"sessionId": 1}), json!({"other": "x"})] {
        let refused = server.api.run_post(&id, "agents/run/cancel", body).await;
        assert_eq!(refused.fault(), (400, "VALIDATION_ERROR".to_owned()));
    }
    server.local.stop().await;
}

#[tokio::test]
async fn a_cancel_with_a_wrong_digest_reference_or_session_stops_nothing() {
    let server = server().await;
    let id = server.sandbox().await;
    let run = running(&server, &id, "s", "e").await;
    let mut forged = cancel("op", &run, None);
    forged["reason"] = json!("other");
    assert_eq!(
        server
            .api
            .run_post(&id, "agents/run/cancel", forged)
            .await
            .status,
        400
    );
    let mut foreign = run.clone();
    foreign["runId"] = json!("another");
    let unknown = server
        .api
        .run_post(&id, "agents/run/cancel", cancel("op", &foreign, None))
        .await
        .expect(200);
    assert_eq!(
        (&unknown["data"]["status"], &unknown["data"]["retryable"]),
        (&json!("unknown"), &json!(false))
    );
    assert!(unknown["data"]["message"].is_string());
    foreign["sessionId"] = json!("nowhere");
    let absent = server
        .api
        .run_post(&id, "agents/run/cancel", cancel("op", &foreign, None))
        .await;
    assert_eq!(
        (
            absent.status,
            absent.json()["error"]["resourceType"].clone()
        ),
        (404, json!("session"))
    );
    let record = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e")
        .await
        .expect(200);
    assert_eq!(record["data"]["status"], "running");
    server.local.stop().await;
}

#[tokio::test]
async fn a_cancel_ends_the_whole_tree_and_no_other_session() {
    let server = server().await;
    let id = server.sandbox().await;
    running(&server, &id, "s", "e").await;
    let request = json!({"message": format!("run sleep {}\nsay end", unique(2)), "sessionId": "t", "executionId": "f", "detach": true});
    server
        .api
        .stream(&id, request)
        .await
        .until("execution.started")
        .await;
    until("the processes run", async || {
        alive(&unique(0)) > 0 && alive(&unique(1)) > 0 && alive(&unique(2)) > 0
    })
    .await;
    let answer = server
        .api
        .run_post(&id, "agents/run/cancel", json!({"executionId": "e"}))
        .await
        .expect(200);
    assert_eq!(answer["data"]["cancelled"], true);
    ended(&server, &id, "s", "e", "cancelled").await;
    assert_eq!((alive(&unique(0)), alive(&unique(1))), (0, 0));
    assert_eq!(alive(&unique(2)), 1);
    let all = server
        .api
        .run_post(&id, "agents/run/cancel", json!({}))
        .await
        .expect(200);
    assert_eq!(all["data"]["cancelled"], true);
    ended(&server, &id, "t", "f", "cancelled").await;
    let none = server
        .api
        .run_post(&id, "agents/run/cancel", json!({}))
        .await
        .expect(200);
    assert_eq!(
        (&none["success"], &none["data"]["cancelled"]),
        (&json!(true), &json!(false))
    );
    server.local.stop().await;
}

#[tokio::test]
async fn wire_9_4_abort_of_another_execution_changes_nothing() {
    let server = server().await;
    let id = server.sandbox().await;
    running(&server, &id, "s", "b").await;
    let abort = async |body: Value| {
        server
            .api
            .run_post(&id, "agents/sessions/s/abort", body)
            .await
            .expect(200)["data"]
            .clone()
    };
    let other = abort(json!({"executionId": "a"})).await;
    assert_eq!(
        (&other["cancelled"], &other["reason"]),
        (&json!(false), &json!("execution-mismatch"))
    );
    let session = server
        .api
        .run_get(&id, "agents/sessions/s")
        .await
        .expect(200);
    assert_eq!(session["data"]["activeExecutionId"], "b");
    assert_eq!(session["data"]["reconnectable"], true);
    let right = abort(json!({"executionId": "b"})).await;
    assert_eq!(right["cancelled"], true);
    ended(&server, &id, "s", "b", "cancelled").await;
    assert_eq!(abort(json!({})).await["cancelled"], false);
    let unknown = server
        .api
        .run_post(&id, "agents/sessions/none/abort", json!({}))
        .await;
    assert_eq!(unknown.json()["error"]["resourceType"], "session");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_9_7_the_result_of_a_running_execution_is_202() {
    let server = server().await;
    let id = server.sandbox().await;
    running(&server, &id, "s", "e").await;
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(202);
    assert_eq!(result["data"]["status"], "running");
    server
        .api
        .run_post(&id, "agents/sessions/s/abort", json!({}))
        .await
        .expect(200);
    ended(&server, &id, "s", "e", "cancelled").await;
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(result["data"]["status"], "cancelled");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_9_6_runs_of_a_fresh_session_are_none_and_of_an_unknown_one_404() {
    let server = server().await;
    let id = server.sandbox().await;
    let created = server
        .api
        .run_post(
            &id,
            "agents/sessions",
            json!({"sessionId": "a/b c", "title": "T"}),
        )
        .await
        .expect(201);
    assert_eq!(created["data"]["session"]["title"], "T");
    let again = server
        .api
        .run_post(&id, "agents/sessions", json!({"sessionId": "a/b c"}))
        .await
        .expect(200);
    assert_eq!(again["data"]["session"]["id"], "a/b c");
    let runs = server
        .api
        .run_get(&id, "agents/sessions/a%2Fb%20c/runs")
        .await
        .expect(200);
    assert_eq!(runs["data"]["runs"], json!([]));
    assert_eq!(
        server
            .api
            .run_get(&id, "agents/sessions/none/runs")
            .await
            .status,
        404
    );
    let list = server
        .api
        .run_get(&id, "agents/sessions?backend=scripted&status=idle")
        .await
        .expect(200);
    assert_eq!(list["data"]["sessions"].as_array().unwrap().len(), 1);
    let minted = server
        .api
        .run_post(&id, "agents/sessions", json!({}))
        .await
        .expect(201);
    assert!(
        minted["data"]["session"]["id"]
            .as_str()
            .unwrap()
            .starts_with("ses_")
    );
    server.local.stop().await;
}

#[tokio::test]
async fn a_session_with_an_active_run_is_deleted_only_by_force() {
    let server = server().await;
    let id = server.sandbox().await;
    running(&server, &id, "s", "e").await;
    let path = kit::Api::runtime(&id, "agents/sessions/s");
    let refused = server.api.call("DELETE", &path, None).await;
    assert_eq!(refused.fault(), (409, "INVALID_STATE".to_owned()));
    server
        .api
        .call("DELETE", &format!("{path}?force=true"), None)
        .await
        .expect(200);
    assert_eq!(server.api.call("DELETE", &path, None).await.status, 404);
    assert_eq!(server.api.get(&path).await.status, 404);
    server.local.stop().await;
}
