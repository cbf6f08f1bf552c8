//! Error bodies become typed errors (wire protocol, 3.2 to 3.5).

mod scripted;

use std::time::Duration;

use scripted::{Reply, Server, answer, answer_with};
use serde_json::Value;
use tangle_sandbox::contract::routes::{self, Route};
use tangle_sandbox::transport::{Call, Code, Error, RetryPolicy, Transport};

const PARAMS: [(&str, &str); 5] = [
    ("id", "sb-1"),
    ("session_id", "s"),
    ("execution_id", "e"),
    ("turn_id", "t"),
    ("path", "/x"),
];

async fn refused_with(route: &'static Route, reply: fn() -> Reply) -> Error {
    let server = Server::start(move |_, _| reply()).await;
    let transport = Transport::builder(&server.base, "canary-0123456789")
        .retry(RetryPolicy::OFF)
        .build()
        .unwrap();
    let call = Call::new(route, &PARAMS);
    transport.json::<Value>(call).await.unwrap_err()
}

async fn refused(reply: fn() -> Reply) -> Error {
    refused_with(&routes::SANDBOXES_GET, reply).await
}

#[tokio::test]
async fn wire_3_1_a_page_of_html_is_a_transient_server_error() {
    let error = refused(|| answer(502, " <html><b>Bad Gateway</b></html>\n")).await;
    assert!(matches!(error, Error::Server { .. }), "{error:?}");
    assert_eq!(
        (error.status(), error.code()),
        (Some(502), Code::ServerError)
    );
    assert!(error.is_retryable());
    let at = error.failure().unwrap();
    assert_eq!(at.message(), "<html><b>Bad Gateway</b></html>");
    assert_eq!(
        (at.method(), at.path(), at.route(), at.origin()),
        ("GET", "/v1/sandboxes/sb-1", "sandboxes.get", "sandbox-api")
    );
}

