//! Runs of the scripted agent, their sessions, their cancels, and every type of event that they send.

use tangle_sandbox::claims::Detach;
use tangle_sandbox::contract::routes;
use tangle_sandbox::contract::types::{CancelRequest, RunControlRef};
use tangle_sandbox::provider::Turn;
use tangle_sandbox::sandbox::{Attached, Prompt, PromptStatus, Run, Running, Sandbox};

use super::forms::GIVEN_DIGEST;
use super::render;
use super::stage::{Stage, json, kind};

/// One of everything that the agent can do without being asked.
const EVERYTHING: &str = "think hm\nsay Hello\nrun printf out\nwrite notes/a.txt A \"note\"\\n\nplan one|two\nfuture\n\
                          ask May I?\nquestion Which?|A|B\nsay Done";
/// A run that goes on until it is cancelled.
const ENDLESS: &str = "say begun\nsleep 600000";

fn prompt(text: &str, number: usize) -> Prompt {
    Prompt::new(text)
        .session(format!("session-{number}").parse().unwrap())
        .execution(format!("execution-{number}").parse().unwrap())
}

fn agents(sandbox: &Sandbox<Running>, path: &str) -> String {
    format!("/v1/sandboxes/{}/runtime/agents{path}", sandbox.id())
}

/// A run from its admission to its end, its rejoins, its record.
pub async fn whole_run(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let prompt = prompt(EVERYTHING, 1).turn("turn-1".parse().unwrap());
    let prompt = prompt.context("ticket", 7);
    let run = async {
        let run = sandbox.stream(prompt).await.unwrap();
        run.result().await.unwrap()
    };
    let (result, exchange) = stage.exchange(&routes::AGENTS_RUN_STREAM, run).await;
    assert_eq!(result.status, PromptStatus::Success);
    stage.keep((&routes::AGENTS_RUN_STREAM, ""), &exchange);
    let stream = exchange.response.unwrap();
    events_of_everything(stage, stream.text());

    let newest = render::frames(stream.text()).len();
    let rejoin = |cursor: usize| {
        format!(
            r#"{{"message":"","sessionId":"session-1","executionId":"execution-1","lastEventId":"{cursor}"}}"#
        )
    };
    let path = agents(sandbox, "/run/stream");
    for (variant, cursor, status) in [("rejoin", newest - 2, 200), ("over", newest, 204)] {
        let body = rejoin(cursor);
        let call = json(&client, "POST", &path, &body);
        let answer = stage
            .step((&routes::AGENTS_RUN_STREAM, variant), call)
            .await;
        assert_eq!(answer.status, status);
    }
    let unknown = rejoin(newest + 1);
    let call = json(&client, "POST", &path, &unknown);
    let name = ("runtime.event_cursor_unknown", 410);
    stage.refused(name, &routes::AGENTS_RUN_STREAM, call).await;

    let session = "/sessions/session-1";
    for (route, variant, path) in [
        (&routes::AGENTS_LIST, "", ""),
        (&routes::SESSIONS_LIST, "", "/sessions"),
        (&routes::SESSIONS_GET, "", session),
        (&routes::SESSIONS_RUNS, "", "/sessions/session-1/runs"),
        (
            &routes::SESSIONS_RUN,
            "",
            "/sessions/session-1/runs/execution-1",
        ),
        (
            &routes::SESSIONS_RESULT,
            "",
            "/sessions/session-1/runs/execution-1/result",
        ),
        (
            &routes::SESSIONS_TURN,
            "",
            "/sessions/session-1/turns/turn-1",
        ),
    ] {
        let path = agents(sandbox, path);
        stage
            .step((route, variant), json(&client, "GET", &path, ""))
            .await;
    }
    let events = format!(
        "{session}/events?executionId=execution-1&lastEventId={}",
        newest - 2
    );
    let path = agents(sandbox, &events);
    stage
        .step(
            (&routes::SESSIONS_EVENTS, ""),
            json(&client, "GET", &path, ""),
        )
        .await;
}

