//! The life of a sandbox through its handles: waiting, stopping, resuming, deleting (wire protocol, 4).

mod support {
    pub mod service;
}

use std::time::Duration;

use serde_json::{Value, json};
use support::service::{
    Answer, Clock, RUN, Service, incarnation, ready, record, refusal, until, waits,
};
use tangle_sandbox::sandbox::{
    AnySandbox, Deadline, Deleted, Error, Kept, NewSandbox, Provisioning, Sandbox, Status,
};
use tangle_sandbox::transport::Code;

const CREATE: &str = "POST /v1/sandboxes";
const GET: &str = "GET /v1/sandboxes/sbx_1";
const STOP: &str = "POST /v1/sandboxes/sbx_1/stop";
const RESUME: &str = "POST /v1/sandboxes/sbx_1/resume";
const DELETE: &str = "DELETE /v1/sandboxes/sbx_1";
const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

async fn created(service: &Service, answer: Value) -> Sandbox<Provisioning> {
    service.always(CREATE, Answer::Json(201, answer));
    service.client().create(NewSandbox::new()).await.unwrap()
}

async fn get(service: &Service, record: Value) -> AnySandbox {
    service.always(GET, Answer::Json(200, record));
    let found = service.client().get(&"sbx_1".parse().unwrap()).await;
    found.unwrap().unwrap()
}

#[tokio::test]
async fn a_sandbox_that_is_ready_at_once_is_not_read_again() {
    let service = Service::start().await;
    let sandbox = created(&service, ready("sbx_1")).await;
    sandbox.wait_ready().await.unwrap();
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn wire_4_1_the_status_is_read_at_once_then_after_25_ms_doubling() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = created(&service, record("sbx_1", "pending")).await;
    service.on(GET, |_, nth| {
        Answer::Json(
            200,
            match nth {
                0 => record("sbx_1", "provisioning"),
                1 => incarnation("sbx_1", "running", "transitioning"),
                2 => record("sbx_1", "running"),
                3 => record("sbx_1", "novelty"),
                4 => incarnation("sbx_1", "provisioning", "ready"),
                _ => ready("sbx_1"),
            },
        )
    });
    let step = MILLI * 5;
    let started = tokio::time::Instant::now();
    let waiting = sandbox.wait_ready();
    let sandbox = clock.drive(&service, step, waiting).await.unwrap();
    assert!(sandbox.record().is_ready());
    let seen = service.seen_on(GET);
    assert!(seen[0].at - started <= step * 2);
    waits(
        &seen,
        &[25, 50, 100, 200, 400].map(|wait| MILLI * wait),
        step,
    );
}

#[tokio::test]
async fn the_status_is_read_at_least_every_two_seconds() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = created(&service, record("sbx_1", "provisioning")).await;
    service.on(GET, |_, nth| {
        let status = if nth < 12 {
            record("sbx_1", "provisioning")
        } else {
            ready("sbx_1")
        };
        Answer::Json(200, status)
    });
    let step = MILLI * 100;
    let waiting = sandbox.wait_ready();
    clock.drive(&service, step, waiting).await.unwrap();
    let seen = service.seen_on(GET);
    assert_eq!(seen.len(), 13);
    waits(&seen[7..], &[SECOND * 2; 5], step);
}

#[tokio::test]
async fn row_11_a_sandbox_that_never_gets_ready_comes_back_and_nothing_is_deleted() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = created(&service, record("sbx_1", "provisioning")).await;
    service.always(GET, Answer::Json(200, record("sbx_1", "provisioning")));
    let waiting = sandbox.wait_ready_within(Deadline::from_secs(5));
    let kept = clock
        .drive(&service, MILLI * 50, waiting)
        .await
        .unwrap_err();
    let Error::NotReady { status, waited } = &kept.error else {
        panic!("{kept:?}")
    };
    assert_eq!(*status, Status::Provisioning);
    assert!(*waited >= SECOND * 5 && *waited <= SECOND * 6, "{waited:?}");
    assert!(kept.error.is_retryable());
    assert_eq!(kept.error.code(), Code::Timeout);
    // The handle still works: wait again.
    service.always(GET, Answer::Json(200, ready("sbx_1")));
    let again = kept.handle.wait_ready();
    clock.drive(&service, MILLI * 50, again).await.unwrap();
    assert_eq!(service.seen_on(DELETE).len(), 0);
    assert_eq!(service.seen_on(CREATE).len(), 1);
}

