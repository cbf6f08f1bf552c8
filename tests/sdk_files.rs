//! Files of a sandbox as the client sends and reads them (wire protocol, 13).

mod support {
    pub mod service;
}

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::service::{Answer, Clock, Service, data, refusal};
use tangle_sandbox::transport::Code;

const READ: &str = "POST /v1/sandboxes/sbx_1/runtime/files/read";
const WRITE: &str = "POST /v1/sandboxes/sbx_1/runtime/files/write";

fn content(text: &str, encoding: &str, size: usize) -> Answer {
    data(json!({ "content": text, "encoding": encoding, "size": size, "hash": "00" }))
}

#[tokio::test]
async fn bytes_travel_as_base64_and_text_as_it_is() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(READ, content(&STANDARD.encode(b"\x00\xff"), "base64", 2));
    assert_eq!(sandbox.read("a.bin").await.unwrap(), b"\x00\xff");
    service.always(READ, content("héllo", "utf8", 6));
    assert_eq!(sandbox.read_text("a.txt").await.unwrap(), "héllo");
    assert_eq!(sandbox.read("a.txt").await.unwrap(), "héllo".as_bytes());
    let sent: Vec<Value> = service.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(sent[0], json!({ "path": "a.bin", "encoding": "base64" }));
    assert_eq!(sent[1], json!({ "path": "a.txt", "encoding": "utf8" }));
}

#[tokio::test]
async fn content_of_another_size_than_told_is_refused() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for answer in [
        content("abc", "utf8", 4),
        content(&STANDARD.encode("abc"), "base64", 2),
        content("***", "base64", 2),
    ] {
        service.always(READ, answer);
        let error = sandbox.read("a").await.unwrap_err();
        assert_eq!(error.code(), Code::ProtocolError);
        let error = sandbox.read_text("a").await.unwrap_err();
        assert_eq!(error.code(), Code::ProtocolError);
        assert!(!error.to_string().contains("abc"), "{error}");
    }
    service.always(READ, content(&STANDARD.encode(b"\xff"), "base64", 1));
    let error = sandbox.read_text("a").await.unwrap_err();
    assert_eq!(error.to_string(), "read: the content is not UTF-8");
}

#[tokio::test]
async fn wire_13_2_an_absent_file_is_an_error_and_not_empty() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(
        READ,
        refusal(404, "NOT_FOUND", json!({ "resourceType": "file" })),
    );
    assert_eq!(sandbox.read("a").await.unwrap_err().code(), Code::NotFound);
    service.always(READ, refusal(413, "FILE_TOO_LARGE", json!({})));
    assert_eq!(
        sandbox.read("a").await.unwrap_err().code(),
        Code::FileTooLarge
    );
}

#[tokio::test]
async fn the_largest_file_is_read_and_more_is_refused() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    // The worst that JSON makes of 4 MiB: six bytes for each.
    let most = "\u{1}".repeat(4 * 1024 * 1024);
    service.always(READ, content(&most, "utf8", most.len()));
    assert_eq!(sandbox.read_text("a").await.unwrap().len(), most.len());
    let more = "\u{1}".repeat(4 * 1024 * 1024 + 64 * 1024);
    service.always(READ, content(&more, "utf8", more.len()));
    assert_eq!(
        sandbox.read("a").await.unwrap_err().code(),
        Code::ProtocolError
    );
}

#[tokio::test]
async fn a_write_sends_text_or_base64_and_the_mode() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(WRITE, data(json!({ "hash": "00", "size": 2 })));
    sandbox.write("a.txt", "hé").await.unwrap();
    sandbox.write("a.bin", [0xff, 0]).await.unwrap();
    let written = sandbox.write_with_mode("run.sh", "x", 0o755).await.unwrap();
    assert_eq!(written.size.get(), 2);
    let sent: Vec<Value> = service.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(
        sent,
        [
            json!({ "path": "a.txt", "content": "hé", "encoding": "utf8" }),
            json!({ "path": "a.bin", "content": "/wA=", "encoding": "base64" }),
            json!({ "path": "run.sh", "content": "x", "encoding": "utf8", "mode": 493 }),
        ]
    );
}

#[tokio::test]
async fn what_breaks_a_rule_sends_nothing() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let long = "p".repeat(4097);
    for error in [
        sandbox.read("").await.unwrap_err(),
        sandbox.read_text(&long).await.unwrap_err(),
        sandbox.write("", "x").await.unwrap_err(),
        sandbox.write_with_mode("a", "x", 0o1000).await.unwrap_err(),
        sandbox.list("").await.unwrap_err(),
        sandbox.list("a/../b").await.unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::ValidationError, "{error}");
        assert!(!error.to_string().contains(&long));
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn a_write_is_never_repeated_and_a_read_is() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    let step = Duration::from_millis(250);
    for answer in [Answer::Drop, refusal(503, "", json!({}))] {
        service.always(WRITE, answer.clone()).always(READ, answer);
        let write = sandbox.write("a", "x");
        assert!(clock.drive(&service, step, write).await.is_err());
        let read = sandbox.read("a");
        assert!(clock.drive(&service, step, read).await.is_err());
    }
    assert_eq!(service.seen_on(WRITE).len(), 2);
    assert_eq!(service.seen_on(READ).len(), 6);
}

#[tokio::test]
async fn wire_13_8_a_path_of_any_characters_reaches_the_service() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let entry = json!({
        "name": "ü", "path": "/w/ü", "size": 1, "isDir": false, "isFile": true, "isSymlink": false,
        "permissions": 420, "owner": "a", "group": "a",
        "modTime": "2026-01-01T00:00:00Z", "accessTime": "2026-01-01T00:00:00Z",
    });
    for (path, tail) in [
        ("a b/#c/100%/ü", "/a%20b/%23c/100%25/%C3%BC"),
        ("/a b/#c", "//a%20b/%23c"),
        ("a?b=c&d", "/a%3Fb%3Dc%26d"),
        (".", "/"),
        ("./src/./x", "/src/x"),
        ("/", "//"),
        (".hidden", "/.hidden"),
    ] {
        let base = "/v1/sandboxes/sbx_1/runtime/fs/list";
        service.always(
            &format!("GET {base}{tail}"),
            data(json!({ "entries": [entry] })),
        );
        let entries = sandbox.list(path).await.unwrap().entries;
        assert_eq!(entries[0].name, "ü");
        let seen = service.seen().pop().unwrap();
        assert_eq!(seen.line, format!("GET {base}{tail}?all=true&long=true"));
    }
    let path = "a b/#c/100%/ü\n\"";
    service.always(READ, content("x", "utf8", 1));
    sandbox.read(path).await.unwrap();
    assert_eq!(service.seen().pop().unwrap().json()["path"], path);
}
