//! What the transport sends and what it refuses to send (wire protocol, 1).

mod scripted;

use std::time::Duration;

use futures_util::StreamExt;
use scripted::{EVENTS, Reply, Server, answer, answer_with, events};
use serde_json::{Value, json};
use tangle_sandbox::contract::routes;
use tangle_sandbox::transport::{BuildError, Call, Code, Error, Refusal, Transport};

const KEY: &str = "canary-4f81c2/+x";

fn transport(server: &Server) -> Transport {
    Transport::connect(&server.base, KEY).unwrap()
}

fn get() -> Call {
    Call::new(&routes::SANDBOXES_GET, &[("id", "sb-1")])
}

fn run_stream() -> Call {
    Call::new(&routes::AGENTS_RUN_STREAM, &[("id", "sb-1")]).body(&json!({"message": "hi"}))
}

#[tokio::test]
async fn wire_1_1_a_trailing_slash_changes_no_url() {
    let server = Server::start(|_, _| answer(200, "{}")).await;
    for end in ["", "/", "///"] {
        let base = format!("{}{end}", server.base);
        let transport = Transport::connect(base, KEY).unwrap();
        let _: Value = transport.json(get()).await.unwrap();
    }
    for seen in server.seen() {
        assert_eq!(seen.line(), "GET /v1/sandboxes/sb-1 HTTP/1.1");
    }
}