#[tokio::test]
async fn a_status_read_that_hangs_does_not_outlast_the_deadline() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = created(&service, record("sbx_1", "pending")).await;
    service.always(GET, Answer::Never);
    let waiting = sandbox.wait_ready_within(Deadline::from_secs(2));
    let started = tokio::time::Instant::now();
    let kept = clock
        .drive(&service, MILLI * 100, waiting)
        .await
        .unwrap_err();
    assert!(matches!(
        &kept.error,
        Error::NotReady {
            status: Status::Pending,
            ..
        }
    ));
    assert!(started.elapsed() <= SECOND * 3);
}

#[tokio::test]
async fn wire_4_3_a_failed_sandbox_gives_its_reason_and_the_handle() {
    for status in ["failed", "expired", "deleted"] {
        let service = Service::start().await;
        let sandbox = created(&service, record("sbx_1", "provisioning")).await;
        let mut failed = record("sbx_1", status);
        failed["error"] = json!("no such image");
        service.always(GET, Answer::Json(200, failed));
        let kept = sandbox.wait_ready().await.unwrap_err();
        let expected = format!("the sandbox is {status}: no such image");
        assert_eq!(kept.error.to_string(), expected);
        assert_eq!(kept.to_string(), expected);
        assert_eq!(kept.error.code(), Code::InvalidState);
        assert_eq!(kept.handle.record().status, status);
        assert_eq!(service.seen_on(DELETE).len(), 0);
        assert_eq!(service.seen_on(GET).len(), 1);
    }
}

#[tokio::test]
async fn a_wait_that_meets_an_error_gives_the_handle_back() {
    let service = Service::start().await;
    let sandbox = created(&service, record("sbx_1", "pending")).await;
    service.always(GET, refusal(403, "FORBIDDEN", json!({})));
    let kept = sandbox.wait_ready().await.unwrap_err();
    assert_eq!(kept.error.code(), Code::Forbidden);
    assert_eq!(kept.handle.id().as_str(), "sbx_1");
}

#[tokio::test]
async fn an_answer_about_another_sandbox_is_refused() {
    let service = Service::start().await;
    let sandbox = created(&service, record("sbx_1", "pending")).await;
    service.always(GET, Answer::Json(200, ready("sbx_2")));
    let kept = sandbox.wait_ready().await.unwrap_err();
    assert_eq!(kept.error.code(), Code::ProtocolError);
    assert_eq!(kept.handle.id().as_str(), "sbx_1");
    let got = service.client().get(&"sbx_1".parse().unwrap()).await;
    assert_eq!(got.unwrap_err().code(), Code::ProtocolError);
    let sandbox = service.running().await;
    service.always(STOP, Answer::Json(200, record("sbx_2", "stopped")));
    let kept = sandbox.stop().await.unwrap_err();
    assert_eq!(kept.error.code(), Code::ProtocolError);
}

#[tokio::test]
async fn wire_4_2_a_file_system_that_is_not_known_takes_no_prompt() {
    for part in [
        record("sbx_1", "running"),
        incarnation("sbx_1", "running", "transitioning"),
        incarnation("sbx_1", "running", "novel"),
    ] {
        let service = Service::start().await;
        // A record like this never gives a running handle...
        assert!(matches!(
            get(&service, part.clone()).await,
            AnySandbox::Provisioning(_)
        ));
        // ...but a running one can come to it, for instance when a stop is refused half-way.
        let sandbox = service.running().await;
        service.always(STOP, Answer::Json(200, part));
        service.always(GET, refusal(403, "FORBIDDEN", json!({})));
        let sandbox = sandbox.stop().await.unwrap_err().handle;
        let error = sandbox.prompt("hi").await.unwrap_err();
        assert_eq!(error.code(), Code::FilesystemIncarnationNotReady);
        assert!(error.is_retryable());
        let error = sandbox.stream("hi").await.unwrap_err();
        assert_eq!(error.code(), Code::FilesystemIncarnationNotReady);
        assert_eq!(service.seen_on(RUN).len(), 0);
    }
}

