//! Creating a sandbox: what is sent, how often, and what never shows (wire protocol, 2, 4.3 and 4.4).

mod support {
    pub mod service;
}

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::service::{Answer, Clock, Service, ready, record, refusal, waits};
use tangle_sandbox::contract::types::{CreateSandbox, IdempotencyKey};
use tangle_sandbox::contract::{Secret, from_value};
use tangle_sandbox::sandbox::{Deadline, Lifetime, NewSandbox};
use tangle_sandbox::transport::{Code, RetryPolicy};

const CREATE: &str = "POST /v1/sandboxes";
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn row_13_a_create_whose_reply_is_lost_three_times_has_one_key_and_one_body() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(CREATE, |_, nth| match nth {
        0..3 => Answer::Drop,
        _ => Answer::Json(201, ready("sbx_1")),
    });
    let policy = RetryPolicy {
        attempts: 4,
        ..RetryPolicy::default()
    };
    let client = service.builder().retry(policy).build().unwrap();
    let create = client.create(NewSandbox::new().name("docs"));
    let sandbox = clock.drive(&service, SECOND, create).await.unwrap();
    assert_eq!(sandbox.id().as_str(), "sbx_1");
    let seen = service.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen[0].json()["idempotencyKey"].is_string());
    for again in &seen[1..] {
        assert_eq!(again.body, seen[0].body);
    }
}

#[tokio::test]
async fn a_create_waits_between_repeats_as_lifecycle_operations_do() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.on(CREATE, |_, nth| match nth {
        0 | 1 => refusal(502, "", json!({})),
        _ => Answer::Json(201, ready("sbx_1")),
    });
    let client = service.client();
    clock
        .drive(&service, SECOND, client.create(NewSandbox::new()))
        .await
        .unwrap();
    waits(&service.seen(), &[SECOND * 5, SECOND * 10], SECOND);
}

#[tokio::test]
async fn each_create_has_a_key_of_its_own_unless_the_caller_names_one() {
    let service = Service::start().await;
    service.always(CREATE, Answer::Json(201, ready("sbx_1")));
    let client = service.client();
    let key = IdempotencyKey::new("my-key").unwrap();
    client.create(NewSandbox::new()).await.unwrap();
    client.create(NewSandbox::new()).await.unwrap();
    let named = NewSandbox::new().idempotency_key(key);
    client.create(named.clone()).await.unwrap();
    client.create(named).await.unwrap();
    let keys: Vec<_> = service
        .seen()
        .iter()
        .map(|seen| seen.json()["idempotencyKey"].as_str().unwrap().to_owned())
        .collect();
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[2..], ["my-key", "my-key"]);
    assert!(service.seen().iter().all(|seen| {
        seen.header("idempotency-key").is_none()
            && seen.header("authorization") == Some("Bearer key-of-the-test")
    }));
}

#[tokio::test]
async fn a_replayed_create_says_so_and_its_receipt_stays_through_the_wait() {
    let service = Service::start().await;
    let mut created = record("sbx_1", "provisioning");
    created["createReceipt"] = json!({
        "outcome": "idempotent_replay", "idempotencyKeyApplied": true,
    });
    service
        .always(CREATE, Answer::Json(200, created))
        .always("GET /v1/sandboxes/sbx_1", Answer::Json(200, ready("sbx_1")));
    let sandbox = service.client().create("opencode").await.unwrap();
    let before = sandbox.receipt().cloned().unwrap();
    let sandbox = sandbox.wait_ready().await.unwrap();
    assert_eq!(sandbox.receipt(), Some(&before));
    assert!(before.idempotency_key_applied);
    assert_eq!(
        serde_json::to_value(&before).unwrap()["outcome"],
        "idempotent_replay"
    );
}

#[tokio::test]
async fn a_record_that_is_read_has_no_receipt() {
    let service = Service::start().await;
    let mut read = ready("sbx_1");
    read["createReceipt"] = json!({ "outcome": "created", "idempotencyKeyApplied": true });
    service.always("GET /v1/sandboxes/sbx_1", Answer::Json(200, read));
    let found = service.client().get(&"sbx_1".parse().unwrap()).await;
    let sandbox = found.unwrap().unwrap().into_running().await.unwrap();
    assert_eq!(sandbox.receipt(), None);
}

