//! Environments: what a capability document proves, and a turn that is dispatched (wire protocol, 6 and 8.2; provider
//! runtime, 5.5, 7.3 and 8.2).

mod support {
    pub mod service;
}

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use support::service::{
    Answer, CANCEL, Clock, RUN, Seen, Service, a_moment, cut, events, frame, held, refusal, text,
    until,
};
use tangle_sandbox::claims::{Detach, Replay, RetainedControl};
use tangle_sandbox::contract::types::{
    BackendConfig, BackendInteractions, BackendModel, RequestedInteractions, RunControlRef, TurnId,
};
use tangle_sandbox::provider::{AnyEnvironment, Environment, PROVIDER, Running, Turn};
use tangle_sandbox::sandbox::{Deadline, Error};
use tangle_sandbox::transport::Code;

const CAPABILITIES: &str = "GET /v1/sandboxes/sbx_1/runtime/capabilities";
const STEP: Duration = Duration::from_millis(250);

type Worker = tangle_sandbox::claims![Detach];

fn document() -> Value {
    json!({
        "schema": 1, "agentInterface": "1", "sidecarVersion": "1", "image": "i@sha256:0",
        "dispatch": { "runControlRef": true, "executionIdOnAdmission": true },
        "cancel": { "canonicalRunCancellation": true, "digestBound": true, "idempotent": true },
        "runs": { "executionScopedStatus": true, "eventReplay": true },
        "interactions": {},
    })
}

async fn environment(service: &Service, answer: Answer) -> AnyEnvironment {
    let sandbox = service.running().await;
    service.always(CAPABILITIES, answer);
    sandbox.environment().await.unwrap()
}

async fn worker(service: &Service) -> Environment<Running, Worker> {
    let environment = environment(service, Answer::Json(200, document())).await;
    environment.claim::<Worker>().unwrap()
}

fn turn_id() -> TurnId {
    "turn_1".parse().unwrap()
}

/// The admission that echoes the request's reference, with these changes.
fn receipt(request: &Seen, change: impl FnOnce(&mut Value)) -> String {
    let request = request.json();
    let mut data = json!({
        "executionId": request["executionId"], "sessionId": request["sessionId"],
        "runControlRef": request["runControlRef"], "dispatched": true, "alreadyExisted": false,
        "status": "running",
    });
    change(&mut data);
    frame(1, "execution.started", data)
}