#[test]
fn wire_1_2_a_bad_base_url_or_key_fails_before_any_request() {
    type IsExpected = fn(&BuildError) -> bool;
    let cases: [(&str, IsExpected); 16] = [
        ("", |e| matches!(e, BuildError::BaseEmpty)),
        ("  ", |e| matches!(e, BuildError::BaseEmpty)),
        ("ftp://x", |e| matches!(e, BuildError::BaseScheme)),
        ("sandbox.example", |e| matches!(e, BuildError::BaseScheme)),
        ("localhost:80", |e| matches!(e, BuildError::BaseScheme)),
        ("/v1", |e| matches!(e, BuildError::BaseScheme)),
        ("file:///etc", |e| matches!(e, BuildError::BaseScheme)),
        ("https://user:pw@h", |e| {
            matches!(e, BuildError::BaseUserInfo)
        }),
        ("https://user@h", |e| matches!(e, BuildError::BaseUserInfo)),
        ("https://@h", |e| matches!(e, BuildError::BaseUserInfo)),
        ("https:\\\\user@h", |e| {
            matches!(e, BuildError::BaseUserInfo)
        }),
        ("https://h?key=1", |e| matches!(e, BuildError::BaseQuery)),
        ("https://h/?", |e| matches!(e, BuildError::BaseQuery)),
        ("https://h#x", |e| matches!(e, BuildError::BaseFragment)),
        ("https://", |e| matches!(e, BuildError::BaseMalformed)),
        ("https://h:99999", |e| {
            matches!(e, BuildError::BaseMalformed)
        }),
    ];
    for (base, is_expected) in cases {
        let error = Transport::connect(base, KEY).unwrap_err();
        assert!(is_expected(&error), "{base:?}: {error:?}");
        let shown = format!("{error} {error:?} {:?}", Transport::builder(base, KEY));
        assert!(!shown.contains("pw"), "{shown}");
    }
    for key in ["", "   "] {
        let error = Transport::connect("https://h", key).unwrap_err();
        assert!(matches!(error, BuildError::KeyEmpty), "{key:?}: {error:?}");
    }
    for key in ["a\nb", "a b", "\u{e9}", "a\0"] {
        let error = Transport::connect("https://h", key).unwrap_err();
        assert!(
            matches!(error, BuildError::KeyCharacters),
            "{key:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn wire_1_3_an_id_reaches_the_server_as_one_segment() {
    let server = Server::start(|_, _| answer(200, "{}")).await;
    let params = [("id", "sb-1"), ("session_id", "a/b c?d")];
    let call = Call::new(&routes::SESSIONS_GET, &params).query("a b", "c&d=é");
    let _: Value = transport(&server).json(call).await.unwrap();
    assert_eq!(
        server.seen()[0].line(),
        "GET /v1/sandboxes/sb-1/runtime/agents/sessions/a%2Fb%20c%3Fd?a%20b=c%26d%3D%C3%A9 HTTP/1.1"
    );
    let empty = Call::new(&routes::SANDBOXES_DELETE, &[("id", "")]);
    let error = transport(&server).empty(empty).await.unwrap_err();
    assert!(
        matches!(error, Error::Refused(Refusal::Segment(_))),
        "{error:?}"
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn wire_1_4_every_request_carries_the_bearer_and_nothing_shows_it() {
    let server = Server::start(|seen, _| match seen.line() {
        line if line.contains("/events") || line.contains("/run/stream") => events("data: {}\n\n"),
        line if line.starts_with("POST") => answer(400, &format!("{{\"message\":\"{KEY}\"}}")),
        _ => answer(200, "{}"),
    })
    .await;
    let transport = transport(&server);
    let session = [("id", "sb-1"), ("session_id", "s")];
    let mut shown = format!("{transport:?} {:?}", Transport::builder(&server.base, KEY));
    let _: Value = transport.json(get()).await.unwrap();
    let opened = transport
        .stream(Call::new(&routes::SESSIONS_EVENTS, &session))
        .await;
    shown += &format!("{opened:?}");
    transport.stream(run_stream()).await.unwrap();
    shown += &format!(
        "{:?}",
        transport.fetch("GET", "/x", &[], None).await.unwrap()
    );
    let error = transport
        .empty(Call::new(&routes::SANDBOXES_STOP, &[("id", "s")]))
        .await
        .unwrap_err();
    shown += &format!("{error:?} {error} {:?}", error.failure());
    assert!(!shown.contains("canary"), "{shown}");
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    for request in seen {
        let bearer = format!("Bearer {KEY}");
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    }
}

#[tokio::test]
async fn the_headers_are_those_of_the_protocol() {
    let server = Server::start(|seen, _| match seen.line().contains("stream") {
        true => events(""),
        false => answer(200, "{}"),
    })
    .await;
    let transport = transport(&server);
    let _: Value = transport.json(get()).await.unwrap();
    transport.stream(run_stream()).await.unwrap();
    let seen = server.seen();
    let agent = concat!("tangle-sandbox-rust/", env!("CARGO_PKG_VERSION"));
    assert_eq!(seen[0].header("user-agent"), Some(agent));
    assert_eq!(seen[0].header("content-type"), None);
    assert_eq!(seen[1].header("content-type"), Some("application/json"));
    assert_eq!(seen[1].header("accept"), Some("text/event-stream"));
    assert_eq!(seen[1].body, br#"{"message":"hi"}"#);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_never_carries_the_bearer_elsewhere() {
    let elsewhere = Server::start(|_, _| answer(200, "{}")).await;
    let location = format!("location: {}/x\r\n", elsewhere.base);
    let server = Server::start(move |_, _| answer_with(302, &location, "")).await;
    let transport = transport(&server);
    let error = transport.json::<Value>(get()).await.unwrap_err();
    assert_eq!(
        (error.status(), error.code()),
        (Some(302), Code::UnknownError)
    );
    let raw = transport.fetch("GET", "/x", &[], None).await.unwrap();
    assert_eq!(raw.status, 302);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn wire_19_1_fetch_gives_any_answer_as_a_value() {
    let server = Server::start(|seen, _| match seen.line().contains("missing") {
        true => answer_with(404, "x-a: b\r\n", "<html>"),
        false => answer(500, "\0"),
    })
    .await;
    let transport = transport(&server);
    let raw = transport.fetch("GET", "/missing?q=1", &[("x-own", "1")], None);
    let raw = raw.await.unwrap();
    assert_eq!((raw.status, &raw.body[..]), (404, &b"<html>"[..]));
    assert_eq!(raw.header("x-a"), Some("b"));
    let sent = transport.fetch(
        "PURGE",
        "/y",
        &[("Authorization", "Bearer other")],
        Some("{}".into()),
    );
    assert_eq!(sent.await.unwrap().status, 500);
    let seen = server.seen();
    assert_eq!(seen[0].line(), "GET /missing?q=1 HTTP/1.1");
    assert_eq!(seen[0].header("x-own"), Some("1"));
    assert_eq!(seen[1].line(), "PURGE /y HTTP/1.1");
    assert_eq!(
        seen[1].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(seen[1].header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn wire_19_2_fetch_refuses_what_is_not_below_the_base() {
    let server = Server::start(|_, _| answer(200, "{}")).await;
    let elsewhere = Server::start(|_, _| answer(200, "{}")).await;
    let host = elsewhere.base.trim_start_matches("http:").to_owned();
    let base = format!("{}/deployment", server.base);
    let transport = Transport::connect(base, KEY).unwrap();
    for (path, expected) in [
        ("https://elsewhere/", Refusal::PathNotAbsolute),
        (elsewhere.base.as_str(), Refusal::PathNotAbsolute),
        (server.base.as_str(), Refusal::PathNotAbsolute),
        ("v1/x", Refusal::PathNotAbsolute),
        ("", Refusal::PathNotAbsolute),
        ("@elsewhere/", Refusal::PathNotAbsolute),
        (host.as_str(), Refusal::ForeignOrigin),
        ("/\\elsewhere/x", Refusal::ForeignOrigin),
        ("/../other", Refusal::ForeignOrigin),
        ("/%2e%2e/other", Refusal::ForeignOrigin),
    ] {
        let error = transport.fetch("GET", path, &[], None).await.unwrap_err();
        let Error::Refused(refusal) = error else {
            panic!("{path}: {error:?}");
        };
        assert_eq!(refusal, expected, "{path}");
    }
    let bad_method = transport.fetch("G T", "/x", &[], None).await;
    assert!(matches!(bad_method, Err(Error::Refused(Refusal::Method))));
    let bad_header = transport.fetch("GET", "/x", &[("a", "b\nc")], None).await;
    assert!(matches!(bad_header, Err(Error::Refused(Refusal::Header))));
    assert!(server.seen().is_empty() && elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_success_is_read_with_and_without_its_envelope() {
    let server = Server::start(|_, number| {
        let bodies = [
            r#"{"a":1}"#,
            r#" {"success":true,"data":{"a":1}}"#,
            r#"{"data":{"a":1},"success":true,"more":[]}"#,
        ];
        answer(200, bodies[number])
    })
    .await;
    let transport = transport(&server);
    for _ in 0..3 {
        let value: Value = transport.json(get()).await.unwrap();
        assert_eq!(value, json!({"a": 1}));
    }
}

#[tokio::test]
async fn the_special_key_belongs_to_its_family() {
    let server =
        Server::start(|_, _| answer(200, r#"{"success":true,"result":{"exitCode":0}}"#)).await;
    let transport = transport(&server);
    let exec = Call::new(&routes::EXEC, &[("id", "s")]).body(&json!({"command": "true"}));
    let value: Value = transport.json(exec).await.unwrap();
    assert_eq!(value, json!({"exitCode": 0}));
    let value: Value = transport.json(get()).await.unwrap();
    assert_eq!(value["result"], json!({"exitCode": 0}));
}

#[tokio::test]
async fn an_empty_or_null_success_is_told_apart_from_a_broken_one() {
    let server = Server::start(|_, number| match number {
        0 => answer(204, ""),
        1 => answer(200, ""),
        2 => answer(200, r#"{"success":true,"data":null}"#),
        _ => answer(200, "<html>"),
    })
    .await;
    let transport = transport(&server);
    assert_eq!(transport.json_or_empty::<Value>(get()).await.unwrap(), None);
    assert_eq!(transport.json_or_empty::<Value>(get()).await.unwrap(), None);
    let null: Option<u8> = transport.json(get()).await.unwrap();
    assert_eq!(null, None);
    let error = transport.json::<Value>(get()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    assert_eq!(error.code(), Code::ProtocolError);
}

#[tokio::test]
async fn an_answer_above_the_limit_is_refused() {
    let server = Server::start(|_, number| match number {
        0 => answer(200, "[1,2,3]"),
        1 => answer(200, "[1,2,3,4,5,6]"),
        _ => Reply::Pieces(
            (0..4)
                .map(|_| {
                    (
                        Duration::from_millis(5),
                        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
                    )
                })
                .collect(),
        ),
    })
    .await;
    let transport = Transport::builder(&server.base, KEY)
        .answer_limit(10)
        .build()
        .unwrap();
    assert!(transport.bytes(get()).await.is_ok());
    for _ in 0..2 {
        let error = transport.bytes(get()).await.unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    }
    assert!(transport.bytes(get().answer_limit(1000)).await.is_ok());
}

#[tokio::test]
async fn silence_is_a_timeout_and_a_closed_connection_a_network_error() {
    let server = Server::start(|seen, _| match seen.line().contains("silent") {
        true => Reply::Hold(Vec::new()),
        false => Reply::Close,
    })
    .await;
    let limit = Duration::from_millis(80);
    let transport = Transport::builder(&server.base, KEY)
        .time_limit(limit)
        .retry(tangle_sandbox::transport::RetryPolicy::OFF)
        .build()
        .unwrap();
    let silent = || Call::new(&routes::SANDBOXES_GET, &[("id", "silent")]);
    for error in [
        transport.json::<Value>(silent()).await.unwrap_err(),
        transport.stream(silent()).await.unwrap_err(),
        transport
            .fetch("GET", "/silent", &[], None)
            .await
            .unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::Timeout { limit: l, .. } if l == limit),
            "{error:?}"
        );
        assert_eq!((error.status(), error.code()), (None, Code::Timeout));
    }
    for error in [
        transport.json::<Value>(get()).await.unwrap_err(),
        transport.fetch("GET", "/x", &[], None).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Network { .. }), "{error:?}");
        assert_eq!(error.code(), Code::NetworkError);
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test]
async fn a_stream_gives_its_events_and_then_ends() {
    let body =
        "id: 1\nevent: start\ndata: {\"a\":1}\n\n: hi\n\ndata: [DONE]\n\nevent: new\ndata: 7\n\nda";
    let server = Server::start(move |_, _| events(body)).await;
    let mut stream = transport(&server)
        .stream(run_stream())
        .await
        .unwrap()
        .unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!((first.kind(), first.id()), ("start", Some("1")));
    assert_eq!(first.object().unwrap()["a"], 1);
    let second = stream.next().await.unwrap().unwrap();
    assert_eq!((second.kind(), second.data()), ("new", "{\"value\":7}"));
    assert!(stream.next().await.is_none());
    assert!(stream.is_mid_frame());
}

#[tokio::test]
async fn what_severs_a_stream_is_told_apart_from_what_breaks_it() {
    let server = Server::start(|_, number| match number {
        0 => Reply::Hold(format!("{EVENTS}data: {{}}\n\n").into_bytes()),
        1 => Reply::Pieces(vec![(
            Duration::ZERO,
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: {}\n\n".to_vec(),
        )]),
        2 => events("data: {}\n\ndata: {oops\n\ndata: {}\n\n"),
        3 => events("data: {}\n\ndata: \"0123456789012345678901234567890123456789\"\n\n"),
        _ => events("data: {}\n\nevent: done\ndata: 7\n\n"),
    })
    .await;
    let transport = Transport::builder(&server.base, KEY)
        .idle_limit(Duration::from_millis(80))
        .frame_limit(32)
        .build()
        .unwrap();
    let mut codes = Vec::new();
    for _ in 0..5 {
        let mut stream = transport.stream(run_stream()).await.unwrap().unwrap();
        assert!(stream.next().await.unwrap().is_ok());
        let error = stream.next().await.unwrap().unwrap_err();
        codes.push(error.code().to_string());
        assert!(stream.next().await.is_none());
    }
    assert_eq!(
        codes,
        [
            "TIMEOUT",
            "NETWORK_ERROR",
            "PROTOCOL_ERROR",
            "PROTOCOL_ERROR",
            "PROTOCOL_ERROR"
        ]
    );
}

#[tokio::test]
async fn an_empty_answer_is_no_stream_and_json_is_not_one() {
    let server = Server::start(|_, number| match number {
        0 => answer(204, ""),
        1 => answer(200, ""),
        _ => answer(200, "{}"),
    })
    .await;
    let transport = transport(&server);
    for _ in 0..2 {
        assert!(transport.stream(run_stream()).await.unwrap().is_none());
    }
    let error = transport.stream(run_stream()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn the_time_limit_of_a_stream_ends_with_its_headers() {
    let server = Server::start(|_, _| {
        let wait = Duration::from_millis(150);
        Reply::Pieces(vec![
            (Duration::ZERO, EVENTS.into()),
            (wait, b": hi\n".to_vec()),
            (wait, b"data: {}\n\n".to_vec()),
        ])
    })
    .await;
    let transport = transport(&server);
    let call = run_stream().time_limit(Duration::from_millis(120));
    let mut stream = transport.stream(call).await.unwrap().unwrap();
    assert!(stream.next().await.unwrap().is_ok());
}
