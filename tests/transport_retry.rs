//! What is sent again, how often, and when (wire protocol, 3.6), over real sockets.

mod scripted;

use std::time::{Duration, Instant};

use scripted::{Reply, Server, answer, answer_with, events};
use serde_json::{Value, json};
use tangle_sandbox::contract::routes;
use tangle_sandbox::transport::{Call, Code, Error, Repeat, RetryPolicy, Transport, Waits};

const QUICK: RetryPolicy = RetryPolicy {
    attempts: 3,
    waits: Some(Waits::Jittered {
        first: Duration::from_millis(2),
        cap: Duration::from_millis(4),
    }),
    longest_wait: Duration::from_secs(60),
};

fn transport(server: &Server) -> Transport {
    Transport::builder(&server.base, "key-0123456789")
        .retry(QUICK)
        .build()
        .unwrap()
}

fn get() -> Call {
    Call::new(&routes::SANDBOXES_GET, &[("id", "s")])
}

fn exec() -> Call {
    Call::new(&routes::EXEC, &[("id", "s")]).body(&json!({"command": "date"}))
}

fn run_stream() -> Call {
    Call::new(&routes::AGENTS_RUN_STREAM, &[("id", "s")]).body(&json!({"executionId": "e"}))
}

#[tokio::test]
async fn wire_3_1_a_bad_gateway_is_repeated_on_get() {
    let server = Server::start(|_, number| match number {
        0 | 1 => answer(502, "<html>"),
        _ => answer(200, "[1]"),
    })
    .await;
    let value: Value = transport(&server).json(get()).await.unwrap();
    assert_eq!((value, server.seen().len()), (json!([1]), 3));
}

#[tokio::test]
async fn at_most_three_attempts_are_made_and_none_but_one_when_it_is_off() {
    let server = Server::start(|_, _| answer(502, "")).await;
    let transport = transport(&server);
    assert!(transport.json::<Value>(get()).await.is_err());
    assert_eq!(server.seen().len(), 3);
    let off = get().retry(RetryPolicy::OFF);
    assert!(transport.json::<Value>(off).await.is_err());
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn what_may_act_twice_is_sent_once() {
    let server = Server::start(|_, number| match number % 2 {
        0 => answer(503, ""),
        _ => Reply::Close,
    })
    .await;
    let transport = transport(&server);
    for count in 1..=2 {
        assert!(transport.json::<Value>(exec()).await.is_err());
        assert_eq!(server.seen().len(), count);
    }
    let create = Call::new(&routes::SANDBOXES_CREATE, &[]).body(&json!({}));
    assert!(transport.json::<Value>(create).await.is_err());
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_keyed_call_is_repeated_with_the_same_body() {
    let server = Server::start(|_, number| match number {
        0 => Reply::Close,
        1 => answer(503, ""),
        _ => answer(201, "{}"),
    })
    .await;
    let create = Call::new(&routes::SANDBOXES_CREATE, &[])
        .body(&json!({"idempotencyKey": "k"}))
        .repeat(Repeat::Keyed);
    let _: Value = transport(&server).json(create).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(
        seen.iter()
            .all(|seen| seen.body == br#"{"idempotencyKey":"k"}"#)
    );
}

#[tokio::test]
async fn wire_3_4_a_503_with_a_permanent_code_is_not_repeated_and_a_bare_one_is() {
    for (body, attempts) in [
        (r#"{"code":"HUB_CREDENTIAL_REFRESH_FAILED"}"#, 1),
        (r#"{"code":"NATIVE_CAPTURE_UNAVAILABLE"}"#, 1),
        (r#"{"code":"HUB_CREDENTIAL_REFRESH_UNAVAILABLE"}"#, 3),
        (r#"{"error":{"code":"MODEL_CREDENTIAL_SUPERSEDED"}}"#, 3),
        ("", 3),
    ] {
        let server = Server::start(move |_, _| answer(503, body)).await;
        let error = transport(&server).json::<Value>(get()).await.unwrap_err();
        assert_eq!(error.is_retryable(), attempts > 1, "{error:?}");
        assert_eq!(server.seen().len(), attempts, "{body}");
    }
}

#[tokio::test]
async fn wire_3_5_a_failed_run_is_never_dispatched_again() {
    let server = Server::start(|_, number| match number {
        0 => answer(
            500,
            r#"{"error":{"code":"AGENT_EXECUTION_FAILED","message":"x"}}"#,
        ),
        1 => answer(500, ""),
        2 => answer(502, ""),
        _ => events("data: {}\n\n"),
    })
    .await;
    let transport = transport(&server);
    let keyed = || run_stream().repeat(Repeat::Keyed);
    for (code, count) in [(Code::AgentExecutionFailed, 1), (Code::ServerError, 2)] {
        let error = transport.stream(keyed()).await.unwrap_err();
        assert!(matches!(error, Error::Server { .. }), "{error:?}");
        assert_eq!((error.code(), server.seen().len()), (code, count));
    }
    assert!(transport.stream(keyed()).await.unwrap().is_some());
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let server = Server::start(|_, number| match number {
        0 => answer_with(429, "retry-after: 1\r\n", ""),
        1 => answer_with(429, "retry-after: soon\r\n", ""),
        _ => answer(200, "{}"),
    })
    .await;
    let started = Instant::now();
    let _: Value = transport(&server).json(get()).await.unwrap();
    let elapsed = started.elapsed();
    assert!(
        elapsed >= Duration::from_secs(1) && elapsed < Duration::from_secs(10),
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn a_deadline_replaces_the_number_of_attempts_and_is_never_passed() {
    let server = Server::start(|_, number| match number {
        0..5 => answer(502, ""),
        5 => answer(200, "{}"),
        _ => answer_with(429, "retry-after: 7\r\n", ""),
    })
    .await;
    let transport = transport(&server);
    let call = || get().deadline(Duration::from_secs(5));
    let _: Value = transport.json(call()).await.unwrap();
    assert_eq!(server.seen().len(), 6);
    let started = Instant::now();
    let error = transport.json::<Value>(call()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(server.seen().len(), 7);
}

#[tokio::test]
async fn an_outage_does_not_multiply_the_load() {
    let server = Server::start(|_, _| answer(502, "")).await;
    let transport = transport(&server);
    for _ in 0..100 {
        assert!(transport.json::<Value>(get()).await.is_err());
    }
    let sent = server.seen().len();
    assert!((120..=150).contains(&sent), "{sent} requests for 100 calls");
}
