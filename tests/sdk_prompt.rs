//! A prompt and its result: never an error for a run that failed, settled when its stream is lost, and never run twice
//! (wire protocol, 7.8 and 8.4).

mod support {
    pub mod service;
}

use std::time::Duration;

use serde_json::{Value, json};
use support::service::{
    Answer, CANCEL, Clock, RUN, Seen, Service, a_moment, admission, cut, data, events, frame, held,
    refusal, text,
};
use tangle_sandbox::sandbox::{Deadline, Prompt, PromptResult, PromptStatus, Rejoin};
use tangle_sandbox::transport::{Code, RetryPolicy};

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(250);
const SESSION: &str = "GET /v1/sandboxes/sbx_1/runtime/agents/sessions/s";
const RESULT: &str = "GET /v1/sandboxes/sbx_1/runtime/agents/sessions/s/runs/e/result";
const TURN: &str = "GET /v1/sandboxes/sbx_1/runtime/agents/sessions/s/turns/t";

fn named() -> Prompt {
    Prompt::new("go")
        .session("s".parse().unwrap())
        .execution("e".parse().unwrap())
}

fn outcome(status: &str) -> Value {
    json!({ "executionId": "e", "sessionId": "s", "status": status, "finalText": "recorded" })
}

fn new_runs(service: &Service) -> usize {
    let asks = |seen: &Seen| seen.json()["message"] != "";
    service
        .seen_on(RUN)
        .iter()
        .filter(|seen| asks(seen))
        .count()
}

async fn prompted(service: &Service, clock: &Clock, prompt: Prompt) -> PromptResult {
    let client = service.builder().retry(RetryPolicy::OFF).build().unwrap();
    let sandbox = service.running_by(&client).await;
    clock
        .drive(service, STEP, sandbox.prompt(prompt))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_good_run_gives_all_that_it_told() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let tool = |status: &str, output: Value| {
            let state = json!({ "status": status, "output": output });
            json!({ "part": { "type": "tool", "id": "p1", "callID": "c1", "tool": "sh", "state": state } })
        };
        let usage = json!({ "inputTokens": 10, "outputTokens": 4 });
        let body = admission(seen)
            + &frame(2, "trace.id", json!({ "traceId": "trace-1" }))
            + &frame(3, "message.part.updated", tool("running", Value::Null))
            + &frame(4, "message.part.updated", tool("completed", json!("out")))
            + &text(5, "Hel")
            + &frame(6, "result", json!({
                "finalText": "Hello", "tokenUsage": usage, "costUsd": 0.5, "durationMs": 12, "status": "success",
            }))
            + &frame(7, "done", json!({ "outcome": { "type": "completed" } }));
        events(&body)
    });
    let result = sandbox.prompt("say hello").await.unwrap();
    let sent = service.seen()[0].json();
    assert!(result.success());
    assert_eq!(result.text(), "Hello");
    assert_eq!(json!(result.execution_id), sent["executionId"]);
    assert_eq!(json!(result.session_id), sent["sessionId"]);
    assert_eq!(result.tool_invocations.len(), 1);
    assert_eq!(result.tool_invocations[0].tool_name, "sh");
    assert_eq!(result.tool_invocations[0].result, Some(json!("out")));
    assert_eq!(result.usage.unwrap().input_tokens.get(), 10);
    assert_eq!((result.cost_usd, result.duration_ms), (Some(0.5), 12.0));
    assert_eq!(result.trace_id.as_deref(), Some("trace-1"));
    assert_eq!((result.error, result.error_code), (None, None));
}

#[tokio::test]
async fn what_was_not_reported_is_absent() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        events(
            &(admission(seen) + &text(2, "Hi") + &frame(3, "done", json!({ "status": "success" }))),
        )
    });
    let result = sandbox.prompt("hi").await.unwrap();
    assert!(result.success());
    assert_eq!(result.text(), "Hi");
    assert_eq!(
        (result.usage, result.cost_usd, result.outcome),
        (None, None, None)
    );
    assert!(result.duration_ms >= 0.0);
}

