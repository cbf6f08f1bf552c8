//! A disk that takes no more: what cannot be recorded is refused, and nothing is lost of what was acknowledged.

mod kit;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use kit::{Api, builder};
use serde_json::json;
use tangle_sandbox_local::{Local, StartError};

/// A server whose files cannot grow above `kilobytes`.
fn limited(data: &std::path::Path, kilobytes: usize) -> (std::process::Child, Api) {
    // In units of 512 bytes; the signal is ignored, so that the write fails instead.
    let script = format!(
        "trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$1\"",
        kilobytes * 2
    );
    let mut child = Command::new("/bin/sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_local-server")])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let key = std::fs::read_to_string(data.join("api-key")).unwrap();
    let address = url.trim().trim_start_matches("http://").to_owned();
    (child, Api { address, key })
}

#[tokio::test]
async fn what_cannot_be_recorded_is_refused_and_what_was_acknowledged_stays() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (mut child, api) = limited(&data, 1024);
    let first = api.sandbox(json!({})).await;
    let mut acknowledged = vec![first.clone()];
    let refused = loop {
        let filler = "x".repeat(8 << 10);
        let answer = api
            .post(
                "/v1/sandboxes",
                json!({"metadata": {"filler": filler}, "agent": false}),
            )
            .await;
        if answer.status != 201 {
            break answer;
        }
        acknowledged.push(answer.json()["id"].as_str().unwrap().to_owned());
        assert!(acknowledged.len() < 1000, "the limit never showed");
    };
    let (status, code) = refused.fault();
    // A file that may not grow is not a full disk to SQLite.
    assert!(
        status == 503 && code.starts_with("STORAGE_"),
        "{status} {code}"
    );
    assert!(refused.header("retry-after").is_none());
    let big = json!({"path": "big", "content": "x".repeat(2 << 20)});
    let write = api.run_post(&first, "files/write", big).await;
    assert_eq!(write.fault(), (503, "STORAGE_FULL".to_owned()));
    let exists = api.run_get(&first, "fs/exists/big").await.expect(200);
    assert_eq!(exists["data"]["exists"], false);
    assert_eq!(api.raw("GET", "/health", &[], b"").await.status, 200);
    child.kill().unwrap();
    child.wait().unwrap();

    let local = builder(folder.path()).start().await.unwrap();
    let api = Api::of(&local);
    let list = api.get("/v1/sandboxes?limit=1000").await.expect(200);
    let kept: Vec<&str> = list["sandboxes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["id"].as_str().unwrap())
        .collect();
    assert!(acknowledged.iter().all(|id| kept.contains(&id.as_str())));
    local.stop().await;
}

#[tokio::test]
async fn a_run_whose_events_cannot_be_recorded_is_ended_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (mut child, api) = limited(&data, 2048);
    let id = api.sandbox(json!({})).await;
    let request =
        json!({"message": "flood 100000\nsleep 60000", "sessionId": "s", "executionId": "e"});
    let frames = api.run(&id, request).await;
    kit::assert_contiguous(&frames, 1);
    assert!(
        frames
            .iter()
            .all(|frame| frame.event != "done" || frame.data["status"] == "failed")
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let local = builder(folder.path()).start().await.unwrap();
    let api = Api::of(&local);
    let rejoin = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "0"});
    let all = api.run(&id, rejoin).await;
    assert_eq!(all[..frames.len()], frames);
    assert_eq!(all.last().unwrap().data["status"], "failed");
    local.stop().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_a_typed_error() {
    let refused = Local::builder().data_dir("/proc/tangle").start().await;
    assert!(
        matches!(refused, Err(StartError::DataDir(_))),
        "{refused:?}"
    );
}
