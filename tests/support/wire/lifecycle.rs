//! Account routes and the life of a sandbox, the runtime's health and capabilities.

use tangle_sandbox::contract::routes;
use tangle_sandbox::contract::types::SandboxId;
use tangle_sandbox::sandbox::{Deleted, Lifetime, ListOptions, NewSandbox, Running, Sandbox};
use tangle_sandbox::transport::Response;
use tokio::task::JoinHandle;

use super::stage::{Stage, json};

/// What is asked for; every fixed value that a create may have here.
fn wanted() -> NewSandbox {
    NewSandbox::new()
        .name("docs")
        .backend("scripted")
        .env("LANGUAGE", "en")
        .metadata("team", "écrivains")
        .idle_timeout(Lifetime::from_minutes(30))
        .idempotency_key("create-1".parse().unwrap())
}

/// Before there is a sandbox: health, backends, create.
pub async fn begin(stage: &mut Stage) -> Sandbox<Running> {
    let client = stage.client.clone();
    stage
        .step((&routes::HEALTH, ""), client.health())
        .await
        .unwrap();
    stage
        .step((&routes::BACKENDS, ""), client.list_backends())
        .await
        .unwrap();

    let (created, exchange) = stage
        .exchange(&routes::SANDBOXES_CREATE, client.create(wanted()))
        .await;
    let created = created.unwrap();
    stage
        .forms
        .learn("sandbox", created.id(), "sbx_[a-z2-7]{26}");
    stage.keep((&routes::SANDBOXES_CREATE, ""), &exchange);

    let sandbox = stage
        .step((&routes::SANDBOXES_GET, ""), created.wait_ready())
        .await
        .unwrap();
    let again = stage
        .step(
            (&routes::SANDBOXES_CREATE, "replay"),
            client.create(wanted()),
        )
        .await;
    assert_eq!(again.unwrap().id(), sandbox.id());
    sandbox
}

/// What the account tells of the sandbox, and its runtime of itself.
pub async fn read(stage: &mut Stage, sandbox: &Sandbox<Running>) {
    let client = stage.client.clone();
    let listed = client.inventory(ListOptions::new().page(50));
    let listed = stage.step((&routes::SANDBOXES_LIST, ""), listed).await;
    assert_eq!(listed.unwrap().len(), 1);

    let at = format!("/v1/sandboxes/{}", sandbox.id());
    let patch = json(&client, "PATCH", &at, r#"{"idleTimeoutSeconds":600}"#);
    stage.step((&routes::SANDBOXES_PATCH, ""), patch).await;
    let driver = format!("{at}/driver");
    stage
        .step(
            (&routes::SANDBOXES_DRIVER, ""),
            json(&client, "GET", &driver, ""),
        )
        .await;

    let health = format!("{at}/runtime/health");
    stage
        .step(
            (&routes::RUNTIME_HEALTH, ""),
            json(&client, "GET", &health, ""),
        )
        .await;
    let detailed = format!("{health}/detailed");
    stage
        .step(
            (&routes::RUNTIME_HEALTH_DETAILED, ""),
            json(&client, "GET", &detailed, ""),
        )
        .await;
    let environment = stage
        .step((&routes::CAPABILITIES, ""), sandbox.environment())
        .await
        .unwrap();
    assert!(environment.capabilities().is_some());
}

/// Stop, resume, delete; in between, what a stopped sandbox refuses.
pub async fn end(stage: &mut Stage, sandbox: Sandbox<Running>) {
    let stopped = stage
        .step((&routes::SANDBOXES_STOP, ""), sandbox.stop())
        .await
        .unwrap();
    super::refusals::of_a_stopped_sandbox(stage, stopped.id()).await;
    let resumed = stage
        .step((&routes::SANDBOXES_RESUME, ""), stopped.resume())
        .await
        .unwrap();
    let sandbox = resumed.wait_ready().await.unwrap();
    let id = sandbox.id().clone();
    let (point, changes) = changes(stage, &id).await;
    let deleted = stage
        .step((&routes::SANDBOXES_DELETE, ""), sandbox.delete())
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::Destroyed);
    let stream = changes.await.unwrap();
    stage.keep_since(point, (&routes::SANDBOXES_EVENTS, ""));
    let stream = String::from_utf8(stream.body.to_vec()).unwrap();
    for kind in ["sandbox.status", "sandbox.deleted"] {
        stage.event(kind, &stream, |frame| super::stage::kind(frame) == kind);
    }
    super::refusals::of_a_deleted_sandbox(stage, &id).await;
}

/// Opens the stream of a sandbox's changes, waits until those so far have come, and leaves it open: gives the point
/// in the record before it, and what will read it to its end.
async fn changes(stage: &Stage, id: &SandboxId) -> (usize, JoinHandle<Response>) {
    let (client, point) = (stage.client.clone(), stage.recorder.now());
    let path = format!("/v1/sandboxes/{id}/events");
    let reading = tokio::spawn(async move { json(&client, "GET", &path, "").await });
    let began = stage.recorder.until(point, |exchanges| {
        let stream = exchanges.first()?.response.as_ref()?;
        stream.text().contains("\n\n").then_some(())
    });
    began.await;
    (point, reading)
}
