//! What the server holds for a reader that does not read (wire protocol, 7.6 and 7.14).

mod support;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use support::{Served, until};
use tangle_sandbox::sandbox::{Client, NewSandbox, Running, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Events of one run: about 5 MB on the wire.
const EVENTS: usize = 30_000;

/// How much more the server may hold than before: half of what two readers have not read.
const BOUND: u64 = 5 << 20;

/// Starts a run over a bare connection and reads nothing but the head of its answer.
async fn stalled(served: &Served, folder: &Path, sandbox: &str, name: &str) -> TcpStream {
    let key = std::fs::read_to_string(folder.join("api-key")).unwrap();
    let address = served.base_url.trim_start_matches("http://");
    let script = format!("flood {EVENTS}");
    let body = format!(r#"{{"message":"{script}","sessionId":"{name}","executionId":"{name}"}}"#);
    let length = body.len();
    let request = format!(
        "POST /v1/sandboxes/{sandbox}/runtime/agents/run/stream HTTP/1.1\r\nhost: {address}\r\n\
         authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    // The kernel holds little, so that the rest waits at the server.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let mut socket = socket.connect(address.parse().unwrap()).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    socket.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    socket
}

async fn completed(client: &Client, sandbox: &Sandbox<Running>, name: &str) {
    let path = format!(
        "/v1/sandboxes/{}/runtime/agents/sessions/{name}/runs/{name}",
        sandbox.id()
    );
    until("the end of the run", async || {
        let answer = client.fetch("GET", &path, &[], None).await.unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        (body["data"]["status"] == "completed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn wire_7_14_the_server_does_not_grow_with_what_waits_for_a_stalled_reader() {
    let whole = async {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let served = Served::start(folder);
        let client = served.client(folder);
        let made = client.create(NewSandbox::new().backend("scripted"));
        let sandbox = made.await.unwrap().wait_ready().await.unwrap();
        // A reader that keeps up shows what such a run costs anyway.
        let result = sandbox.prompt(format!("flood {EVENTS}")).await.unwrap();
        assert!(result.success(), "{result:?}");
        let before = served.resident();
        let mut sockets = Vec::new();
        for name in ["first", "second"] {
            sockets.push(stalled(&served, folder, sandbox.id(), name).await);
            completed(&client, &sandbox, name).await;
        }
        let after = served.resident();
        let (before, grown) = (before >> 10, after.saturating_sub(before));
        println!(
            "{before} KiB before, {} KiB more for two stalled readers",
            grown >> 10
        );
        assert!(grown < BOUND, "{grown} bytes more");

        // They lost nothing.
        for mut socket in sockets {
            let mut rest = Vec::new();
            while !rest.ends_with(b"0\r\n\r\n") {
                assert!(socket.read_buf(&mut rest).await.unwrap() > 0);
            }
            let text = String::from_utf8(rest).unwrap();
            let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
            let ids: Vec<usize> = ids.map(|id| id.parse().unwrap()).collect();
            assert!(ids.len() > EVENTS && ids.iter().copied().eq(1..=ids.len()));
        }
        assert_eq!(served.terminate().0.code(), Some(0));
    };
    tokio::time::timeout(Duration::from_secs(150), whole)
        .await
        .unwrap();
}
