//! Commands as the client sends and reads them (wire protocol, 14.1).

mod support {
    pub mod service;
}

use std::time::Duration;

use serde_json::{Value, json};
use support::service::{Answer, Clock, Service, refusal};
use tangle_sandbox::sandbox::{Deadline, Exec};
use tangle_sandbox::transport::{Code, Error as Failed};

const EXEC: &str = "POST /v1/sandboxes/sbx_1/runtime/terminals/commands";
const SECOND: Duration = Duration::from_secs(1);

fn output(value: Value) -> Answer {
    Answer::Json(200, json!({ "success": true, "result": value }))
}

#[tokio::test]
async fn wire_14_1_an_exit_status_is_an_answer() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(
        EXEC,
        output(json!({
            "exitCode": 3, "stdout": "o", "stderr": "e", "duration": 12,
        })),
    );
    let output = sandbox.exec("exit 3").await.unwrap();
    assert_eq!(output.exit_code, 3);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("o", "e"));
    let command = Exec::new("make")
        .cwd("a b")
        .env("CI", "1")
        .session("ses_1".parse().unwrap())
        .deadline(Deadline::from_millis(1500));
    sandbox.exec(command).await.unwrap();
    let sent: Vec<Value> = service.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(sent[0], json!({ "command": "exit 3", "timeout": 30_000 }));
    assert_eq!(
        sent[1],
        json!({
            "command": "make", "cwd": "a b", "env": { "CI": "1" }, "sessionId": "ses_1",
            "timeout": 1500,
        })
    );
}

#[tokio::test]
async fn wire_14_7_a_command_is_never_sent_twice() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    for answer in [
        Answer::Drop,
        refusal(429, "QUOTA_EXCEEDED", json!({})),
        refusal(502, "", json!({})),
        refusal(503, "", json!({})),
        refusal(408, "TIMEOUT", json!({})),
    ] {
        service.always(EXEC, answer);
        let exec = sandbox.exec("touch x");
        assert!(clock.drive(&service, SECOND, exec).await.is_err());
    }
    assert_eq!(service.seen().len(), 5);
}

#[tokio::test]
async fn row_16_the_error_says_which_limit_has_passed() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    // The command's own limit: the service has ended it.
    service.always(
        EXEC,
        refusal(504, "EXEC_TIMEOUT", json!({ "timeoutMs": 2000 })),
    );
    let command = || Exec::new("sleep 30").deadline(Deadline::from_secs(2));
    let error = sandbox.exec(command()).await.unwrap_err();
    assert_eq!(error.code(), Code::ExecTimeout);
    assert!(!error.is_retryable());
    // No answer: the client waits for 10 seconds more than the command may take.
    service.always(EXEC, Answer::Never);
    let started = tokio::time::Instant::now();
    let exec = sandbox.exec(command());
    let error = clock.drive(&service, SECOND / 2, exec).await.unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    assert!(error.to_string().contains("limit 12000 ms"), "{error}");
    let waited = started.elapsed();
    assert!(waited >= SECOND * 12 && waited <= SECOND * 13, "{waited:?}");
}

#[tokio::test]
async fn what_breaks_a_rule_sends_nothing() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for (command, path) in [
        (Exec::new("x").cwd(""), "/cwd"),
        (
            Exec::new("x").deadline(Deadline::from_millis(0)),
            "/timeout",
        ),
        (
            Exec::new("x").deadline(Deadline::new(Duration::MAX)),
            "/timeout",
        ),
        (
            Exec::new("x").deadline(Deadline::from_minutes(u64::MAX)),
            "/timeout",
        ),
    ] {
        let error = sandbox.exec(command).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError);
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn row_21_ten_mebibytes_of_each_stream_are_read_and_more_is_refused() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let most = "a".repeat(10 * 1024 * 1024);
    service.always(
        EXEC,
        output(json!({
            "exitCode": 0, "stdout": most, "stderr": most, "duration": 1, "truncated": true,
        })),
    );
    let output = sandbox.exec("yes").await.unwrap();
    assert_eq!(
        (output.stdout.len(), output.stderr.len()),
        (most.len(), most.len())
    );
    assert_eq!(output.truncated, Some(true));
}

#[tokio::test]
async fn an_answer_without_a_result_is_refused() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for answer in [
        json!({ "success": true }),
        json!({ "success": true, "result": { "stdout": "" } }),
    ] {
        service.always(EXEC, Answer::Json(200, answer));
        let error = sandbox.exec("x").await.unwrap_err();
        assert_eq!(error.code(), Code::ProtocolError);
    }
    service.always(EXEC, refusal(403, "FORBIDDEN", json!({})));
    let error = sandbox.exec(Exec::new("x").cwd("/etc")).await.unwrap_err();
    assert!(matches!(
        error,
        tangle_sandbox::sandbox::Error::Call(Failed::Forbidden { .. })
    ));
}
