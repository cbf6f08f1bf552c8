//! Running an agent: admission, frames, replay, readers (wire protocol, 7 and 8).

mod kit;

use kit::{Api, Server, assert_contiguous, kinds, server, text_of};
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
async fn a_run_is_admitted_streamed_and_ended_in_order() {
    let server = server().await;
    let id = server.sandbox().await;
    let request = json!({"message": "say hello\nrun echo hi\nwrite a/b yes", "sessionId": "s", "executionId": "e"});
    let frames = server.api.run(&id, request).await;
    assert_contiguous(&frames, 1);
    let kinds = kinds(&frames);
    assert_eq!(kinds[..2], ["execution.started", "status"]);
    assert_eq!(kinds[kinds.len() - 3..], ["result", "status", "done"]);
    let admission = &frames[0].data;
    assert_eq!(
        (&admission["executionId"], &admission["sessionId"]),
        (&json!("e"), &json!("s"))
    );
    assert_eq!(
        (&admission["dispatched"], &admission["alreadyExisted"]),
        (&json!(true), &json!(false))
    );
    let reference = &admission["runControlRef"];
    assert_eq!(reference["environmentId"], json!(id));
    assert_eq!(reference["requestDigest"], admission["requestDigest"]);
    let result = &frames[frames.len() - 3].data;
    assert_eq!(result["finalText"], "hello");
    assert_eq!(result["toolInvocations"].as_array().unwrap().len(), 2);
    assert_eq!(
        frames.last().unwrap().data,
        json!({"status": "completed", "outcome": {"type": "completed"}})
    );
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "a/b"}))
        .await
        .expect(200);
    assert_eq!(read["data"]["content"], "yes");
    let recorded = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(recorded["data"], *result);
    let record = run_record(&server, &id, "s", "e").await;
    assert_eq!(record["status"], "completed");
    assert_eq!(record["eventCount"], frames.len());
    assert_eq!(record["lastEventId"], frames.len().to_string());
    server.local.stop().await;
}

