//! What the server holds for a reader that does not read (wire protocol, 7.6 and 7.14).

mod support;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use support::{Served, until};
use tangle_sandbox::sandbox::{Client, NewSandbox, Running, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Events of one run: about 8 MB on the wire.
const EVENTS: usize = 50_000;

/// How much more the server may hold than before: half of what the reader has not read.
const BOUND: u64 = 4 << 20;

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

/// Reads the rest of the stream: nothing of it is lost.
async fn read_whole(mut socket: TcpStream) {
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        assert!(socket.read_buf(&mut rest).await.unwrap() > 0);
    }
    let text = String::from_utf8(rest).unwrap();
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<usize> = ids.map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() > EVENTS && ids.iter().copied().eq(1..=ids.len()));
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
        // The first one shows what such a run costs anyway.
        let first = stalled(&served, folder, sandbox.id(), "first").await;
        completed(&client, &sandbox, "first").await;
        read_whole(first).await;
        let before = served.resident();
        let second = stalled(&served, folder, sandbox.id(), "second").await;
        completed(&client, &sandbox, "second").await;
        let grown = served.resident().saturating_sub(before);
        let (kept, more) = (before >> 10, grown >> 10);
        println!("{kept} KiB, {more} KiB more for a stalled reader");
        assert!(grown < BOUND, "{grown} bytes more");
        read_whole(second).await;
        assert_eq!(served.terminate().0.code(), Some(0));
    };
    tokio::time::timeout(Duration::from_secs(150), whole)
        .await
        .unwrap();
}