#[tokio::test]
async fn wire_3_2_the_envelopes_give_equal_code_and_message() {
    let bodies: [fn() -> Reply; 4] = [
        || answer(418, r#"{"error":"x","code":"Y"}"#),
        || {
            answer(
                418,
                r#"{"success":false,"error":{"code":"Y","message":"x"}}"#,
            )
        },
        || answer(418, r#"{"message":"x","code":"Y"}"#),
        || {
            answer(
                418,
                r#"{"message":"x","code":"Y","error":{"code":"Z","message":"z"}}"#,
            )
        },
    ];
    for body in bodies {
        let error = refused(body).await;
        assert_eq!(error.code(), Code::Other("Y".into()));
        assert_eq!(error.failure().unwrap().message(), "x");
    }
    let empty = refused(|| answer(418, "")).await;
    assert_eq!(empty.failure().unwrap().message(), "Unknown error");
    assert_eq!(empty.code(), Code::UnknownError);
    let blank =
        refused(|| answer(418, r#"{"message":"","error":{"message":"m"},"code":""}"#)).await;
    assert_eq!(blank.failure().unwrap().message(), "m");
    let list = refused(|| answer(418, r#"["a"]"#)).await;
    assert_eq!(list.failure().unwrap().message(), r#"["a"]"#);
}

#[tokio::test]
async fn wire_3_3_a_conflict_carries_the_state_or_says_unknown() {
    let known = refused(|| {
        answer(
            409,
            r#"{"error":"x","currentState":"stopped","requiredState":"running"}"#,
        )
    })
    .await;
    let Error::State {
        current, required, ..
    } = &known
    else {
        panic!("{known:?}");
    };
    assert_eq!(
        (current.as_str(), required.as_deref()),
        ("stopped", Some("running"))
    );
    let nested =
        refused(|| answer(409, r#"{"error":{"details":{"currentState":"stopped"}}}"#)).await;
    assert!(matches!(&nested, Error::State { current, .. } if current == "stopped"));
    let unknown = refused(|| answer(409, r#"{"error":"x"}"#)).await;
    assert!(
        matches!(&unknown, Error::State { current, required: None, .. } if current == "unknown")
    );
    assert_eq!(unknown.code(), Code::InvalidState);
    let code = refused(|| answer(409, r#"{"code":"FILESYSTEM_INCARNATION_NOT_READY"}"#)).await;
    assert!(matches!(code, Error::State { .. }));
    assert_eq!(code.code(), Code::FilesystemIncarnationNotReady);
}

#[tokio::test]
async fn each_status_has_its_class_and_default_code() {
    type Case = (fn() -> Reply, fn(&Error) -> bool, Code);
    let cases: [Case; 15] = [
        (
            || answer(400, ""),
            |e| matches!(e, Error::Validation { .. }),
            Code::ValidationError,
        ),
        (
            || answer(422, ""),
            |e| matches!(e, Error::Validation { .. }),
            Code::ValidationError,
        ),
        (
            || answer(401, ""),
            |e| matches!(e, Error::Auth { .. }),
            Code::AuthError,
        ),
        (
            || answer(403, ""),
            |e| matches!(e, Error::Forbidden { .. }),
            Code::UnknownError,
        ),
        (
            || answer(404, ""),
            |e| matches!(e, Error::NotFound { .. }),
            Code::NotFound,
        ),
        (
            || answer(408, ""),
            |e| matches!(e, Error::Timeout { .. }),
            Code::Timeout,
        ),
        (
            || answer(409, ""),
            |e| matches!(e, Error::State { .. }),
            Code::InvalidState,
        ),
        (
            || answer(429, ""),
            |e| matches!(e, Error::Quota { .. }),
            Code::QuotaExceeded,
        ),
        (
            || answer(500, ""),
            |e| matches!(e, Error::Server { .. }),
            Code::ServerError,
        ),
        (
            || answer(501, ""),
            |e| matches!(e, Error::NotSupported { .. }),
            Code::NotSupported,
        ),
        (
            || answer(503, ""),
            |e| matches!(e, Error::Server { .. }),
            Code::ServerError,
        ),
        (
            || answer(504, ""),
            |e| matches!(e, Error::Server { .. }),
            Code::ServerError,
        ),
        (
            || answer(599, ""),
            |e| matches!(e, Error::Server { .. }),
            Code::ServerError,
        ),
        (
            || answer(410, ""),
            |e| matches!(e, Error::Other { .. }),
            Code::UnknownError,
        ),
        (
            || answer(304, ""),
            |e| matches!(e, Error::Other { .. }),
            Code::UnknownError,
        ),
    ];
    for (reply, class, code) in cases {
        let error = refused(reply).await;
        assert!(class(&error), "{error:?}");
        assert_eq!(error.code(), code);
    }
    let exec = refused_with(&routes::EXEC, || answer(504, r#"{"timeoutMs":1500}"#)).await;
    let Error::Exec { limit, .. } = exec else {
        panic!("{exec:?}");
    };
    assert_eq!(limit, Some(Duration::from_millis(1500)));
}

#[tokio::test]
async fn detail_fields_are_read_from_each_level() {
    let error = refused(|| {
        answer(400, r#"{"success":false,"error":{"code":"VALIDATION_ERROR","message":"bad","fields":{"a.b":"is empty","c":["x"]},"details":{"hint":"h","fields":{}}}}"#)
    })
    .await;
    let Error::Validation { at, fields } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(fields["a.b"], "is empty");
    assert_eq!(fields["c"], "[\"x\"]");
    assert_eq!(at.detail("hint"), Some(&Value::from("h")));
    assert!(error.to_string().contains("a.b: is empty"), "{error}");
    let quota = refused(|| {
        answer(
            429,
            r#"{"quotaType":"runs","current":3,"limit":2,"retryAfterMs":1500}"#,
        )
    })
    .await;
    assert_eq!(quota.retry_after(), Some(Duration::from_millis(1500)));
    let Error::Quota {
        quota_type,
        current,
        limit,
        ..
    } = quota
    else {
        panic!("{quota:?}");
    };
    assert_eq!(
        (quota_type.as_str(), current, limit),
        ("runs", Some(3.0), Some(2.0))
    );
}

#[tokio::test]
async fn wire_3_6_a_404_means_what_its_route_says() {
    let plain: fn() -> Reply = || answer(404, "");
    let on_abort = refused_with(&routes::SESSIONS_ABORT, plain).await;
    assert!(matches!(on_abort, Error::NotFound { .. }), "{on_abort:?}");
    let proposed = refused_with(&routes::SESSIONS_RUNS, plain).await;
    assert!(
        matches!(proposed, Error::NotSupported { .. }),
        "{proposed:?}"
    );
    assert_eq!(
        (proposed.status(), proposed.code()),
        (Some(404), Code::NotSupported)
    );
    let session = refused_with(&routes::SESSIONS_RUNS, || {
        answer(404, r#"{"error":{"code":"NOT_FOUND","message":"x","resourceType":"session","resourceId":"s"}}"#)
    })
    .await;
    let Error::NotFound {
        resource_type,
        resource_id,
        ..
    } = &session
    else {
        panic!("{session:?}");
    };
    assert_eq!(
        (resource_type.as_str(), resource_id.as_str()),
        ("session", "s")
    );
    for route in [&routes::SESSIONS_TURN, &routes::SANDBOXES_GET] {
        let error = refused_with(route, || answer(404, r#"{"resourceType":"route"}"#)).await;
        assert!(matches!(error, Error::NotSupported { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn wire_3_8_an_endless_error_body_is_cut_at_64_kib() {
    let error = refused(|| {
        let mut body = b"HTTP/1.1 500 Status\r\ncontent-length: 10485760\r\n\r\n".to_vec();
        body.resize(body.len() + (10 << 20), b'x');
        Reply::Whole(body)
    })
    .await;
    assert_eq!(error.failure().unwrap().message().len(), 64 * 1024);
    assert!(error.to_string().len() < 2000 && format!("{error:?}").len() < 2000);
}

#[tokio::test]
async fn an_error_body_that_never_ends_does_not_hide_its_status() {
    let server = Server::start(|_, _| {
        Reply::Hold(b"HTTP/1.1 403 Status\r\ncontent-length: 100\r\n\r\n{\"code\":".to_vec())
    })
    .await;
    let transport = Transport::builder(&server.base, "canary-0123456789")
        .time_limit(Duration::from_millis(300))
        .build()
        .unwrap();
    let call = Call::new(&routes::SANDBOXES_GET, &PARAMS);
    let error = transport.json::<Value>(call).await.unwrap_err();
    assert_eq!(error.status(), Some(403), "{error:?}");
}

#[tokio::test]
async fn wire_3_9_credentials_are_redacted_before_they_are_stored() {
    let error = refused(|| {
        answer_with(
            400,
            "x-request-id: req-1\r\n",
            r#"{"message":"got Bearer abc and sk-abcdefgh","code":"tc-abcdefgh","fields":{"key":"canary-0123456789"},"hint":["pk-abcdefgh"]}"#,
        )
    })
    .await;
    assert_eq!(
        error.failure().unwrap().message(),
        "got Bearer [redacted] and [redacted]"
    );
    assert_eq!(error.request_id(), Some("req-1"));
    assert_eq!(error.code(), "[redacted]");
    let all = format!(
        "{error} {error:?} {:?}",
        error.failure().unwrap().detail("hint")
    );
    for secret in ["abc ", "abcdefgh", "canary"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[tokio::test]
async fn the_path_of_an_error_has_no_query() {
    let server = Server::start(|_, _| answer(400, "")).await;
    let transport = Transport::connect(&server.base, "canary-0123456789").unwrap();
    let call = Call::new(&routes::SANDBOXES_LIST, &[]).query("cursor", "private");
    let error = transport.json::<Value>(call).await.unwrap_err();
    assert_eq!(error.failure().unwrap().path(), "/v1/sandboxes");
    assert!(!format!("{error:?} {error}").contains("private"));
}
