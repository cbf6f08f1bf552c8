//! The real OpenCode through the whole server: a prompt, a command, a file, a stream that is cut and rejoined.
//!
//! It is looked for as the deployment does: `TANGLE_OPENCODE_BIN`, then `PATH`. Where it is missing the test says so in
//! one line and returns, unless `TANGLE_REQUIRE_ALL` is `1`.

mod kit;
#[path = "support/model.rs"]
mod model;

use kit::{assert_contiguous, server};
use model::{KEY, Model};
use serde_json::json;

#[tokio::test]
async fn open_code_works_in_a_sandbox_and_its_stream_survives_a_cut() {
    let server = server().await;
    let catalogue = server.api.get("/v1/backends").await.expect(200);
    if !catalogue.to_string().contains(r#""type":"opencode""#) {
        assert!(
            std::env::var_os("TANGLE_REQUIRE_ALL").is_none_or(|value| value != "1"),
            "opencode is not installed"
        );
        println!("skipped: opencode is not installed (set TANGLE_OPENCODE_BIN)");
        return server.local.stop().await;
    }
    let model = Model::start().await;
    let backend = json!({"type": "opencode", "model": {
        "provider": "openai-compat", "model": "fake", "baseUrl": model.base_url, "apiKey": KEY,
    }});
    let id = server.api.sandbox(json!({"backend": backend})).await;
    let file = server.workspace(&id).join("made.txt");
    let script = format!(
        "please work\n> say I will work\n> tool bash {}\n> tool write {}\n> say all done",
        json!({"command": "env > shell.txt", "description": "look around"}),
        json!({"filePath": file, "content": "made by a tool\n"}),
    );
    let request = json!({"message": script, "sessionId": "s", "executionId": "e"});
    let mut stream = server.api.stream(&id, request).await;
    let mut frames = stream.until("message.part.updated").await;
    drop(stream);
    let cursor = frames.last().unwrap().id.clone();
    let rejoin =
        json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": cursor});
    frames.extend(server.api.run(&id, rejoin).await);
    assert_contiguous(&frames, 1);
    assert_eq!(
        frames.last().unwrap().data["status"],
        "completed",
        "{frames:#?}"
    );
    let read = server
        .api
        .run_post(&id, "files/read", json!({"path": "made.txt"}))
        .await
        .expect(200);
    assert_eq!(read["data"]["content"], "made by a tool\n");
    let environment = std::fs::read_to_string(server.workspace(&id).join("shell.txt")).unwrap();
    assert!(!environment.contains(KEY) && !format!("{frames:?}").contains(KEY));
    let result = server
        .api
        .run_get(&id, "agents/sessions/s/runs/e/result")
        .await
        .expect(200);
    assert_eq!(
        result["data"]["finalText"].as_str().map(str::trim),
        Some("all done")
    );
    assert!(
        result["data"]["tokenUsage"]["inputTokens"]
            .as_u64()
            .is_some_and(|tokens| tokens >= 300),
        "{result}"
    );
    let calls = model.calls();

    // After a restart the session goes on, once the credentials were named again.
    let server = server.restart().await;
    let forgot = server
        .api
        .run_post(
            &id,
            "agents/run/stream",
            json!({"message": "> say x", "sessionId": "s"}),
        )
        .await;
    assert_eq!(forgot.fault(), (409, "INVALID_STATE".to_owned()));
    let again = json!({"message": "> say still here", "sessionId": "s", "backend": backend});
    let frames = server.api.run(&id, again).await;
    let end = frames
        .iter()
        .find(|frame| frame.event == "result")
        .expect("no result");
    assert_eq!(
        end.data["finalText"].as_str().map(str::trim),
        Some("still here")
    );
    assert!(end.data["metadata"].get("contextKept").is_none(), "{end:?}");
    assert_eq!(model.calls(), calls + 1);
    let mut recorded = std::fs::read(server.local.data_dir().join("state.db")).unwrap();
    recorded.extend(std::fs::read(server.local.data_dir().join("state.db-wal")).unwrap());
    assert!(
        !recorded
            .windows(KEY.len())
            .any(|bytes| bytes == KEY.as_bytes()),
        "the key was recorded"
    );
    server.local.stop().await;
}