#[tokio::test]
async fn a_get_tells_each_state_apart() {
    let service = Service::start().await;
    for (record, state) in [
        (ready("sbx_1"), "Running"),
        (
            incarnation("sbx_1", "running", "transitioning"),
            "Provisioning",
        ),
        (record("sbx_1", "running"), "Provisioning"),
        (record("sbx_1", "pending"), "Provisioning"),
        (record("sbx_1", "provisioning"), "Provisioning"),
        (record("sbx_1", "hibernating"), "Provisioning"),
        (record("sbx_1", "stopped"), "Stopped"),
        (record("sbx_1", "failed"), "Ended"),
        (record("sbx_1", "expired"), "Ended"),
        (record("sbx_1", "deleted"), "Ended"),
    ] {
        let status = record["status"].clone();
        let found = get(&service, record).await;
        assert!(format!("{found:?}").starts_with(state), "{found:?}");
        assert_eq!(found.record().status, status);
        assert_eq!(found.id().as_str(), "sbx_1");
    }
    service.always(
        GET,
        refusal(404, "NOT_FOUND", json!({ "resourceType": "sandbox" })),
    );
    let none = service
        .client()
        .get(&"sbx_1".parse().unwrap())
        .await
        .unwrap();
    assert!(none.is_none());
    service.always(GET, refusal(403, "FORBIDDEN", json!({})));
    let error = service.client().get(&"sbx_1".parse().unwrap()).await;
    assert_eq!(error.unwrap_err().code(), Code::Forbidden);
}

#[tokio::test]
async fn a_sandbox_of_any_state_is_brought_to_run() {
    let service = Service::start().await;
    let stopped = get(&service, record("sbx_1", "stopped")).await;
    service.always(RESUME, Answer::Json(200, record("sbx_1", "provisioning")));
    service.always(GET, Answer::Json(200, ready("sbx_1")));
    assert!(stopped.into_running().await.unwrap().record().is_ready());
    let ended = get(&service, record("sbx_1", "expired")).await;
    let kept = ended.into_running().await.unwrap_err();
    assert_eq!(kept.error.to_string(), "the sandbox is expired");
    assert!(matches!(kept.handle, AnySandbox::Ended(_)));
    let stopped = get(&service, record("sbx_1", "stopped")).await;
    let state = json!({ "currentState": "failed", "requiredState": "stopped" });
    service.always(RESUME, refusal(409, "INVALID_STATE", state));
    let kept = stopped.into_running().await.unwrap_err();
    assert!(matches!(kept.handle, AnySandbox::Stopped(_)));
    assert_eq!(service.seen_on(DELETE).len(), 0);
}

#[tokio::test]
async fn stop_and_resume_lead_through_the_states() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(STOP, Answer::Json(200, record("sbx_1", "stopped")));
    service.always(RESUME, Answer::Json(200, record("sbx_1", "provisioning")));
    service.always(GET, Answer::Json(200, ready("sbx_1")));
    let sandbox = sandbox.stop().await.unwrap();
    assert_eq!(sandbox.record().status, "stopped");
    let sandbox = sandbox.resume().await.unwrap().wait_ready().await.unwrap();
    assert!(sandbox.record().is_ready());
    assert!(service.seen_on(STOP)[0].body.is_empty());
}

#[tokio::test]
async fn an_empty_answer_is_followed_by_a_read() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(STOP, Answer::Whole(204, "", Vec::new()));
    service.always(GET, Answer::Json(200, record("sbx_1", "stopped")));
    let sandbox = sandbox.stop().await.unwrap();
    service.always(RESUME, Answer::Whole(200, "", Vec::new()));
    service.always(GET, Answer::Json(200, ready("sbx_1")));
    let sandbox = sandbox.resume().await.unwrap();
    assert_eq!(sandbox.record().status, "running");
    service.always(DELETE, Answer::Whole(204, "", Vec::new()));
    assert_eq!(sandbox.delete().await.unwrap(), Deleted::Destroyed);
}