/// A snapshot for each type of event, and for each kind of part as it grows and as it ends.
fn events_of_everything(stage: &mut Stage, stream: &str) {
    let kinds = [
        ("execution.started", "execution.started"),
        ("status", "status"),
        (
            "message.part.updated.step_start",
            "message.part.updated step-start",
        ),
        (
            "message.part.updated.reasoning_delta",
            "message.part.updated reasoning delta",
        ),
        (
            "message.part.updated.reasoning",
            "message.part.updated reasoning",
        ),
        (
            "message.part.updated.text_delta",
            "message.part.updated text delta",
        ),
        ("message.part.updated.text", "message.part.updated text"),
        (
            "message.part.updated.step_finish",
            "message.part.updated step-finish",
        ),
        ("warning", "warning"),
        ("result", "result"),
        ("done", "done"),
    ];
    for (name, wanted) in kinds {
        stage.event(name, stream, |frame| kind(frame) == wanted);
    }
    let data = |frame: &str| render::data(frame).unwrap_or_default().to_owned();
    for (name, wanted, part) in [
        (
            "message.part.updated.tool_running",
            "message.part.updated tool",
            r#""status":"running""#,
        ),
        (
            "message.part.updated.tool_run",
            "message.part.updated tool",
            r#""exitCode":0"#,
        ),
        (
            "message.part.updated.tool_write",
            "message.part.updated tool",
            r#""oldText""#,
        ),
        (
            "message.part.updated.tool_rejected",
            "message.part.updated tool",
            r#""status":"error""#,
        ),
        ("raw.plan", "raw", r#""entries""#),
        ("raw.unknown", "raw", "hologram"),
        ("warning.question", "warning", "QUESTION_DECLINED"),
    ] {
        let fits = |frame: &str| kind(frame).starts_with(wanted) && data(frame).contains(part);
        stage.event(name, stream, fits);
    }
}

/// A run with everything that a request can carry beside its input, repeated under its turn; a run that fails; a run that
/// is waited for.
pub async fn short_runs(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let path = agents(sandbox, "/run/stream");
    let reference = format!(
        r#"{{"runId":"run-2","provider":"tests","environmentId":"{}","sessionId":"session-2","executionId":"execution-2","requestDigest":"{GIVEN_DIGEST}"}}"#,
        sandbox.id()
    );
    let request = format!(
        r#"{{"id":"default","parts":[{{"type":"text","text":"c2F5IGhp"}}],"sessionId":"session-2","executionId":"execution-2","turnId":"turn-2","runControlRef":{reference},"detach":true,"backend":{{"type":"scripted"}},"metadata":{{"ticket":7}},"interactions":{{"question":false}},"timeoutMs":60000,"traceId":"trace-2"}}"#
    );
    for variant in ["detached", "replay"] {
        let call = json(&client, "POST", &path, &request);
        let answer = stage
            .step((&routes::AGENTS_RUN_STREAM, variant), call)
            .await;
        let stream = std::str::from_utf8(&answer.body).unwrap();
        let name = |name: &str| match variant {
            "detached" => name.to_owned(),
            variant => format!("{name}.{variant}"),
        };
        let admitted = |frame: &str| kind(frame) == "execution.started";
        match variant {
            "detached" => stage.event(&name("trace.id"), stream, |frame| kind(frame) == "trace.id"),
            _ => stage.event(&name("execution.started"), stream, admitted),
        }
    }
    let other = request.replace("run-2", "run-3");
    let call = json(&client, "POST", &path, &other);
    let route = &routes::AGENTS_RUN_STREAM;
    stage
        .refused(("runtime.run_conflict", 409), route, call)
        .await;
    let other = r#"{"message":"say bye","sessionId":"session-2","turnId":"turn-2"}"#;
    let call = json(&client, "POST", &path, other);
    stage
        .refused(("runtime.turn_conflict", 409), route, call)
        .await;

    let failing = r#"{"message":"say so far\nfail no luck","sessionId":"session-3","executionId":"execution-3"}"#;
    let call = json(&client, "POST", &path, failing);
    let answer = stage.step((route, "failed"), call).await;
    let stream = std::str::from_utf8(&answer.body).unwrap();
    stage.event("error", stream, |frame| kind(frame) == "error");
    stage.event("done.failed", stream, |frame| kind(frame) == "done");
    let failed = agents(sandbox, "/sessions/session-3");
    stage
        .step(
            (&routes::SESSIONS_GET, "failed"),
            json(&client, "GET", &failed, ""),
        )
        .await;

    let path = agents(sandbox, "/run");
    let blocking = r#"{"message":"say hi","sessionId":"session-4","executionId":"execution-4"}"#;
    stage
        .step(
            (&routes::AGENTS_RUN, ""),
            json(&client, "POST", &path, blocking),
        )
        .await;
    let failing =
        r#"{"message":"fail no luck","sessionId":"session-4","executionId":"execution-5"}"#;
    let call = json(&client, "POST", &path, failing);
    let name = ("runtime.agent_execution_failed", 500);
    stage.refused(name, &routes::AGENTS_RUN, call).await;
}

/// Runs that go on: what is told of them meanwhile, and every way to end them.
pub async fn cancelled_runs(stage: &mut Stage, sandbox: &Sandbox<Running>) {
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
    let busy = r#"{"message":"say me too","sessionId":"session-6"}"#;
    let path = agents(sandbox, "/run/stream");
    let call = json(&client, "POST", &path, busy);
    let name = ("runtime.session_busy", 409);
    stage.refused(name, &routes::AGENTS_RUN_STREAM, call).await;
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
        let mut request = CancelRequest {
            operation_id: "operation-1".parse().unwrap(),
            request_digest: run.request_digest,
            run: run.clone(),
            reason: reason.map(|reason| reason.parse().unwrap()),
        };
        request.request_digest = request.digest();
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
    let name = ("runtime.cancel_digest", 400);
    let exchange = stage.exchange(&routes::SESSIONS_CANCEL_RUN, call).await.1;
    assert_eq!(exchange.response.unwrap().status(), name.1);
}

/// Sessions as records of their own.
pub async fn sessions(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let path = agents(sandbox, "/sessions");
    let body = r#"{"sessionId":"session-8","title":"Notes","backend":{"type":"scripted"}}"#;
    for (variant, status) in [("", 201), ("known", 200)] {
        let call = json(&client, "POST", &path, body);
        let answer = stage.step((&routes::SESSIONS_CREATE, variant), call).await;
        assert_eq!(answer.status, status);
    }
    let one = agents(sandbox, "/sessions/session-8");
    stage
        .step(
            (&routes::SESSIONS_DELETE, ""),
            json(&client, "DELETE", &one, ""),
        )
        .await;
    let call = json(&client, "GET", &one, "");
    let name = ("runtime.no_session", 404);
    stage.refused(name, &routes::SESSIONS_GET, call).await;
}

/// A turn that the provider dispatches. Only its request is kept: how much of the answer is read is left to chance.
pub async fn dispatch(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let environment = sandbox.environment().await.unwrap();
    let environment = environment.claim::<Detach>().unwrap();
    let turn = Turn::new("say hi")
        .turn("turn-9".parse().unwrap())
        .context("ticket", 7);
    let dispatched = environment.dispatch(turn);
    let dispatched = dispatched.into_future();
    let (run, exchange) = stage.exchange(&routes::AGENTS_RUN_STREAM, dispatched).await;
    let reference = run.unwrap().control_ref().clone();
    let hex = "[0-9a-f]{64}";
    stage
        .forms
        .learn("session", &reference.session_id, &format!("session-{hex}"));
    stage.forms.learn(
        "execution",
        &reference.execution_id,
        &format!("session-turn-{hex}"),
    );
    stage.keep_request((&routes::AGENTS_RUN_STREAM, "dispatch"), &exchange);
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
async fn ended(
    client: &tangle_sandbox::sandbox::Client,
    sandbox: &Sandbox<Running>,
    number: usize,
) {
    let path = format!("/sessions/session-{number}/events?executionId=execution-{number}");
    let answer = json(client, "GET", &agents(sandbox, &path), "").await;
    assert!(answer.body.ends_with(b"\n\n"));
}