#[tokio::test]
async fn a_failed_turn_ends_with_error_then_done() {
    let server = server().await;
    let id = server.sandbox().await;
    for (script, code) in [
        ("fail on purpose", "AGENT_EXECUTION_FAILED"),
        ("crash", "AGENT_CRASHED"),
    ] {
        let frames = server
            .api
            .run(&id, json!({"message": script, "sessionId": "s"}))
            .await;
        let kinds = kinds(&frames);
        assert_eq!(kinds[kinds.len() - 2..], ["error", "done"], "{script}");
        assert_eq!(frames[frames.len() - 2].data["code"], code);
        assert_eq!(frames.last().unwrap().data["status"], "failed");
        let session = server
            .api
            .run_get(&id, "agents/sessions/s")
            .await
            .expect(200);
        assert_eq!(session["data"]["state"], "failed");
        assert_eq!(session["data"]["failureReason"]["code"], code);
        assert_eq!(session["data"]["activeExecutionId"], Value::Null);
    }
    // The session goes on with another process.
    let frames = server
        .api
        .run(&id, json!({"message": "say again", "sessionId": "s"}))
        .await;
    assert_eq!(text_of(&frames), "again");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_10_a_cursor_without_an_execution_starts_nothing() {
    let server = server().await;
    let id = server.sandbox().await;
    let refused = async |request: Value, status: u16| {
        let answer = server
            .api
            .run_post(&id, "agents/run/stream", request.clone())
            .await;
        assert_eq!(answer.status, status, "{request}: {}", answer.json());
    };
    refused(
        json!({"message": "say x", "lastEventId": "1", "sessionId": "s"}),
        400,
    )
    .await;
    refused(
        json!({"message": "", "executionId": "e", "lastEventId": "1"}),
        404,
    )
    .await;
    refused(
        json!({"message": "say x", "executionId": "e", "lastEventId": "1"}),
        404,
    )
    .await;
    refused(json!({"message": "", "executionId": "e"}), 404).await;
    refused(json!({"message": ""}), 400).await;
    refused(json!({}), 400).await;
    refused(json!({"message": "a", "parts": []}), 400).await;
    refused(json!({"message": "say x", "unknown": 1}), 400).await;
    refused(
        json!({"message": "say x", "backend": {"type": "nobody"}}),
        400,
    )
    .await;
    refused(
        json!({"message": "say x", "interactions": {"permission": true}}),
        501,
    )
    .await;
    refused(json!({"message": "say x", "id": "other"}), 500).await;
    let sessions = server.api.run_get(&id, "agents/sessions").await.expect(200);
    assert_eq!(sessions["data"]["sessions"], json!([]));
    server.local.stop().await;
}

#[tokio::test]
async fn wire_7_9_parts_are_base64() {
    let server = server().await;
    let id = server.sandbox().await;
    for text in ["***", "aGk", "/w==", "aGk=\n"] {
        let parts = json!({"parts": [{"type": "text", "text": text}]});
        let answer = server.api.run_post(&id, "agents/run/stream", parts).await;
        assert_eq!(
            answer.fault(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{text}"
        );
        assert!(answer.json()["error"]["fields"]["parts.0.text"].is_string());
    }
    let frames = server
        .api
        .run(
            &id,
            json!({"parts": [{"type": "text", "text": "c2F5IGhp"}]}),
        )
        .await;
    assert_eq!(text_of(&frames), "hi");
    let image = json!({"parts": [{"type": "image", "path": "x.png"}]});
    assert_eq!(
        server
            .api
            .run_post(&id, "agents/run/stream", image)
            .await
            .status,
        501
    );
    server.local.stop().await;
}

#[tokio::test]
async fn wire_8_1_an_execution_is_dispatched_once() {
    let server = server().await;
    let id = server.sandbox().await;
    let reference = json!({
        "runId": "r", "provider": "p", "environmentId": id, "sessionId": "s", "executionId": "e",
        "requestDigest": format!("sha256:{}", "a".repeat(64)),
    });
    let request = json!({"message": "say x", "sessionId": "s", "executionId": "e", "runControlRef": reference, "detach": true});
    let first = server.api.run(&id, request.clone()).await;
    assert_eq!(first[0].data["runControlRef"], reference);
    assert_eq!(first[0].data["requestDigest"], reference["requestDigest"]);
    let second = server.api.run(&id, request.clone()).await;
    let receipt = &second[0].data;
    assert_eq!(
        (&receipt["alreadyExisted"], &receipt["dispatched"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&receipt["status"], &receipt["runControlRef"]),
        (&json!("completed"), &reference)
    );
    assert_eq!(second[1..], first[1..]);
    let mut other = request.clone();
    other["runControlRef"]["requestDigest"] = format!("sha256:{}", "b".repeat(64)).into();
    let conflict = server.api.run_post(&id, "agents/run/stream", other).await;
    assert_eq!(conflict.fault(), (409, "RUN_CONFLICT".to_owned()));
    let mut disagrees = request;
    disagrees["sessionId"] = json!("t");
    assert_eq!(
        server
            .api
            .run_post(&id, "agents/run/stream", disagrees)
            .await
            .status,
        400
    );
    assert_eq!(turns(&server, &id, "s").await, 1);
    server.local.stop().await;
}

#[tokio::test]
async fn wire_2_5_a_turn_repeated_after_a_restart_gets_the_first_result() {
    let server = server().await;
    let id = server.sandbox().await;
    let turn = |message: &str| json!({"message": message, "sessionId": "s", "turnId": "t"});
    let first = server.api.run(&id, turn("say x")).await;
    let server = server.restart().await;
    let again = server.api.run(&id, turn("say x")).await;
    assert_eq!(again[1..], first[1..]);
    assert_eq!(again[0].data["dispatched"], false);
    let other = server
        .api
        .run_post(&id, "agents/run/stream", turn("say y"))
        .await;
    assert_eq!(other.fault(), (409, "TURN_CONFLICT".to_owned()));
    assert_eq!(turns(&server, &id, "s").await, 1);
    let found = server
        .api
        .run_get(&id, "agents/sessions/s/turns/t")
        .await
        .expect(200);
    assert_eq!(found["data"]["executionId"], first[0].data["executionId"]);
    assert_eq!(found["data"]["status"], "completed");
    assert_eq!(found["data"]["result"]["finalText"], "x");
    assert_eq!(
        server
            .api
            .run_get(&id, "agents/sessions/s/turns/u")
            .await
            .status,
        404
    );
    server.local.stop().await;
}

#[tokio::test]
async fn many_prompts_at_once_run_one_and_refuse_the_rest_as_busy() {
    let server = server().await;
    let id = server.sandbox().await;
    let same = (0..6).map(|_| {
        server.api.run(
            &id,
            json!({"message": "sleep 100\nsay x", "sessionId": "a", "turnId": "t"}),
        )
    });
    let same = futures_util::future::join_all(same).await;
    assert!(same.iter().all(|frames| frames[1..] == same[0][1..]));
    assert_eq!(turns(&server, &id, "a").await, 1);
    let other = (0..12).map(|turn| {
        let request = json!({"message": "sleep 300\nsay x", "sessionId": "b", "turnId": format!("t{turn}"), "detach": true});
        let api = server.api.clone();
        let path = Api::runtime(&id, "agents/run/stream");
        async move { api.post(&path, request).await }
    });
    let other = futures_util::future::join_all(other).await;
    let busy = other.iter().filter(|answer| answer.status == 409);
    let busy: Vec<_> = busy.map(kit::Answer::fault).collect();
    assert!(busy.iter().all(|(_, code)| code == "SESSION_BUSY"));
    assert_eq!(busy.len(), 12 - turns(&server, &id, "b").await);
    server.local.stop().await;
}

#[tokio::test]
async fn a_hundred_clients_at_one_session_run_each_turn_once_or_are_told_that_it_is_busy() {
    let server = server().await;
    let id = server.sandbox().await;
    let prompts = (0..100).map(|client| {
        // Every turn id comes from two clients.
        let turn = format!("t{}", client / 2);
        let request =
            json!({"message": format!("run echo {turn} >> ran"), "sessionId": "s", "turnId": turn});
        let (api, path) = (server.api.clone(), Api::runtime(&id, "agents/run"));
        async move { (turn, api.post(&path, request).await) }
    });
    let answers = futures_util::future::join_all(prompts).await;
    let mut run = Vec::new();
    for (turn, answer) in &answers {
        match answer.status {
            200 => run.push(turn.clone()),
            _ => assert_eq!(answer.fault(), (409, "SESSION_BUSY".to_owned())),
        }
    }
    run.sort();
    run.dedup();
    assert!(!run.is_empty());
    let ran = std::fs::read_to_string(server.workspace(&id).join("ran")).unwrap();
    let mut ran: Vec<String> = ran.lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, run);
    assert_eq!(turns(&server, &id, "s").await, run.len());
    server.local.stop().await;
}

#[tokio::test]
async fn the_callers_context_comes_back_in_the_result() {
    let server = server().await;
    let id = server.sandbox().await;
    let context = json!({"ticket": {"id": 7}, "labels": ["a", "b"]});
    let request =
        json!({"message": "say x", "sessionId": "s", "executionId": "e", "metadata": context});
    let frames = server.api.run(&id, request).await;
    let result = &frames[frames.len() - 3].data;
    assert_eq!(result["metadata"]["context"], context);
    let server = server.restart().await;
    let recorded = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(recorded["data"], *result);
    let large = json!({"message": "say x", "metadata": {"text": "x".repeat(2 << 20)}});
    let refused = server.api.run_post(&id, "agents/run/stream", large).await;
    assert_eq!(refused.fault(), (400, "VALIDATION_ERROR".to_owned()));
    server.local.stop().await;
}

#[tokio::test]
async fn agents_between_turns_are_bounded_and_the_oldest_goes_first() {
    let server = server().await;
    let id = server.sandbox().await;
    let pid = async |session: usize| {
        let request = json!({"message": "run echo $PPID", "sessionId": format!("s{session}")});
        let frames = server.api.run(&id, request).await;
        let result = frames.iter().find(|frame| frame.event == "result").unwrap();
        let text = result.data["toolInvocations"][0]["result"].as_str();
        text.unwrap().trim().parse::<u32>().unwrap()
    };
    let mut pids = Vec::new();
    for session in 0..20 {
        pids.push(pid(session).await);
    }
    let lives = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    kit::until("four are gone", async || {
        !pids[..4].iter().any(lives) && pids[4..].iter().all(lives)
    })
    .await;
    assert_eq!(pid(19).await, pids[19]);
    assert_ne!(pid(0).await, pids[0]);
    server.local.stop().await;
}

#[tokio::test]
async fn a_limit_that_passes_ends_an_attached_run_and_no_detached_one() {
    let server = server().await;
    let id = server.sandbox().await;
    let ask = |session: &str, detach: bool| json!({"message": "sleep 600\nsay end", "sessionId": session, "timeoutMs": 150, "detach": detach});
    let frames = server.api.run(&id, ask("a", false)).await;
    let error = &frames[frames.len() - 2];
    assert_eq!(
        (error.event.as_str(), &error.data["code"]),
        ("error", &json!("TIMEOUT"))
    );
    let frames = server.api.run(&id, ask("b", true)).await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    server.local.stop().await;
}

#[tokio::test]
async fn an_agent_stays_warm_and_a_rotated_secret_gets_a_fresh_one() {
    let server = server().await;
    let id = server.sandbox().await;
    let pid = async |secret: Option<&str>| {
        let mut request = json!({"message": "run echo $PPID-$TOKEN", "sessionId": "s"});
        if let Some(secret) = secret {
            request["backend"] = json!({"type": "scripted", "runtimeSecrets": {"TOKEN": secret}});
        }
        let frames = server.api.run(&id, request).await;
        let result = frames.iter().find(|frame| frame.event == "result").unwrap();
        let text = result.data["toolInvocations"][0]["result"]
            .as_str()
            .unwrap()
            .to_owned();
        let (pid, token) = text.trim().split_once('-').unwrap();
        (pid.to_owned(), token.to_owned())
    };
    let (first, second) = (pid(None).await, pid(None).await);
    assert_eq!(first, second);
    let with_secret = pid(Some("one")).await;
    assert_ne!(with_secret.0, first.0);
    assert_eq!(with_secret.1, "one");
    assert_eq!(pid(Some("one")).await, with_secret);
    let rotated = pid(Some("two")).await;
    assert_ne!(rotated.0, with_secret.0);
    assert_eq!(rotated.1, "two");
    server.local.stop().await;
}

#[tokio::test]
async fn the_blocking_form_answers_when_the_run_is_over() {
    let server = server().await;
    let id = server.sandbox().await;
    let good = server
        .api
        .run_post(&id, "agents/run", json!({"message": "say x"}))
        .await
        .expect(200);
    assert_eq!(good["data"]["finalText"], "x");
    let bad = server
        .api
        .run_post(&id, "agents/run", json!({"message": "fail now"}))
        .await;
    assert_eq!(bad.fault(), (500, "AGENT_EXECUTION_FAILED".to_owned()));
    server.local.stop().await;
}

#[tokio::test]
async fn secrets_of_a_turn_are_not_recorded_and_not_shown() {
    const CANARY: &str = "canary-4711-value";
    let server = server().await;
    let id = server.sandbox().await;
    let secrets = |name: &str| json!({"type": "scripted", "runtimeSecrets": {name: CANARY}});
    let request = json!({"message": "run test -n \"$TOKEN\" && echo there", "sessionId": "s", "backend": secrets("TOKEN")});
    let frames = server.api.run(&id, request).await;
    assert!(format!("{frames:?}").contains("there"));
    assert!(!format!("{frames:?}").contains(CANARY));
    let refused = json!({"message": "say x", "backend": secrets("A=B")});
    let refused = server.api.run_post(&id, "agents/run/stream", refused).await;
    assert_eq!(refused.status, 400);
    let session = server
        .api
        .run_get(&id, "agents/sessions/s")
        .await
        .expect(200);
    assert!(!format!("{refused:?}{session}").contains(CANARY));
    let data = server.local.data_dir().to_owned();
    server.local.stop().await;
    for file in files_below(&data) {
        let content = std::fs::read(&file).unwrap();
        let found = content
            .windows(CANARY.len())
            .any(|bytes| bytes == CANARY.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}

#[tokio::test]
async fn a_turn_replays_when_its_agent_is_not_there_any_more() {
    let become_agent = format!("TANGLE_SCRIPTED_AGENT=1 exec {}", kit::AGENT);
    let server =
        kit::server_with(|builder| builder.acp_agent("mine", "/bin/sh", ["-c", &become_agent]))
            .await;
    let id = server.sandbox().await;
    let turn = |name: &str| json!({"message": "say x", "sessionId": "s", "turnId": name, "backend": {"type": "mine"}});
    let first = server.api.run(&id, turn("t")).await;
    assert_eq!(text_of(&first), "x");
    let server = server.restart().await;
    let again = server.api.run(&id, turn("t")).await;
    assert_eq!(again[1..], first[1..]);
    let other = server
        .api
        .run_post(&id, "agents/run/stream", turn("u"))
        .await;
    assert_eq!(other.fault(), (400, "VALIDATION_ERROR".to_owned()));
    server.local.stop().await;
}
