//! Runs of the scripted agent, their sessions, and every type of event that they send.

use tangle_sandbox::claims::Detach;
use tangle_sandbox::contract::routes;
use tangle_sandbox::provider::Turn;
use tangle_sandbox::sandbox::{Prompt, PromptStatus, Running, Sandbox};

use super::forms::GIVEN_DIGEST;
use super::render;
use super::stage::{Stage, json, kind};

/// One of everything that the agent can do without being asked.
const EVERYTHING: &str = "think hm\nsay Hello\nrun printf out\nwrite notes/a.txt A \"note\"\\n\nplan one|two\nfuture\n\
                          ask May I?\nquestion Which?|A|B\nsay Done";

/// A prompt in a session and under an execution of this number.
pub fn prompt(text: &str, number: usize) -> Prompt {
    Prompt::new(text)
        .session(format!("session-{number}").parse().unwrap())
        .execution(format!("execution-{number}").parse().unwrap())
}

/// A path below the agents of a sandbox.
pub fn agents(sandbox: &Sandbox<Running>, path: &str) -> String {
    format!("/v1/sandboxes/{}/runtime/agents{path}", sandbox.id())
}

/// A run from its admission to its end, its rejoins, its record.
pub async fn whole_run(stage: &mut Stage, sandbox: &Sandbox<Running>) {
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
    rejoins(stage, sandbox, newest).await;
    records(stage, sandbox, newest).await;
}

/// The first run again, after cursors: one near its end, its end, one that was never issued.
async fn rejoins(stage: &mut Stage, sandbox: &Sandbox<Running>, newest: usize) {
    let client = stage.client.clone();
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
}

/// What is told of the first run and its session.
async fn records(stage: &mut Stage, sandbox: &Sandbox<Running>, newest: usize) {
    let client = stage.client.clone();
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

/// Events by the name of their snapshot and their kind: each type, and each kind of part as it grows and as it ends.
const BY_KIND: &[(&str, &str)] = &[
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

/// Events by the name of their snapshot, their kind and a piece of their data.
const BY_DATA: &[(&str, &str, &str)] = &[
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
];

fn events_of_everything(stage: &mut Stage, stream: &str) {
    for (name, wanted) in BY_KIND {
        stage.event(name, stream, |frame| kind(frame) == *wanted);
    }
    for (name, wanted, part) in BY_DATA {
        let fits = |frame: &str| {
            let data = render::data(frame).unwrap_or_default();
            kind(frame).starts_with(wanted) && data.contains(part)
        };
        stage.event(name, stream, fits);
    }
}

/// A run with everything that a request can carry beside its input, and its repeats under its turn and its execution.
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
}

/// A run that fails, as a stream and waited for, and one that is waited for and succeeds.
pub async fn failed_runs(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let (route, path) = (&routes::AGENTS_RUN_STREAM, agents(sandbox, "/run/stream"));
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
