//! What becomes of a prompt whose stream does not tell its end (wire protocol, 7.6 and 7.8).

mod support {
    pub mod service;
}

use serde_json::json;
use support::service::{Answer, ID, RUN, Service, admission, cut, data, text};
use tangle_sandbox::sandbox::{Prompt, PromptStatus};

#[tokio::test]
async fn wire_7_11_a_500_of_the_route_is_a_failed_result() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let refused = json!({
        "success": false,
        "error": { "code": "AGENT_EXECUTION_FAILED", "message": "no luck" },
    });
    service.always(RUN, Answer::Json(500, refused));
    let result = sandbox.prompt("say hello").await.unwrap();
    assert_eq!(result.status, PromptStatus::Failed);
    assert!(!result.success());
    assert_eq!(result.error_code.as_deref(), Some("AGENT_EXECUTION_FAILED"));
    assert_eq!(service.seen_on(RUN).len(), 1);
}

#[tokio::test]
async fn wire_7_15_a_rejoin_at_the_end_is_no_cut_and_gives_the_recorded_result() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&(admission(seen) + &text(2, "Hel"))),
        _ => Answer::Whole(204, "", Vec::new()),
    });
    let recorded = json!({
        "executionId": "execution-1", "sessionId": "session-1",
        "status": "completed", "finalText": "Hello",
    });
    let route =
        format!("GET /v1/sandboxes/{ID}/runtime/agents/sessions/session-1/runs/execution-1/result");
    service.always(&route, data(recorded));

    let prompt = Prompt::new("say hello")
        .session("session-1".parse().unwrap())
        .execution("execution-1".parse().unwrap());
    let mut run = sandbox.stream(prompt).await.unwrap();
    while let Some(event) = run.next().await {
        assert_ne!(event.unwrap().name, "error");
    }
    let result = run.result().await.unwrap();
    assert_eq!(result.status, PromptStatus::Success);
    assert_eq!(result.text(), "Hello");
    let rejoin = service.seen_on(RUN).pop().unwrap().json();
    assert_eq!(rejoin["lastEventId"], "2");
}