#[tokio::test]
async fn the_document_is_read_once_and_proves_what_it_says() {
    let service = Service::start().await;
    let environment = environment(&service, Answer::Json(200, document())).await;
    let proven: Vec<_> = environment.proven().collect();
    assert_eq!(
        proven,
        ["Detach", "Replay", "RetainedControl", "TurnIdempotency"]
    );
    assert_eq!(environment.id().as_str(), "sbx_1");
    assert_eq!(environment.capabilities().unwrap().image, "i@sha256:0");
    let both = environment.claim::<(Detach, RetainedControl)>().unwrap();
    let narrowed: Environment<Running, tangle_sandbox::claims![Replay]> = both.clone().narrow();
    drop((both, narrowed));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn wire_6_2_a_missing_flag_takes_what_rests_on_it_and_the_environment_comes_back() {
    let service = Service::start().await;
    let mut document = document();
    document["cancel"]
        .as_object_mut()
        .unwrap()
        .remove("digestBound");
    document["runs"]["eventReplay"] = json!(false);
    document["novelty"] = json!({ "flag": true });
    let environment = environment(&service, Answer::Json(200, document)).await;
    let unproven = environment
        .claim::<(Detach, RetainedControl)>()
        .unwrap_err();
    assert_eq!(unproven.missing().collect::<Vec<_>>(), ["RetainedControl"]);
    assert_eq!(
        unproven.unset_flags().collect::<Vec<_>>(),
        ["/cancel/digestBound", "/runs/eventReplay"]
    );
    assert!(
        unproven
            .to_string()
            .contains("does not prove RetainedControl"),
        "{unproven}"
    );
    let environment = unproven.environment.claim::<Detach>().unwrap();
    assert_eq!(
        environment.proven().collect::<Vec<_>>(),
        ["Detach", "TurnIdempotency"]
    );
}

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
async fn a_document_that_is_absent_newer_malformed_or_refused_claims_nothing() {
    let mut newer = document();
    newer["schema"] = json!(2);
    let mut text_schema = document();
    text_schema["schema"] = json!("1");
    let mut partial = document();
    partial.as_object_mut().unwrap().remove("cancel");
    let mut word = document();
    word["interactions"]["responseDedupe"] = json!("true");
    let twice = document().to_string().replacen('{', "{\"schema\":1,", 1);
    for (answer, warns) in [
        (
            refusal(404, "NOT_FOUND", json!({ "resourceType": "route" })),
            false,
        ),
        (refusal(404, "NOT_FOUND", json!({})), false),
        (refusal(501, "NOT_SUPPORTED", json!({})), false),
        (Answer::Json(200, newer), false),
        (Answer::Json(200, text_schema), true),
        (Answer::Json(200, partial), true),
        (Answer::Json(200, word), true),
        (Answer::Whole(200, "", twice.into_bytes()), true),
        (Answer::Whole(200, "", b"<html>".to_vec()), true),
        (refusal(500, "", json!({})), true),
        (refusal(403, "FORBIDDEN", json!({})), true),
    ] {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
        let service = Service::start().await;
        let environment = environment(&service, answer.clone()).await;
        assert_eq!(environment.proven().count(), 0, "{answer:?}");
        assert!(environment.capabilities().is_none());
        let why = environment.claims_nothing().unwrap();
        assert_eq!(why.is_warning(), warns, "{answer:?}");
        let unproven = environment.claim::<Detach>().unwrap_err();
        assert!(
            unproven
                .to_string()
                .starts_with("this deployment has no readable capability document"),
            "{unproven}"
        );
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let warned = log.contains("WARN") && log.contains("nothing is claimed");
        assert_eq!(warned, warns, "{answer:?}: {log}");
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_dispatch_sends_the_exact_reference_and_gives_it_back() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    service.on(RUN, |seen, _| held(&receipt(seen, |_| {})));
    let turn = Turn::new("tidy the docs")
        .turn(turn_id())
        .model("m-1")
        .deadline(Deadline::from_secs(60))
        .context("origin", "test")
        .interactions(RequestedInteractions::none().with("question".parse().unwrap(), true));
    let run = worker.dispatch(turn.clone()).await.unwrap();
    let reference = json!(run.control_ref());
    let sent = service.seen_on(RUN).remove(0).json();
    assert_eq!(sent["runControlRef"], reference);
    let fields: Vec<_> = reference.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "environmentId",
            "executionId",
            "provider",
            "requestDigest",
            "runId",
            "sessionId"
        ]
    );
    assert_eq!(reference["provider"], PROVIDER);
    assert_eq!(reference["environmentId"], "sbx_1");
    assert_eq!(reference["runId"], reference["executionId"]);
    let mut expected = json!({
        "message": "tidy the docs", "detach": true, "turnId": "turn_1", "timeoutMs": 60_000,
        "metadata": { "origin": "test" }, "interactions": { "question": true },
        "backend": { "model": { "model": "m-1" }, "interactions": { "question": true } },
    });
    for key in ["sessionId", "executionId"] {
        expected[key] = reference[key].clone();
    }
    expected["runControlRef"] = reference.clone();
    assert_eq!(sent, expected);
    // The stream is closed after the admission; that does not end the run, and neither does letting it go.
    until(|| service.left().len() == 1).await;
    drop(run);
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 0);
    // A reference survives being stored.
    let stored: RunControlRef = serde_json::from_value(reference.clone()).unwrap();
    // Wire protocol, 8.1: the same turn again is the same run, and it was not started twice.
    service.on(RUN, |seen, _| {
        held(&receipt(seen, |data| {
            data["dispatched"] = json!(false);
            data["alreadyExisted"] = json!(true);
        }))
    });
    let again = worker.dispatch(turn.clone()).await.unwrap();
    assert_eq!(again.control_ref(), &stored);
    // Another turn under the same key is another execution: the service can refuse it.
    let other = worker
        .dispatch(Turn::new("something else").turn(turn_id()))
        .await
        .unwrap();
    assert_ne!(other.control_ref().execution_id, stored.execution_id);
    assert_eq!(other.control_ref().session_id, stored.session_id);
}

#[tokio::test]
async fn a_dispatch_without_a_key_is_a_turn_of_its_own() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    service.on(RUN, |seen, _| held(&receipt(seen, |_| {})));
    let first = worker.dispatch("go").await.unwrap();
    let second = worker.dispatch("go").await.unwrap();
    assert_ne!(
        first.control_ref().execution_id,
        second.control_ref().execution_id
    );
    let session = Turn::new("go").session("ses_mine".parse().unwrap());
    let third = worker.dispatch(session).turn_id(turn_id()).await.unwrap();
    assert_eq!(third.control_ref().session_id.as_str(), "ses_mine");
    assert_eq!(service.seen_on(RUN)[2].json()["turnId"], "turn_1");
}

