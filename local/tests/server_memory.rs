//! The memory of a server whose reader stalls (wire protocol, 7.6).
#![cfg(target_os = "linux")]

mod kit;

use std::time::Duration;

use kit::process::Process;
use kit::record;
use serde_json::json;

/// 3 200 frames of 64 KiB: 200 MiB.
const FRAMES: usize = 3200;

#[tokio::test]
async fn wire_7_14_what_waits_for_a_stalled_reader_waits_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Process::start(&data);
    let id = server.api.sandbox(json!({})).await;
    let request = json!({"message": "say x", "sessionId": "s", "executionId": "e"});
    let begun = server.api.run(&id, request).await.len();
    record(&data)
        .execute_batch(&format!(
            "BEGIN IMMEDIATE;
             WITH RECURSIVE n(n) AS (SELECT {begun} + 1 UNION ALL SELECT n + 1 FROM n WHERE n < {begun} + {FRAMES})
             INSERT INTO frames (execution, number, kind, data)
             SELECT pk, n, 'raw', json_object('x', hex(zeroblob(32768))) FROM executions, n;
             UPDATE executions SET newest = {begun} + {FRAMES};
             COMMIT;"
        ))
        .unwrap();
    let before = server.peak();
    let rejoin = json!({"message": "", "sessionId": "s", "executionId": "e", "lastEventId": "0"});
    let mut stream = server.api.stream(&id, rejoin).await;
    stream.next().await.unwrap();
    // The stall is what is tested: nothing is waited for.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut read = 1;
    while let Some(frame) = stream.next().await {
        read += 1;
        assert_eq!(frame.id, read.to_string());
    }
    assert_eq!(read, begun + FRAMES);
    let grown = server.peak() - before;
    assert!(grown < 24 << 20, "grew by {grown} bytes");
}
