//! Runs that go on, what is told of them meanwhile, and every way to end them.

use tangle_sandbox::contract::routes;
use tangle_sandbox::contract::types::{CancelRequest, RunControlRef};
use tangle_sandbox::sandbox::{Attached, Client, Run, Running, Sandbox};

use super::render;
use super::stage::{Stage, json, kind};
use super::turns::{agents, prompt};

/// A run that goes on until it is cancelled.
const ENDLESS: &str = "say begun\nsleep 600000";

/// A run that goes on: what is told of it meanwhile, the SDK's cancel, its events.
pub async fn cancelled_run(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let run = begun(sandbox, 6).await;
    for (route, path) in [
        (&routes::SESSIONS_GET, "/sessions/session-6"),
        (
            &routes::SESSIONS_RUN,
            "/sessions/session-6/runs/execution-6",
        ),
        (
            &routes::SESSIONS_RESULT,
            "/sessions/session-6/runs/execution-6/result",
        ),
    ] {
        let path = agents(sandbox, path);
        stage
            .step((route, "running"), json(&client, "GET", &path, ""))
            .await;
    }
    busy(stage, sandbox).await;
    let abort = agents(sandbox, "/sessions/session-6/abort");
    let other = r#"{"executionId":"execution-5"}"#;
    let call = json(&client, "POST", &abort, other);
    stage
        .step((&routes::SESSIONS_ABORT, "mismatch"), call)
        .await;

    stage
        .step((&routes::SESSIONS_CANCEL_RUN, ""), run.cancel())
        .await
        .unwrap();
    let path = agents(
        sandbox,
        "/sessions/session-6/events?executionId=execution-6",
    );
    let call = json(&client, "GET", &path, "");
    let answer = stage
        .step((&routes::SESSIONS_EVENTS, "cancelled"), call)
        .await;
    let stream = std::str::from_utf8(&answer.body).unwrap();
    let cancelled = |wanted: &'static str| {
        move |frame: &str| kind(frame) == wanted && frame.contains("cancelled")
    };
    stage.event("status.cancelled", stream, cancelled("status"));
    stage.event("done.cancelled", stream, cancelled("done"));
    stage
        .step(
            (&routes::SESSIONS_ABORT, ""),
            json(&client, "POST", &abort, ""),
        )
        .await;
}

/// A second turn in a session whose first one goes on.
async fn busy(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let busy = r#"{"message":"say me too","sessionId":"session-6"}"#;
    let path = agents(sandbox, "/run/stream");
    let call = json(&client, "POST", &path, busy);
    let name = ("runtime.session_busy", 409);
    stage.refused(name, &routes::AGENTS_RUN_STREAM, call).await;
}

/// A run that is detached while it goes on, then cancelled by its ids.
pub async fn detached_run(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let run = begun(sandbox, 7).await;
    let (detached, exchange) = stage
        .exchange(&routes::AGENTS_RUN_STREAM, run.detach())
        .await;
    let reference = detached.unwrap().control_ref().clone();
    stage.keep_request((&routes::AGENTS_RUN_STREAM, "detach"), &exchange);
    let path = agents(sandbox, "/run/cancel");
    let simple = r#"{"sessionId":"session-7","executionId":"execution-7"}"#;
    for variant in ["", "over"] {
        if variant == "over" {
            ended(&client, sandbox, 7).await;
        }
        let call = json(&client, "POST", &path, simple);
        stage
            .step((&routes::AGENTS_RUN_CANCEL, variant), call)
            .await;
    }
    canonical(stage, sandbox, reference).await;
}

/// The canonical cancel of a run that is over, the same again, another one under the same operation id.
async fn canonical(stage: &mut Stage, sandbox: &Sandbox<Running>, run: RunControlRef) {
    let client = stage.client.clone();
    let path = agents(sandbox, "/run/cancel");
    let request = |reason: Option<&str>| {
        let operation = "operation-1".parse().unwrap();
        let reason = reason.map(|reason| reason.parse().unwrap());
        let request = CancelRequest::new(operation, run.clone(), reason);
        serde_json::to_string(&request).unwrap()
    };
    for (variant, reason) in [
        ("not_live", None),
        ("replayed", None),
        ("conflict", Some("late")),
    ] {
        let body = request(reason);
        let call = json(&client, "POST", &path, &body);
        stage
            .step((&routes::SESSIONS_CANCEL_RUN, variant), call)
            .await;
    }
    let unknown = request(None).replace("sha256:", "sha256:0");
    let call = json(&client, "POST", &path, &unknown);
    let (answer, _) = stage.exchange(&routes::SESSIONS_CANCEL_RUN, call).await;
    assert_eq!(answer.status, 400);
}

/// A comment in the silence of a run, and the simple cancel of all runs.
pub async fn silence(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let point = stage.recorder.now();
    let run = begun(sandbox, 1).await;
    let stream = stage.recorder.until(point, |exchanges| {
        let streams = exchanges
            .iter()
            .filter_map(|exchange| exchange.response.as_ref());
        let silent = streams.filter(|response| response.is_stream());
        let mut silent = silent.filter(|response| response.text().contains("\n\n:"));
        silent.find_map(|response| Some(response.text().rsplit_once("\n\n")?.0.to_owned() + "\n\n"))
    });
    let stream = stream.await;
    stage.event("comment", &stream, render::is_comment);
    let path = agents(sandbox, "/run/cancel");
    stage
        .step(
            (&routes::AGENTS_RUN_CANCEL, "all"),
            json(&client, "POST", &path, "{}"),
        )
        .await;
    ended(&client, sandbox, 1).await;
    drop(run);
}

/// A run that goes on, once its agent has spoken.
async fn begun(sandbox: &Sandbox<Running>, number: usize) -> Run<Attached> {
    let mut run = sandbox.stream(prompt(ENDLESS, number)).await.unwrap();
    loop {
        let event = run.next().await.unwrap().unwrap();
        if event.text_delta() == Some("begun") {
            return run;
        }
    }
}

/// Waits for the end of a run.
async fn ended(client: &Client, sandbox: &Sandbox<Running>, number: usize) {
    let path = format!("/sessions/session-{number}/events?executionId=execution-{number}");
    let answer = json(client, "GET", &agents(sandbox, &path), "").await;
    assert!(answer.body.ends_with(b"\n\n"));
}
