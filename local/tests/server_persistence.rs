//! What was recorded is also done, and what was cut short is taken up (wire protocol, 2, 4.4 and 20).

mod kit;

use std::path::Path;
use std::time::Duration;

use kit::{Api, Server, builder, server, until};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// The record of a server, as another process could change it.
fn record(server: &Server) -> Connection {
    record_in(server.local.data_dir())
}

fn record_in(data: &Path) -> Connection {
    let record = Connection::open(data.join("state.db")).unwrap();
    record.busy_timeout(Duration::from_secs(10)).unwrap();
    record
}

fn path(id: &str) -> String {
    format!("/v1/sandboxes/{id}")
}

async fn status(api: &Api, id: &str) -> Value {
    api.get(&path(id)).await.json()["status"].clone()
}

#[tokio::test]
async fn a_create_whose_caller_leaves_is_carried_out() {
    let server = server().await;
    for number in 0..60 {
        let mut stream = tokio::net::TcpStream::connect(&server.api.address)
            .await
            .unwrap();
        let body = "{\"agent\":false}";
        let request = format!(
            "POST /v1/sandboxes HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            server.api.key,
            body.len(),
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // The caller leaves at another moment of the request each time.
        tokio::time::sleep(Duration::from_micros(number * 50)).await;
    }
    until("no sandbox is left in the making", async || {
        let list = server.api.get("/v1/sandboxes").await.expect(200);
        let records = list["sandboxes"].as_array().unwrap();
        records.iter().all(|record| record["status"] == "running")
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn a_replayed_create_prepares_a_sandbox_that_nobody_prepares() {
    let server = server().await;
    let request = json!({"idempotencyKey": "k", "agent": false});
    let created = server.api.post("/v1/sandboxes", request.clone()).await;
    let id = created.expect(201)["id"].as_str().unwrap().to_owned();
    server.api.ready(&id).await;
    record(&server)
        .execute(
            "UPDATE sandboxes SET status = 'provisioning', ready = 0",
            [],
        )
        .unwrap();
    let again = server.api.post("/v1/sandboxes", request).await.expect(200);
    assert_eq!(again["id"], id);
    server.api.ready(&id).await;
    server.local.stop().await;
}

#[tokio::test]
async fn a_replayed_create_brings_the_credentials_that_count() {
    let server = server().await;
    let Server { local, folder, .. } = server;
    local.stop().await;
    let start = async || {
        builder(folder.path())
            .opencode("/bin/true")
            .start()
            .await
            .unwrap()
    };
    let create = |key: &str| {
        json!({"idempotencyKey": "k", "backend": {"type": "opencode", "model": {
            "model": "m", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": key
        }}})
    };
    let local = start().await;
    let id = Api::of(&local).sandbox(create("sk-one")).await;
    local.stop().await;
    let local = start().await;
    let api = Api::of(&local);
    let run = async || {
        api.run_post(&id, "agents/run", json!({"message": "x"}))
            .await
            .fault()
    };
    assert_eq!(run().await, (409, "INVALID_STATE".to_owned()));
    let again = api
        .post("/v1/sandboxes", create("sk-two"))
        .await
        .expect(200);
    assert_eq!(again["id"], id);
    assert_eq!(run().await, (500, "AGENT_EXECUTION_FAILED".to_owned()));
    local.stop().await;
}

/// Makes every removal of files fail, for as long as it is there.
struct Stuck {
    sandboxes: std::path::PathBuf,
    aside: std::path::PathBuf,
}

impl Stuck {
    fn of(server: &Server) -> Self {
        let data = server.local.data_dir();
        let (sandboxes, aside) = (data.join("sandboxes"), data.join("aside"));
        std::fs::rename(&sandboxes, &aside).unwrap();
        std::os::unix::fs::symlink("sandboxes", &sandboxes).unwrap();
        Self { sandboxes, aside }
    }

    fn end(self) {
        std::fs::remove_file(&self.sandboxes).unwrap();
        std::fs::rename(&self.aside, &self.sandboxes).unwrap();
    }
}

#[tokio::test]
async fn a_deletion_goes_on_until_no_file_is_left() {
    let server = server().await;
    let id = server.sandbox().await;
    let stuck = Stuck::of(&server);
    let delete = async || server.api.call("DELETE", &path(&id), None).await;
    assert_eq!(delete().await.fault(), (500, "SERVER_ERROR".to_owned()));
    // The timer may hold the lease.
    let again = delete().await.status;
    assert!(matches!(again, 500 | 409), "{again}");
    assert_eq!(status(&server.api, &id).await, "deleted");
    let exec = server
        .api
        .run_post(&id, "terminals/commands", json!({"command": "true"}))
        .await;
    assert_eq!(exec.fault(), (409, "INVALID_STATE".to_owned()));
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"], json!([]));
    stuck.end();
    assert!(server.workspace(&id).exists());
    until("the timer has removed the files", async || {
        server.api.get(&path(&id)).await.status == 404
    })
    .await;
    assert!(!server.workspace(&id).parent().unwrap().exists());
    assert_eq!(delete().await.status, 404);
    server.local.stop().await;
}

#[tokio::test]
async fn an_expired_sandbox_loses_its_files_also_when_that_failed_at_first() {
    let server = server().await;
    let id = server.sandbox().await;
    let stuck = Stuck::of(&server);
    record(&server)
        .execute("UPDATE sandboxes SET expires_at = 1", [])
        .unwrap();
    // Any change of a sandbox wakes the timer.
    server
        .api
        .call(
            "PATCH",
            &path(&id),
            Some(json!({"idleTimeoutSeconds": 600})),
        )
        .await
        .expect(200);
    until("the sandbox expires", async || {
        status(&server.api, &id).await == "expired"
    })
    .await;
    stuck.end();
    until("its files go", async || !server.workspace(&id).exists()).await;
    // As if the process had died before the files were removed.
    let folder = server.workspace(&id);
    std::fs::create_dir_all(&folder).unwrap();
    until("the end of it is recorded", async || {
        let gone = record(&server).execute("UPDATE sandboxes SET files = 1 WHERE files = 0", []);
        gone.unwrap() == 1
    })
    .await;
    let server = server.restart().await;
    until("its files go", async || !folder.exists()).await;
    server.local.stop().await;
}

#[tokio::test]
async fn files_and_commands_are_recorded_as_activity() {
    let server = server().await;
    let id = server.sandbox().await;
    let reset = "UPDATE sandboxes SET last_activity_at = 1";
    let recorded = async || {
        let last = record(&server)
            .query_row("SELECT last_activity_at FROM sandboxes", [], |row| {
                row.get::<_, i64>(0)
            })
            .unwrap();
        last > 1
    };
    for (route, body) in [
        ("files/write", json!({"path": "f", "content": "x"})),
        ("terminals/commands", json!({"command": "true"})),
    ] {
        // What came before is recorded within a second; then there is no more.
        until("the activity before is recorded", recorded).await;
        record(&server).execute(reset, []).unwrap();
        server.api.run_post(&id, route, body).await.expect(200);
        until("this activity is recorded", recorded).await;
    }
    record(&server).execute(reset, []).unwrap();
    let run = json!({"message": "say x", "sessionId": "s"});
    server
        .api
        .run_post(&id, "agents/run", run)
        .await
        .expect(200);
    until("the end of a run is recorded", async || {
        let record = record(&server);
        let last = record.query_row(
            "SELECT last_activity_at >= (SELECT max(completed_at) FROM executions) FROM sandboxes",
            [],
            |row| row.get::<_, bool>(0),
        );
        last.unwrap()
    })
    .await;
    server.local.stop().await;
}

#[tokio::test]
async fn idle_time_counts_from_the_start_of_the_server_at_the_earliest() {
    let server = server().await;
    let expires = server.sandbox().await;
    tokio::time::sleep(Duration::from_millis(2)).await; // so that the order of the two is known
    let idle = server.api.sandbox(json!({"idleTimeoutSeconds": 600})).await;
    let Server { local, folder, .. } = server;
    let data = local.data_dir().to_owned();
    local.stop().await;
    let record = record_in(&data);
    record
        .execute("UPDATE sandboxes SET last_activity_at = 1", [])
        .unwrap();
    record
        .execute(
            "UPDATE sandboxes SET expires_at = 1 WHERE id = ?1",
            [&expires],
        )
        .unwrap();
    drop(record);
    let local = builder(folder.path()).start().await.unwrap();
    let api = Api::of(&local);
    // The timer looks at the newest sandbox first.
    until("the timer has looked at both", async || {
        status(&api, &expires).await == "expired"
    })
    .await;
    assert_eq!(status(&api, &idle).await, "running");
    local.stop().await;
}
