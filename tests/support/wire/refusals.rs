//! Refusals: both error envelopes, every status and code of the slice.

use tangle_sandbox::contract::routes::{self, Route};
use tangle_sandbox::contract::types::SandboxId;
use tangle_sandbox::sandbox::{Running, Sandbox};

use super::stage::{BODY_LIMIT, CREATE_LIMIT, Stage, json};

/// A request that is refused: the snapshot's name, the status, the route that answers, method, path, body.
type Refused<'a> = (&'a str, u16, &'a Route, &'a str, &'a str, &'a str);

async fn all(stage: &mut Stage, base: &str, refused: &[Refused<'_>]) {
    for (name, status, route, method, path, body) in refused {
        let client = stage.client.clone();
        let path = format!("{base}{path}");
        let call = json(&client, method, &path, body);
        stage.refused((name, *status), route, call).await;
    }
}

/// A route that is asked for by another method or under another path than the table's.
const fn elsewhere(method: routes::Method, template: &'static str) -> Route {
    Route {
        template,
        method,
        ..routes::HEALTH
    }
}

/// Refusals in the envelope of the control plane.
pub async fn control(stage: &mut Stage) {
    let large = format!(r#"{{"name":"{}"}}"#, "n".repeat(CREATE_LIMIT));
    let create = &routes::SANDBOXES_CREATE;
    let nowhere = elsewhere(routes::Method::Get, "/v1/nothing");
    let put = elsewhere(routes::Method::Put, "/v1/sandboxes");
    let account =
        |name, status, route, method, path, body| (name, status, route, method, path, body);
    let refused: Vec<Refused<'_>> = vec![
        account(
            "control.unknown_field",
            400,
            create,
            "POST",
            "/sandboxes",
            r#"{"nmae":"docs"}"#,
        ),
        account(
            "control.rule",
            400,
            create,
            "POST",
            "/sandboxes",
            r#"{"network":{"blockOutbound":true,"allowList":["10.0.0.0/8"]}}"#,
        ),
        account(
            "control.not_json",
            400,
            create,
            "POST",
            "/sandboxes",
            r#"{"name":"a","name":"b"}"#,
        ),
        account(
            "control.query",
            400,
            &routes::SANDBOXES_LIST,
            "GET",
            "/sandboxes?limit=1001",
            "",
        ),
        account(
            "control.no_sandbox",
            404,
            &routes::SANDBOXES_GET,
            "GET",
            "/sandboxes/none",
            "",
        ),
        account("control.no_route", 404, &nowhere, "GET", "/nothing", ""),
        account("control.method", 405, &put, "PUT", "/sandboxes", ""),
        account(
            "control.idempotency_conflict",
            409,
            create,
            "POST",
            "/sandboxes",
            r#"{"name":"other","idempotencyKey":"create-1"}"#,
        ),
        account(
            "control.payload_too_large",
            413,
            create,
            "POST",
            "/sandboxes",
            &large,
        ),
        account(
            "control.field_not_supported",
            501,
            create,
            "POST",
            "/sandboxes",
            r#"{"git":{"url":"https://example.com/r.git"}}"#,
        ),
        account(
            "control.route_not_supported",
            501,
            &routes::MODELS,
            "GET",
            "/router-models",
            "",
        ),
    ];
    all(stage, "/v1", &refused).await;

    let client = stage.client.clone();
    let headers = [("idempotency-key", "create-3")];
    let body = r#"{"idempotencyKey":"create-2"}"#.into();
    let call = client.fetch("POST", "/v1/sandboxes", &headers, Some(body));
    let answer = stage.refused(("control.two_keys", 400), create, call).await;
    assert_eq!(answer.unwrap().status, 400);

    let stranger = stage.stranger();
    let call = json(&stranger, "GET", "/v1/sandboxes", "");
    let name = ("control.wrong_credential", 401);
    stage.refused(name, &routes::SANDBOXES_LIST, call).await;
    let name = ("control.no_credential", 401);
    without_credential(stage, name, &routes::SANDBOXES_LIST, "/v1/sandboxes").await;
}

/// Refusals in the envelope of the runtime.
pub async fn runtime(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let large = format!(r#"{{"command":"{}"}}"#, "n".repeat(BODY_LIMIT));
    let (stream, exec) = (&routes::AGENTS_RUN_STREAM, &routes::EXEC);
    let (run, commands) = ("/agents/run/stream", "/terminals/commands");
    let nowhere = elsewhere(routes::Method::Get, "/v1/sandboxes/{id}/runtime/nothing");
    let put = elsewhere(
        routes::Method::Put,
        "/v1/sandboxes/{id}/runtime/capabilities",
    );
    let base = format!("/v1/sandboxes/{}/runtime", sandbox.id());
    let refused: Vec<Refused<'_>> = vec![
        (
            "runtime.not_base64",
            400,
            stream,
            "POST",
            run,
            r#"{"parts":[{"type":"text","text":"***"}]}"#,
        ),
        (
            "runtime.two_inputs",
            400,
            stream,
            "POST",
            run,
            r#"{"message":"a","parts":[{"type":"text","text":"aGk="}]}"#,
        ),
        (
            "runtime.cursor_without_execution",
            400,
            stream,
            "POST",
            run,
            r#"{"message":"","lastEventId":"1"}"#,
        ),
        (
            "runtime.backend_not_installed",
            400,
            stream,
            "POST",
            run,
            r#"{"message":"say hi","backend":{"type":"opencode"}}"#,
        ),
        (
            "runtime.outside",
            403,
            &routes::FILES_WRITE,
            "POST",
            "/files/write",
            r#"{"path":"../x","content":""}"#,
        ),
        (
            "runtime.no_file",
            404,
            &routes::FILES_READ,
            "POST",
            "/files/read",
            r#"{"path":"none.txt"}"#,
        ),
        (
            "runtime.no_execution",
            404,
            stream,
            "POST",
            run,
            r#"{"message":"","sessionId":"session-1","executionId":"none","lastEventId":"0"}"#,
        ),
        ("runtime.no_route", 404, &nowhere, "GET", "/nothing", ""),
        ("runtime.method", 405, &put, "PUT", "/capabilities", ""),
        (
            "runtime.payload_too_large",
            413,
            exec,
            "POST",
            commands,
            &large,
        ),
        (
            "runtime.field_not_supported",
            501,
            stream,
            "POST",
            run,
            r#"{"messages":[{"role":"user","content":"hi"}]}"#,
        ),
        (
            "runtime.route_not_supported",
            501,
            &routes::TERMINALS_LIST,
            "GET",
            "/terminals",
            "",
        ),
        (
            "runtime.exec_timeout",
            504,
            exec,
            "POST",
            commands,
            r#"{"command":"sleep 60","timeout":100}"#,
        ),
    ];
    all(stage, &base, &refused).await;

    let path = format!("{base}/capabilities");
    let stranger = stage.stranger();
    let call = json(&stranger, "GET", &path, "");
    let name = ("runtime.wrong_credential", 403);
    stage.refused(name, &routes::CAPABILITIES, call).await;
    let name = ("runtime.no_credential", 401);
    without_credential(stage, name, &routes::CAPABILITIES, &path).await;
}

/// What needs a running sandbox.
pub async fn of_a_stopped_sandbox(stage: &mut Stage, id: &SandboxId) {
    let path = format!("/v1/sandboxes/{id}/runtime/terminals/commands");
    let refused = (
        "runtime.stopped",
        409,
        &routes::EXEC,
        "POST",
        "",
        r#"{"command":"true"}"#,
    );
    all(stage, &path, &[refused]).await;
}

/// What is left of a sandbox: nothing, and its key.
pub async fn of_a_deleted_sandbox(stage: &mut Stage, id: &SandboxId) {
    let path = format!("/v1/sandboxes/{id}");
    let refused: [Refused<'_>; 2] = [
        (
            "control.deleted",
            404,
            &routes::SANDBOXES_DELETE,
            "DELETE",
            "",
            "",
        ),
        (
            "runtime.no_sandbox",
            404,
            &routes::CAPABILITIES,
            "GET",
            "/runtime/capabilities",
            "",
        ),
    ];
    all(stage, &path, &refused).await;
}

/// A request without a credential, which no client of ours can send.
async fn without_credential(
    stage: &mut Stage,
    (name, status): (&str, u16),
    route: &Route,
    path: &str,
) {
    let host = stage.recorder.host();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let sent = stage.recorder.send(&request);
    let ((), exchange) = stage.exchange(route, sent).await;
    stage.keep_refusal((name, status), &exchange);
}