#[tokio::test]
async fn wire_4_8_a_broken_rule_sends_nothing() {
    let service = Service::start().await;
    let client = service.client();
    let broken = |value: Value| from_value::<CreateSandbox>(value);
    for (request, path) in [
        (
            json!({ "git": { "url": "https://h/r", "depth": 0 } }),
            "/git/depth",
        ),
        (
            json!({ "network": { "allowList": vec!["10.0.0.0/8"; 11] } }),
            "/network/allowList",
        ),
        (json!({ "fromSandboxId": "sbx_2" }), ""),
        (
            json!({ "backend": { "profile": { "harness": "claude" } } }),
            "/backend/profile/harness",
        ),
    ] {
        let refused = broken(request).unwrap_err();
        assert_eq!(refused.path(), path);
    }
    let network = json!({ "network": { "blockOutbound": true, "allowList": ["10.0.0.0/8"] } });
    for request in [
        NewSandbox::from(broken(network).unwrap()),
        NewSandbox::new().name(&"n".repeat(16_385)),
        NewSandbox::new().model_endpoint("https://user:pw@host", "key"),
        NewSandbox::new().lifetime(Lifetime::from_secs(u64::MAX)),
        NewSandbox::new().idle_timeout(Lifetime::new(Duration::MAX)),
    ] {
        let error = client.create(request).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError);
        assert!(
            error.to_string().starts_with("the request was not sent: /"),
            "{error}"
        );
        assert!(!error.to_string().contains("pw@"), "{error}");
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn a_field_that_the_deployment_cannot_honour_is_named() {
    let service = Service::start().await;
    let fields = json!({ "fields": { "/git": "this deployment clones nothing" } });
    service.always(CREATE, refusal(501, "NOT_SUPPORTED", fields));
    let error = service.client().create("opencode").await.unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    let fields = error.failure().unwrap().detail("fields").unwrap();
    assert_eq!(fields["/git"], "this deployment clones nothing");
    assert!(!error.is_retryable());
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn wire_2_2_another_request_under_the_same_key_is_a_typed_conflict() {
    let service = Service::start().await;
    service.always(CREATE, refusal(409, "IDEMPOTENCY_CONFLICT", json!({})));
    let error = service.client().create("opencode").await.unwrap_err();
    assert_eq!(error.code(), Code::IdempotencyConflict);
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn the_time_a_create_may_take_is_not_the_time_a_sandbox_may_live() {
    let service = Service::start().await;
    let clock = Clock::stop();
    service.always(CREATE, Answer::Never);
    let client = service
        .builder()
        .request_deadline(Deadline::from_secs(1))
        .retry(RetryPolicy::OFF)
        .build()
        .unwrap();
    let request = NewSandbox::new().lifetime(Lifetime::from_minutes(30));
    let started = tokio::time::Instant::now();
    let created = clock
        .drive(&service, SECOND * 10, client.create(request))
        .await;
    assert_eq!(created.unwrap_err().code(), Code::Timeout);
    // A create may take as long as a sandbox needs to get ready.
    let waited = started.elapsed();
    assert!(
        waited >= SECOND * 120 && waited <= SECOND * 140,
        "{waited:?}"
    );
    let body = service.seen()[0].json();
    assert_eq!(body["maxLifetimeSeconds"], 1800);
    assert_eq!(body.get("timeoutMs"), None);
}

/// What is written to it, all together.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_secret_is_in_the_body_and_nowhere_else() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    let service = Service::start().await;
    let canaries: Vec<_> = (0..8).map(|n| format!("canary-{n}-")).collect();
    let request = json!({
        "git": { "url": "https://h/r", "auth": { "token": canaries[0] } },
        "backend": {
            "type": "opencode",
            "model": {
                "apiKey": canaries[1],
                "authFiles": [{ "path": "auth.json", "content": canaries[2] }],
            },
            "runtimeSecrets": { "TOKEN": canaries[3] },
        },
        "storage": {
            "type": "s3", "bucket": "b",
            "credentials": { "accessKeyId": canaries[4], "secretAccessKey": canaries[5] },
        },
    });
    let request = from_value::<CreateSandbox>(request).unwrap();
    let mut answer = ready("sbx_1");
    answer["connection"] = json!({ "authToken": canaries[6] });
    service.on(CREATE, move |_, nth| match nth {
        0 => Answer::Json(201, answer.clone()),
        _ => refusal(
            400,
            "VALIDATION_ERROR",
            json!({ "message": "Bearer canary-7-" }),
        ),
    });
    let client = service.builder().build().unwrap();
    let key = Secret::from("key-of-the-test");
    let mut shown = format!("{request:?} {key:?} {client:?} {:?}", service.builder());
    let created = client.create(request.clone()).await.unwrap();
    shown += &format!("{created:?} {:?} ", created.record());
    let sandbox = created.wait_ready().await.unwrap();
    shown += &format!("{sandbox:?} {:?} ", sandbox.record());
    let error = client.create(NewSandbox::from(request)).await.unwrap_err();
    shown += &format!("{error:?} {error}");
    let body = String::from_utf8(service.seen()[0].body.clone()).unwrap();
    for canary in &canaries[..6] {
        assert!(body.contains(canary), "{canary} is not in the body");
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("TRACE"), "the log is off");
    for text in [shown, log] {
        assert!(!text.contains("canary"), "{text}");
        assert!(!text.contains("key-of-the-test"), "{text}");
    }
}
