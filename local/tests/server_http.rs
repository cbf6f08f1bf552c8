//! Planes, credentials, limits, envelopes (wire protocol, 1, 3, 20).

mod kit;

use std::time::Duration;

use kit::{Api, builder, server, server_with};
use serde_json::json;
use tangle_sandbox_local::{Local, StartError};

#[tokio::test]
async fn wire_1_5_a_runtime_call_needs_the_right_bearer() {
    let server = server().await;
    let path = Api::runtime("sbx_any", "capabilities");
    let none = server.api.raw("GET", &path, &[], b"").await;
    assert_eq!(none.fault(), (401, "UNAUTHORIZED".to_owned()));
    assert_eq!(none.json()["success"], false);
    for wrong in ["Bearer wrong", "Bearer ", "Basic abc", "wrong"] {
        let answer = server
            .api
            .raw("GET", &path, &[("authorization", wrong)], b"")
            .await;
        assert_eq!(answer.fault(), (403, "FORBIDDEN".to_owned()), "{wrong}");
        let control = server
            .api
            .raw("GET", "/v1/sandboxes", &[("authorization", wrong)], b"")
            .await;
        assert_eq!(control.fault(), (401, "AUTH_ERROR".to_owned()), "{wrong}");
        assert!(control.json()["error"].is_string());
    }
    let health = server.api.raw("GET", "/health", &[], b"").await;
    assert_eq!(health.expect(200)["status"], "ok");
    server.local.stop().await;
}

#[tokio::test]
async fn wire_1_6_a_create_above_the_limit_allocates_nothing() {
    let server = server().await;
    let filler = "x".repeat((1 << 20) + 1 - r#"{"name":""}"#.len());
    let body = json!({ "name": filler }).to_string();
    assert_eq!(body.len(), (1 << 20) + 1);
    let answer = server
        .api
        .post("/v1/sandboxes", json!({ "name": filler }))
        .await;
    assert_eq!(answer.fault(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"], json!([]));
    server.local.stop().await;
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_is_not_stored() {
    let server = server().await;
    for path in ["/health", "/v1/sandboxes", "/v1/nothing", "/nothing"] {
        let answer = server.api.get(path).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert!(
            answer
                .header("x-request-id")
                .is_some_and(|id| id.len() == 30),
            "{path}"
        );
    }
    server.local.stop().await;
}

#[tokio::test]
async fn wire_20_4_a_wrong_method_is_405_and_an_unknown_path_is_404_of_a_route() {
    let server = server().await;
    let answer = server.api.call("PUT", "/v1/sandboxes", None).await;
    assert_eq!(answer.status, 405);
    let allow = answer.header("allow").unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    for path in ["/v1/unknown", "/v1/sandboxes/x/runtime/unknown", "/unknown"] {
        let answer = server.api.get(path).await;
        assert_eq!(answer.fault(), (404, "NOT_FOUND".to_owned()), "{path}");
        let body = answer.json();
        let kind = body["resourceType"]
            .as_str()
            .or(body["error"]["resourceType"].as_str());
        assert_eq!(kind, Some("route"), "{path}");
    }
    let lacking = server.api.get("/v1/router-models").await;
    assert_eq!(lacking.fault(), (501, "NOT_SUPPORTED".to_owned()));
    server.local.stop().await;
}

#[tokio::test]
async fn bad_documents_are_refused_with_their_fields() {
    let server = server().await;
    for (body, field) in [
        (r#"{"nmae": "x", "name": "y"}"#, "nmae"),
        (r#"{"name": 7}"#, "name"),
        (r#"{"name": "a", "name": "b"}"#, "name"),
        (
            r#"{"git": {"url": "https://h/r", "depth": 0}}"#,
            "git.depth",
        ),
        (r#"{"backend": {"type": "nobody"}}"#, "backend.type"),
        ("[]", "body"),
        ("", "body"),
        ("{", "body"),
    ] {
        let bearer = format!("Bearer {}", server.api.key);
        let headers = [("authorization", bearer.as_str())];
        let answer = server
            .api
            .raw("POST", "/v1/sandboxes", &headers, body.as_bytes())
            .await;
        assert_eq!(
            answer.fault(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{body}"
        );
        let fields = answer.json()["fields"].clone();
        assert!(fields.get(field).is_some(), "{body}: {fields}");
    }
    let list = server.api.get("/v1/sandboxes").await.expect(200);
    assert_eq!(list["sandboxes"], json!([]));
    server.local.stop().await;
}

#[tokio::test]
async fn wire_20_2_a_second_server_on_one_directory_refuses_to_start() {
    let server = server().await;
    let second = builder(server.folder.path()).start().await;
    assert!(matches!(second, Err(StartError::InUse)), "{second:?}");
    let server = server.restart().await;
    assert_eq!(server.api.get("/v1/sandboxes").await.status, 200);
    server.local.stop().await;
}

#[tokio::test]
async fn folders_are_private_also_when_they_were_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let open = || std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&data, open()).unwrap();
    let local = builder(folder.path()).start().await.unwrap();
    let api = Api::of(&local);
    let id = api.sandbox(json!({})).await;
    let own = data.join("sandboxes").join(&id);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&own)), (0o700, 0o700));
    std::fs::set_permissions(&own, open()).unwrap();
    for change in ["stop", "resume"] {
        let path = format!("/v1/sandboxes/{id}/{change}");
        api.call("POST", &path, None).await.expect(200);
    }
    assert_eq!(mode(&own), 0o700);
    local.stop().await;
}

#[tokio::test]
async fn a_server_on_every_address_tells_no_address_of_its_own() {
    let address = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let server = server_with(|builder| builder.address(address)).await;
    let id = server.sandbox().await;
    let record = server
        .api
        .get(&format!("/v1/sandboxes/{id}"))
        .await
        .expect(200);
    assert_eq!(record["connection"], json!({}));
    server.local.stop().await;
}

#[tokio::test]
async fn the_generated_key_is_private_and_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = server().await;
    let (key, dir) = (server.api.key.clone(), server.local.data_dir().to_owned());
    let mode = |name: &str| dir.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("api-key"), mode("state.db")), (0o600, 0o600));
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!format!("{:?}", server.local).contains(&key));
    let server = server.restart().await;
    assert_eq!(server.api.key, key);
    server.local.stop().await;
}