#[tokio::test]
async fn wire_7_11_a_run_that_fails_is_a_result() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for (answer, code) in [
        (
            refusal(500, "AGENT_EXECUTION_FAILED", json!({})),
            "AGENT_EXECUTION_FAILED",
        ),
        (refusal(409, "SESSION_BUSY", json!({})), "SESSION_BUSY"),
        (
            refusal(400, "VALIDATION_ERROR", json!({})),
            "VALIDATION_ERROR",
        ),
        (
            refusal(422, "PROFILE_UNSUPPORTED", json!({})),
            "PROFILE_UNSUPPORTED",
        ),
        (Answer::Json(401, json!({})), "AUTH_ERROR"),
        (Answer::Json(200, json!({})), "PROTOCOL_ERROR"),
    ] {
        service.always(RUN, answer);
        let result = sandbox.prompt("hi").await.unwrap();
        assert_eq!(result.status, PromptStatus::Failed);
        assert!(!result.success());
        assert_eq!(result.error_code.as_deref(), Some(code));
        assert!(result.error.is_some());
        assert_eq!(result.execution_id.is_some(), code == "PROTOCOL_ERROR");
    }
    // Wire protocol, 3.5: a run that failed is not dispatched again.
    assert_eq!(service.seen().len(), 6);
}

#[tokio::test]
async fn wire_7_4_the_error_of_a_run_decides() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        events(
            &(admission(seen)
                + &text(2, "so far")
                + &frame(
                    3,
                    "error",
                    json!({ "code": "NO_MODEL", "message": "no such model" }),
                )
                + &frame(4, "done", json!({ "status": "completed" }))),
        )
    });
    let result = sandbox.prompt("hi").await.unwrap();
    assert_eq!(result.status, PromptStatus::Failed);
    assert_eq!(result.error_code.as_deref(), Some("NO_MODEL"));
    assert_eq!(result.error.as_deref(), Some("no such model"));
    assert_eq!(result.text(), "so far");
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_run_that_waits_is_neither_a_success_nor_a_failure() {
    for (word, status) in [
        ("blocked_on_approval", PromptStatus::BlockedOnApproval),
        ("awaiting_question", PromptStatus::AwaitingQuestion),
        ("awaiting_interaction", PromptStatus::AwaitingInteraction),
        ("awaiting_plan_decision", PromptStatus::AwaitingPlanDecision),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, move |seen, _| {
            let summary = json!({ "status": word, "question": { "id": "q" } });
            let end = frame(3, "done", json!({ "status": "completed" }));
            events(&(admission(seen) + &frame(2, "result", summary) + &end))
        });
        let result = sandbox.prompt("hi").await.unwrap();
        assert_eq!(result.status, status);
        assert_eq!((result.success(), result.error_code), (false, None));
        assert_eq!(result.outcome.unwrap().question, Some(json!({ "id": "q" })));
    }
}

#[tokio::test]
async fn what_is_wrong_here_is_an_error_and_sends_nothing() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for (prompt, path) in [
        (Prompt::new(""), "/message"),
        (
            Prompt::new("x").deadline(Deadline::from_millis(0)),
            "/timeoutMs",
        ),
        (
            Prompt::new("x").deadline(Deadline::from_secs(u64::MAX)),
            "/timeoutMs",
        ),
        (Prompt::new("x").turn("t".parse().unwrap()), "/turnId"),
    ] {
        let error = sandbox.prompt(prompt.clone()).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError);
        assert!(error.to_string().contains(path), "{error}");
        let error = sandbox.stream(prompt).await.unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn a_deadline_that_passes_is_a_result_and_cancels_the_run() {
    for answer in [Answer::Never, held("")] {
        let service = Service::start().await;
        let clock = Clock::stop();
        service.always(RUN, answer);
        let prompt = Prompt::new("go").deadline(Deadline::from_secs(2));
        let started = tokio::time::Instant::now();
        let result = prompted(&service, &clock, prompt).await;
        let waited = started.elapsed();
        assert!(waited >= SECOND * 7 && waited <= SECOND * 8, "{waited:?}");
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("TIMEOUT"));
        let sent = service.seen_on(RUN).remove(0).json();
        assert_eq!(sent["timeoutMs"], 2000);
        assert_eq!(json!(result.execution_id), sent["executionId"]);
        let cancels = service.until_seen(CANCEL, 1).await;
        assert_eq!(cancels[0].json()["executionId"], sent["executionId"]);
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), 1);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn dropping_the_future_of_a_prompt_cancels_the_run() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| held(&admission(seen)));
    tokio::select! {
        _ = sandbox.prompt("go") => panic!("a result"),
        () = async {
            service.until_seen(RUN, 1).await;
            a_moment().await;
        } => {}
    }
    service.until_seen(CANCEL, 1).await;
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 1);
}

