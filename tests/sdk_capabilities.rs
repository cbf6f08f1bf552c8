//! When the capability document is asked for, and what an answer that is no document means (wire protocol, 6).

mod support {
    pub mod service;
}

use serde_json::json;
use support::service::{Answer, ID, Service, incarnation, ready};

const CAPABILITIES: &str = "GET /v1/sandboxes/sbx_1/runtime/capabilities";

#[tokio::test]
async fn wire_6_1_a_deployment_without_a_document_or_with_a_newer_one_proves_nothing() {
    let absent = json!({ "success": false, "error": { "code": "NOT_FOUND", "message": "no" } });
    for (status, body) in [(404, absent), (200, json!({ "schema": 2, "else": true }))] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.always(CAPABILITIES, Answer::Json(status, body));
        let environment = sandbox.environment().await.unwrap();
        assert!(environment.capabilities().is_none(), "{status}");
        assert_eq!(environment.proven().count(), 0, "{status}");
    }
}

#[tokio::test]
async fn wire_6_4_only_the_environment_of_a_ready_sandbox_asks_for_the_document() {
    let service = Service::start().await;
    let getting_ready = incarnation(ID, "provisioning", "transitioning");
    service.always(
        "POST /v1/sandboxes",
        Answer::Json(201, getting_ready.clone()),
    );
    service.on("GET /v1/sandboxes/sbx_1", move |_, nth| {
        let record = if nth < 2 {
            getting_ready.clone()
        } else {
            ready(ID)
        };
        Answer::Json(200, record)
    });
    let created = service.client().create("scripted").await.unwrap();
    let sandbox = created.wait_ready().await.unwrap();
    assert_eq!(service.seen_on(CAPABILITIES).len(), 0);
    sandbox.environment().await.unwrap();
    assert_eq!(service.seen_on(CAPABILITIES).len(), 1);
}