#[tokio::test]
async fn an_empty_key_and_an_unusable_directory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = builder(folder.path()).api_key("".into()).start().await;
    assert!(matches!(empty, Err(StartError::BadKey)), "{empty:?}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let blocked = Local::builder().data_dir(file.join("data")).start().await;
    assert!(
        matches!(blocked, Err(StartError::DataDir(_))),
        "{blocked:?}"
    );
    let none = Local::builder().start().await;
    assert!(matches!(none, Err(StartError::NoDataDir)), "{none:?}");
}

#[tokio::test]
async fn a_stalled_reader_does_not_keep_the_deployment() {
    let server = server_with(|builder| builder.keep_alive(Duration::from_millis(50))).await;
    let id = server.sandbox().await;
    let stream = server
        .api
        .stream(
            &id,
            json!({"message": "flood 20000\nsleep 60000", "detach": true}),
        )
        .await;
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.local.stop()).await;
    assert!(stopped.is_ok(), "the deployment did not end");
    drop(stream);
}

#[tokio::test]
async fn many_requests_go_over_one_connection() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = server().await;
    let mut stream = tokio::net::TcpStream::connect(&server.api.address)
        .await
        .unwrap();
    for _ in 0..3 {
        let request = format!(
            "GET /health HTTP/1.1\r\nhost: {}\r\n\r\n",
            server.api.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
    }
    server.local.stop().await;
}

#[tokio::test]
async fn every_body_has_a_limit_that_can_be_lowered() {
    let server = server_with(|builder| builder.body_limit(100).run_body_limit(200)).await;
    let id = server.sandbox().await;
    let long = |size: usize| "x".repeat(size);
    for (path, body) in [
        (
            "terminals/commands",
            json!({"command": format!("touch made; {}", long(100))}),
        ),
        ("files/read", json!({"path": long(100)})),
        ("files/write", json!({"path": "made", "content": long(200)})),
        ("agents/run/stream", json!({"message": long(200)})),
        ("agents/sessions", json!({"title": long(200)})),
    ] {
        let answer = server.api.run_post(&id, path, body).await;
        assert_eq!(
            answer.fault(),
            (413, "PAYLOAD_TOO_LARGE".to_owned()),
            "{path}"
        );
    }
    assert!(!server.workspace(&id).join("made").exists());
    let sessions = server.api.run_get(&id, "agents/sessions").await.expect(200);
    assert_eq!(sessions["data"]["sessions"], json!([]));
    server.local.stop().await;
}

#[tokio::test]
async fn a_dropped_deployment_ends_too() {
    let server = server().await;
    let id = server.sandbox().await;
    let mut stream = server
        .api
        .stream(&id, json!({"message": "sleep 60000", "detach": true}))
        .await;
    stream.until("execution.started").await;
    drop(server.local);
    let folder = server.folder;
    let begun = std::time::Instant::now();
    let again = loop {
        match builder(folder.path()).start().await {
            Ok(local) => break local,
            Err(StartError::InUse) if begun.elapsed() < kit::PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert!(
        tokio::net::TcpStream::connect(&server.api.address)
            .await
            .is_err()
    );
    again.stop().await;
}