#[tokio::test]
async fn a_lost_stream_is_settled_from_the_recorded_result() {
    for (recorded, status, code) in [
        (outcome("completed"), PromptStatus::Success, None),
        (
            json!({ "executionId": "e", "status": "failed", "error": "no", "errorCode": "X" }),
            PromptStatus::Failed,
            Some("X"),
        ),
        (
            json!({ "executionId": "e", "status": "cancelled" }),
            PromptStatus::Failed,
            Some("CANCELLED"),
        ),
    ] {
        let service = Service::start().await;
        let clock = Clock::stop();
        service.on(RUN, |seen, _| cut(&(admission(seen) + &text(2, "rec"))));
        let idle = json!({ "id": "s", "state": "idle", "activeExecutionId": null });
        service.always(SESSION, data(json!({ "session": idle })));
        service.always(RESULT, data(recorded));
        let result = prompted(&service, &clock, named().rejoin(Rejoin::Off)).await;
        assert_eq!(result.status, status);
        assert_eq!(result.error_code.as_deref(), code);
        assert_eq!(new_runs(&service), 1);
        a_moment().await;
        // The record says that the run is over: there is nothing to cancel.
        assert_eq!(service.seen_on(CANCEL).len(), 0);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_lost_stream_of_a_run_that_goes_on_is_joined_again() {
    for record in [
        json!({ "id": "s", "state": "running", "activeExecutionId": "e" }),
        json!({ "session": { "id": "s" }, "activeExecution": { "id": "e", "status": "running" } }),
    ] {
        let service = Service::start().await;
        let clock = Clock::stop();
        service.on(RUN, |seen, nth| match nth {
            0 => cut(&(admission(seen) + &text(2, "He"))),
            1..=3 => Answer::Drop,
            _ => events(&(text(3, "llo") + &frame(4, "done", json!({ "status": "completed" })))),
        });
        service.always(SESSION, data(record));
        let result = prompted(&service, &clock, named()).await;
        assert_eq!(result.status, PromptStatus::Success, "{result:#?}");
        assert_eq!(result.text(), "Hello");
        assert_eq!(service.seen_on(RUN).len(), 5);
        assert_eq!(service.seen_on(RUN)[4].json()["lastEventId"], "2");
        assert_eq!(new_runs(&service), 1);
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), 0);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_run_that_goes_on_and_cannot_be_read_is_asked_about_less_and_less_often() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&(admission(seen) + &text(2, "x"))),
        _ => refusal(410, "EVENT_CURSOR_UNKNOWN", json!({ "oldestEventId": "9" })),
    });
    service.on(SESSION, |_, nth| match nth {
        0..4 => data(json!({ "id": "s", "activeExecutionId": "e" })),
        _ => data(json!({ "id": "s", "state": "idle" })),
    });
    service.always(RESULT, data(outcome("success")));
    let result = prompted(&service, &clock, named()).await;
    assert!(result.success());
    assert_eq!(result.text(), "recorded");
    assert_eq!(service.seen_on(RUN).len(), 2);
    let asked = service.seen_on(SESSION);
    support::service::waits(
        &asked,
        &[Duration::ZERO, SECOND * 5, SECOND * 10, SECOND * 20],
        STEP,
    );
    assert_eq!(service.seen_on(CANCEL).len(), 0);
}

#[tokio::test]
async fn row_5_a_run_that_is_said_to_go_on_and_gives_nothing_does_not_make_the_client_spin() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&admission(seen)),
        _ => events(""),
    });
    service.always(
        SESSION,
        data(json!({ "id": "s", "activeExecutionId": "e" })),
    );
    let prompt = named().deadline(Deadline::from_secs(115));
    let result = prompted(&service, &clock, prompt).await;
    assert_eq!(result.error_code.as_deref(), Some("TIMEOUT"));
    let requests = service.seen().len();
    assert!(requests < 40, "{requests} requests in two minutes");
    service.until_seen(CANCEL, 1).await;
}