#[tokio::test]
async fn a_sandbox_that_stops_later_than_it_answers_is_waited_for() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(STOP, Answer::Json(200, ready("sbx_1")));
    service.on(GET, |_, nth| {
        let status = if nth < 2 { "running" } else { "stopped" };
        Answer::Json(200, record("sbx_1", status))
    });
    let sandbox = sandbox.stop().await.unwrap();
    assert_eq!(sandbox.record().status, "stopped");
    assert_eq!(service.seen_on(STOP).len(), 1);
}

#[tokio::test]
async fn wire_4_4_a_held_lease_is_waited_for_and_the_call_repeated() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let busy = |nth, good: Value| match nth {
        0 | 1 => refusal(409, "INVALID_STATE", json!({ "currentState": "running" })),
        _ => Answer::Json(200, good),
    };
    service.on(STOP, move |_, nth| busy(nth, record("sbx_1", "stopped")));
    service.on(RESUME, move |_, nth| {
        busy(nth, record("sbx_1", "provisioning"))
    });
    service.on(DELETE, move |_, nth| busy(nth, json!({ "success": true })));
    let sandbox = service.running().await;
    let sandbox = clock.drive(&service, SECOND, sandbox.stop()).await.unwrap();
    let sandbox = clock
        .drive(&service, SECOND, sandbox.resume())
        .await
        .unwrap();
    let deleted = clock
        .drive(&service, SECOND, sandbox.delete())
        .await
        .unwrap();
    assert_eq!(deleted, Deleted::Destroyed);
    for route in [STOP, RESUME, DELETE] {
        waits(&service.seen_on(route), &[SECOND * 5, SECOND * 10], SECOND);
    }
}

#[tokio::test]
async fn wire_4_4_a_state_that_is_required_is_an_error_with_the_handle() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let state = json!({ "currentState": "failed", "requiredState": "running" });
    for route in [STOP, DELETE] {
        service.always(route, refusal(409, "INVALID_STATE", state.clone()));
    }
    let kept = sandbox.stop().await.unwrap_err();
    assert_eq!(kept.error.code(), Code::InvalidState);
    assert!(!kept.error.is_retryable());
    let Kept { handle, error } = kept.handle.delete().await.unwrap_err();
    assert!(error.to_string().contains("(state failed)"), "{error}");
    assert_eq!(handle.id().as_str(), "sbx_1");
    assert_eq!(service.seen().len(), 2);
}

#[tokio::test]
async fn a_deletion_says_what_it_found() {
    let answer = |outcome| {
        Answer::Json(
            200,
            json!({ "success": true, "sandboxId": "sbx_1", "outcome": outcome }),
        )
    };
    let gone = refusal(404, "NOT_FOUND", json!({ "resourceType": "sandbox" }));
    for (answer, found) in [
        (answer("destroyed"), Deleted::Destroyed),
        (answer("already_absent"), Deleted::AlreadyAbsent),
        (answer("unknown"), Deleted::Unknown),
        (
            Answer::Json(200, json!({ "success": true })),
            Deleted::Destroyed,
        ),
        (Answer::Whole(204, "", Vec::new()), Deleted::Destroyed),
        (gone, Deleted::AlreadyAbsent),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.always(DELETE, answer.clone());
        assert_eq!(sandbox.delete().await.unwrap(), found, "{answer:?}");
    }
    for wrong in [
        json!({ "success": false }),
        json!({ "success": true, "sandboxId": "sbx_2" }),
        json!({ "outcome": "destroyed" }),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.always(DELETE, Answer::Json(200, wrong.clone()));
        let kept = sandbox.delete().await.unwrap_err();
        assert_eq!(kept.error.code(), Code::ProtocolError, "{wrong}");
        assert_eq!(kept.handle.id().as_str(), "sbx_1");
    }
}

#[tokio::test]
async fn dropping_a_handle_does_nothing() {
    let service = Service::start().await;
    drop(service.running().await);
    drop(created(&service, record("sbx_1", "pending")).await);
    support::service::a_moment().await;
    assert_eq!(service.seen().len(), 1);
    until(|| service.left().is_empty()).await;
}
