//! Refusals: both error envelopes, every status and code of the slice.

use tangle_sandbox::contract::routes;
use tangle_sandbox::contract::types::SandboxId;
use tangle_sandbox::sandbox::{Running, Sandbox};

use super::stage::{BODY_LIMIT, CREATE_LIMIT, Stage, json};

/// A request that is refused: the snapshot's name, the status, method, path below the plane, body.
type Refused<'a> = (&'a str, u16, &'a str, &'a str, &'a str);

/// In the envelope of the control plane.
const CONTROL: &[Refused<'_>] = &[
    (
        "control.unknown_field",
        400,
        "POST",
        "/sandboxes",
        r#"{"nmae":"docs"}"#,
    ),
    (
        "control.rule",
        400,
        "POST",
        "/sandboxes",
        r#"{"network":{"blockOutbound":true,"allowList":["10.0.0.0/8"]}}"#,
    ),
    (
        "control.not_json",
        400,
        "POST",
        "/sandboxes",
        r#"{"name":"a","name":"b"}"#,
    ),
    ("control.query", 400, "GET", "/sandboxes?limit=1001", ""),
    ("control.no_sandbox", 404, "GET", "/sandboxes/none", ""),
    ("control.no_route", 404, "GET", "/nothing", ""),
    ("control.method", 405, "PUT", "/sandboxes", ""),
    (
        "control.idempotency_conflict",
        409,
        "POST",
        "/sandboxes",
        r#"{"name":"other","idempotencyKey":"create-1"}"#,
    ),
    (
        "control.field_not_supported",
        501,
        "POST",
        "/sandboxes",
        r#"{"git":{"url":"https://example.com/r.git"}}"#,
    ),
    (
        "control.route_not_supported",
        501,
        "GET",
        "/router-models",
        "",
    ),
];

/// In the envelope of the runtime.
const RUNTIME: &[Refused<'_>] = &[
    (
        "runtime.not_base64",
        400,
        "POST",
        RUN,
        r#"{"parts":[{"type":"text","text":"***"}]}"#,
    ),
    (
        "runtime.two_inputs",
        400,
        "POST",
        RUN,
        r#"{"message":"a","parts":[{"type":"text","text":"aGk="}]}"#,
    ),
    (
        "runtime.cursor_without_execution",
        400,
        "POST",
        RUN,
        r#"{"message":"","lastEventId":"1"}"#,
    ),
    (
        "runtime.backend_not_installed",
        400,
        "POST",
        RUN,
        r#"{"message":"say hi","backend":{"type":"opencode"}}"#,
    ),
    (
        "runtime.outside",
        403,
        "POST",
        "/files/write",
        r#"{"path":"../x","content":""}"#,
    ),
    (
        "runtime.no_file",
        404,
        "POST",
        "/files/read",
        r#"{"path":"none.txt"}"#,
    ),
    (
        "runtime.no_execution",
        404,
        "POST",
        RUN,
        r#"{"message":"","sessionId":"session-1","executionId":"none","lastEventId":"0"}"#,
    ),
    ("runtime.no_route", 404, "GET", "/nothing", ""),
    ("runtime.method", 405, "PUT", "/capabilities", ""),
    (
        "runtime.field_not_supported",
        501,
        "POST",
        RUN,
        r#"{"messages":[{"role":"user","content":"hi"}]}"#,
    ),
    ("runtime.route_not_supported", 501, "GET", "/terminals", ""),
    (
        "runtime.exec_timeout",
        504,
        "POST",
        EXEC,
        r#"{"command":"sleep 60","timeout":100}"#,
    ),
];
const RUN: &str = "/agents/run/stream";
const EXEC: &str = "/terminals/commands";

async fn all(stage: &mut Stage, base: &str, refused: &[Refused<'_>]) {
    for (name, status, method, path, body) in refused {
        let path = format!("{base}{path}");
        stage.refuse((name, *status), (method, &path), body).await;
    }
}

/// Refusals in the envelope of the control plane.
pub async fn control(stage: &mut Stage) {
    all(stage, "/v1", CONTROL).await;
    let large = format!(r#"{{"name":"{}"}}"#, "n".repeat(CREATE_LIMIT));
    let name = ("control.payload_too_large", 413);
    stage.refuse(name, ("POST", "/v1/sandboxes"), &large).await;
    let client = stage.client.clone();
    let headers = [("idempotency-key", "create-3")];
    let body = r#"{"idempotencyKey":"create-2"}"#.into();
    let call = client.fetch("POST", "/v1/sandboxes", &headers, Some(body));
    let answer = stage
        .refused(("control.two_keys", 400), &routes::SANDBOXES_CREATE, call)
        .await;
    assert_eq!(answer.unwrap().status, 400);

    let stranger = stage.stranger();
    let call = json(&stranger, "GET", "/v1/sandboxes", "");
    let name = ("control.wrong_credential", 401);
    stage.refused(name, &routes::SANDBOXES_LIST, call).await;
    let name = ("control.no_credential", 401);
    without_credential(stage, name, "/v1/sandboxes").await;
}

/// Refusals in the envelope of the runtime.
pub async fn runtime(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let base = format!("/v1/sandboxes/{}/runtime", sandbox.id());
    all(stage, &base, RUNTIME).await;
    let large = format!(r#"{{"command":"{}"}}"#, "n".repeat(BODY_LIMIT));
    let (name, path) = (("runtime.payload_too_large", 413), format!("{base}{EXEC}"));
    stage.refuse(name, ("POST", &path), &large).await;

    let path = format!("{base}/capabilities");
    let stranger = stage.stranger();
    let call = json(&stranger, "GET", &path, "");
    let name = ("runtime.wrong_credential", 403);
    stage.refused(name, &routes::CAPABILITIES, call).await;
    let name = ("runtime.no_credential", 401);
    without_credential(stage, name, &path).await;
}

/// What needs a running sandbox.
pub async fn of_a_stopped_sandbox(stage: &mut Stage, id: &SandboxId) {
    let base = format!("/v1/sandboxes/{id}/runtime");
    let refused = (
        "runtime.stopped",
        409,
        "POST",
        EXEC,
        r#"{"command":"true"}"#,
    );
    all(stage, &base, &[refused]).await;
}

/// What is left of a sandbox: nothing.
pub async fn of_a_deleted_sandbox(stage: &mut Stage, id: &SandboxId) {
    let base = format!("/v1/sandboxes/{id}");
    let refused = [
        ("control.deleted", 404, "DELETE", "", ""),
        (
            "runtime.no_sandbox",
            404,
            "GET",
            "/runtime/capabilities",
            "",
        ),
    ];
    all(stage, &base, &refused).await;
}

/// A request without a credential, which no client of ours can send.
async fn without_credential(stage: &mut Stage, (name, status): (&str, u16), path: &str) {
    let host = stage.recorder.host();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let sent = stage.recorder.send(&request);
    let ((), exchange) = stage.exchange_of("GET", path, sent).await;
    stage.keep_refusal((name, status), &exchange);
}