#[tokio::test]
async fn the_turn_tells_the_end_when_the_execution_does_not() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(RUN, |seen, _| cut(&admission(seen)));
    service.always(
        RESULT,
        refusal(404, "NOT_FOUND", json!({ "resourceType": "execution" })),
    );
    let turn = |status: &str| {
        json!({
            "turnId": "t", "sessionId": "s", "executionId": "e", "status": status,
            "result": { "finalText": "by turn" },
        })
    };
    service.always(TURN, data(turn("completed")));
    let prompt = || named().turn("t".parse().unwrap()).rejoin(Rejoin::Off);
    let result = prompted(&service, &clock, prompt()).await;
    assert!(result.success());
    assert_eq!(result.text(), "by turn");
    service.always(TURN, data(turn("running")));
    let result = prompted(&service, &clock, prompt()).await;
    assert_eq!(result.status, PromptStatus::Unknown);
    assert_eq!(new_runs(&service), 1);
}

#[tokio::test]
async fn a_run_that_nothing_settles_is_unknown() {
    let running = Answer::Json(202, json!({ "success": true, "data": outcome("running") }));
    let mut other = outcome("completed");
    other["executionId"] = json!("exe_other");
    let mut nobody = outcome("completed");
    nobody.as_object_mut().unwrap().remove("executionId");
    let mut wordless = outcome("completed");
    wordless.as_object_mut().unwrap().remove("status");
    for answer in [
        refusal(404, "NOT_FOUND", json!({ "resourceType": "execution" })),
        refusal(404, "NOT_FOUND", json!({})),
        running,
        data(other),
        data(nobody),
        data(wordless),
        Answer::Drop,
    ] {
        let service = Service::start().await;
        let clock = Clock::stop();
        service.on(RUN, |seen, _| cut(&(admission(seen) + &text(2, "half"))));
        service.always(RESULT, answer.clone());
        let result = prompted(&service, &clock, named()).await;
        assert_eq!(result.status, PromptStatus::Unknown, "{answer:?}");
        assert!(!result.success());
        assert_eq!(result.error_code.as_deref(), Some("STREAM_INTERRUPTED"));
        assert_eq!(result.text(), "half");
        assert_eq!(result.execution_id.as_deref(), Some("e"));
        assert_eq!(new_runs(&service), 1);
        // Its reader leaves: the service is told.
        service.until_seen(CANCEL, 1).await;
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_frame_that_breaks_the_protocol_fails_the_prompt_and_cancels_the_run() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| held(&(admission(seen) + "data: {oops\n\n")));
    let result = sandbox.prompt("go").await.unwrap();
    assert_eq!(result.status, PromptStatus::Failed);
    assert_eq!(result.error_code.as_deref(), Some("PROTOCOL_ERROR"));
    assert!(result.execution_id.is_some());
    service.until_seen(CANCEL, 1).await;
    assert_eq!(service.seen_on(RUN).len(), 1);
}

#[tokio::test]
async fn a_dispatch_that_was_refused_on_the_way_is_the_same_request_again() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(RUN, |seen, nth| match nth {
        0 => refusal(502, "", json!({})),
        1 => refusal(503, "MODEL_CREDENTIAL_SUPERSEDED", json!({})),
        _ => events(&(admission(seen) + &frame(2, "done", json!({ "status": "completed" })))),
    });
    let sandbox = service.running().await;
    let result = clock
        .drive(&service, STEP, sandbox.prompt("go"))
        .await
        .unwrap();
    assert!(result.success());
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|again| again.body == seen[0].body));
}

#[tokio::test]
async fn a_start_without_an_answer_may_have_happened() {
    for (answer, status) in [
        (data(outcome("completed")), PromptStatus::Success),
        (
            refusal(404, "NOT_FOUND", json!({ "resourceType": "execution" })),
            PromptStatus::Unknown,
        ),
    ] {
        let service = Service::start().await;
        let clock = Clock::stop();
        service.always(RUN, Answer::Drop);
        service.always(RESULT, answer);
        let result = prompted(&service, &clock, named()).await;
        assert_eq!(result.status, status);
        let lost = result.error_code.as_deref() == Some("STREAM_INTERRUPTED");
        assert_eq!(lost, status == PromptStatus::Unknown);
        assert_eq!(result.execution_id.as_deref(), Some("e"));
        tokio::time::resume();
    }
}