#[tokio::test]
async fn a_run_id_of_the_platforms_own_is_kept() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    service.on(RUN, |seen, _| {
        held(&receipt(seen, |data| {
            data["runControlRef"]["runId"] = json!("platform-7")
        }))
    });
    let run = worker.dispatch("go").await.unwrap();
    assert_eq!(run.control_ref().run_id.as_str(), "platform-7");
}

#[tokio::test]
async fn wire_8_3_a_receipt_of_another_run_or_of_none_is_refused() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let changes: [(&str, Value); 9] = [
        ("/sessionId", json!("ses_other")),
        ("/executionId", json!("exe_other")),
        ("/runControlRef/provider", json!("another")),
        ("/runControlRef/environmentId", json!("sbx_2")),
        ("/runControlRef/sessionId", json!("ses_other")),
        ("/runControlRef/executionId", json!("exe_other")),
        ("/runControlRef/requestDigest", json!(digest)),
        ("/runControlRef/requestDigest", json!("nonsense")),
        ("/runControlRef", Value::Null),
    ];
    for (pointer, value) in changes {
        let service = Service::start().await;
        let worker = worker(&service).await;
        let wrong = value.clone();
        service.on(RUN, move |seen, _| {
            held(&receipt(seen, |data| {
                *data.pointer_mut(pointer).unwrap() = wrong.clone()
            }))
        });
        let error = worker.dispatch("go").await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::ProtocolError,
            "{pointer} {value}: {error}"
        );
        assert!(!error.to_string().contains("_other"), "{error}");
        assert_eq!(service.seen_on(RUN).len(), 1);
    }
}

#[tokio::test]
async fn a_run_whose_receipt_is_refused_is_ended_only_if_this_call_started_it() {
    for (dispatched, existed, ends) in [
        (Some(true), Some(false), true),
        (Some(true), None, true),
        (Some(true), Some(true), false),
        (Some(false), Some(true), false),
        (None, None, false),
    ] {
        let service = Service::start().await;
        let worker = worker(&service).await;
        service.on(RUN, move |seen, _| {
            held(&receipt(seen, |data| {
                data["executionId"] = json!("exe_other");
                data["dispatched"] = json!(dispatched);
                data["alreadyExisted"] = json!(existed);
            }))
        });
        let error = worker.dispatch("go").await.unwrap_err();
        assert_eq!(error.code(), Code::ProtocolError);
        if ends {
            let cancel = service.until_seen(CANCEL, 1).await.remove(0).json();
            assert_eq!(cancel["executionId"], "exe_other");
        }
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), usize::from(ends));
    }
}

#[tokio::test]
async fn an_older_service_that_admits_by_another_event_has_no_reference() {
    for event in [
        frame(
            1,
            "start",
            json!({ "executionId": "exe_1", "sessionId": "s" }),
        ),
        frame(
            1,
            "status",
            json!({ "status": "running", "executionId": "exe_1" }),
        ),
        frame(1, "result", json!({ "finalText": "x" })),
    ] {
        let service = Service::start().await;
        let worker = worker(&service).await;
        service.on(RUN, move |_, _| held(&(text(0, "x") + &event)));
        let error = worker.dispatch("go").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "dispatch: the receipt has no run reference that can be read"
        );
    }
}

#[tokio::test]
async fn wire_8_2_a_stream_that_ends_before_the_admission_can_be_asked_for_again() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let worker = worker(&service).await;
    // The rejoin says that the service never saw the run.
    service.on(RUN, |_, nth| match nth {
        0 => cut(""),
        _ => refusal(404, "NOT_FOUND", json!({ "resourceType": "execution" })),
    });
    let dispatch = async { worker.dispatch("go").turn_id(turn_id()).await };
    let error = clock.drive(&service, STEP, dispatch).await.unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }));
    assert_eq!(error.code(), Code::StreamInterrupted);
    assert!(error.is_retryable());
    // Nobody answers any more.
    service.always(RUN, cut(""));
    let dispatch = async { worker.dispatch("go").turn_id(turn_id()).await };
    let error = clock.drive(&service, STEP, dispatch).await.unwrap_err();
    assert_eq!(error.code(), Code::StreamInterrupted);
    // The same turn again carries the same names.
    service.on(RUN, |seen, _| held(&receipt(seen, |_| {})));
    let dispatch = async { worker.dispatch("go").turn_id(turn_id()).await };
    let run = clock.drive(&service, STEP, dispatch).await.unwrap();
    let first = service.seen_on(RUN).remove(0).json();
    assert_eq!(json!(run.control_ref()), first["runControlRef"]);
    assert_eq!(service.seen_on(CANCEL).len(), 0);
}

#[tokio::test]
async fn a_lost_admission_is_read_by_a_rejoin_and_not_by_a_second_dispatch() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let worker = worker(&service).await;
    let first: Mutex<Option<Seen>> = Mutex::default();
    service.on(RUN, move |seen, nth| {
        let mut first = first.lock().unwrap();
        let receipt = receipt(first.get_or_insert_with(|| seen.clone()), |_| {});
        match nth {
            0 => cut(&receipt[..30]),
            _ => held(&receipt),
        }
    });
    let dispatch = async { worker.dispatch("go").await };
    drop(clock.drive(&service, STEP, dispatch).await.unwrap());
    let seen = service.seen_on(RUN);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].json()["message"], "");
}

#[tokio::test]
async fn what_the_service_says_before_the_admission_is_the_error() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    let error = frame(
        1,
        "error",
        json!({ "code": "NO_MODEL", "message": "no such model" }),
    );
    service.always(RUN, events(&error));
    let error = worker.dispatch("go").await.unwrap_err();
    assert_eq!(error.code(), Code::Other("NO_MODEL".into()));
    assert!(error.to_string().contains("no such model"), "{error}");
    service.always(RUN, refusal(409, "TURN_CONFLICT", json!({})));
    assert_eq!(
        worker.dispatch("go").await.unwrap_err().code(),
        Code::TurnConflict
    );
    service.always(RUN, refusal(409, "RUN_CONFLICT", json!({})));
    assert_eq!(
        worker.dispatch("go").await.unwrap_err().code(),
        Code::RunConflict
    );
}

#[tokio::test]
async fn a_turn_that_breaks_a_rule_sends_nothing() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    let kinds = || RequestedInteractions::none().with("question".parse().unwrap(), true);
    let block = |plan: bool| BackendConfig {
        interactions: Some(BackendInteractions {
            permission: None,
            question: Some(true),
            plan: Some(plan),
        }),
        ..BackendConfig::default()
    };
    let model = BackendConfig {
        model: Some(BackendModel {
            model: Some("b".parse().unwrap()),
            ..BackendModel::default()
        }),
        ..BackendConfig::default()
    };
    for (turn, path) in [
        (Turn::new(""), "/prompt"),
        (Turn::new("x").model("a").backend(model.clone()), "/model"),
        (Turn::new("x").model(""), ""),
        (Turn::new("x").deadline(Deadline::from_millis(0)), ""),
        (Turn::new("x").deadline(Deadline::new(Duration::MAX)), ""),
        (
            Turn::new("x").interactions(kinds()).backend(block(true)),
            "/interactions",
        ),
    ] {
        let error = worker.dispatch(turn).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError);
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(service.seen_on(RUN).len(), 0);
    // What agrees is sent: an absent kind is one that is not answered.
    service.on(RUN, |seen, _| held(&receipt(seen, |_| {})));
    let turn = Turn::new("x")
        .model("b")
        .interactions(kinds())
        .backend(BackendConfig {
            model: model.model,
            ..block(false)
        });
    drop(worker.dispatch(turn).await.unwrap());
}

#[tokio::test]
async fn a_secret_of_a_turn_is_in_its_body_and_in_no_digest() {
    let service = Service::start().await;
    let worker = worker(&service).await;
    service.on(RUN, |seen, _| held(&receipt(seen, |_| {})));
    let turn = |key: &str| {
        Turn::new("go").turn(turn_id()).backend(BackendConfig {
            model: Some(BackendModel {
                api_key: Some(key.into()),
                ..BackendModel::default()
            }),
            ..BackendConfig::default()
        })
    };
    let dispatch = worker.dispatch(turn("canary-1"));
    assert!(!format!("{dispatch:?} {:?} {worker:?}", turn("canary-2")).contains("canary"));
    let first = dispatch.await.unwrap();
    let second = worker.dispatch(turn("canary-2")).await.unwrap();
    assert_eq!(first.control_ref(), second.control_ref());
    let bodies = service.seen_on(RUN);
    assert!(String::from_utf8_lossy(&bodies[0].body).contains("canary-1"));
    assert!(String::from_utf8_lossy(&bodies[1].body).contains("canary-2"));
}
