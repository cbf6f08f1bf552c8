//! Leaving a run: dropping it, cancelling it, letting it go on (wire protocol, 7.1, 7.5 and 9.8).

mod support {
    pub mod service;
}

use std::time::Duration;

use serde_json::{Value, json};
use support::service::{
    Answer, CANCEL, Clock, Gate, Piece, RUN, Seen, Service, a_moment, admission, data, events,
    frame, held, refusal, text, until,
};
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::sandbox::{Error, Prompt, Rejoin};
use tangle_sandbox::transport::Code;

const SECOND: Duration = Duration::from_secs(1);

fn reference(request: &Seen) -> Value {
    let request = request.json();
    json!({
        "runId": "run_7", "provider": "local", "environmentId": "sbx_1",
        "sessionId": request["sessionId"], "executionId": request["executionId"],
        "requestDigest": format!("sha256:{}", "0".repeat(64)),
    })
}

/// An admission with these members beside the ids.
fn admitted(request: &Seen, more: Value) -> String {
    let ids = request.json();
    let mut data = json!({ "executionId": ids["executionId"], "sessionId": ids["sessionId"] });
    data.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    frame(1, "execution.started", data)
}

fn with_reference(request: &Seen) -> String {
    admitted(
        request,
        json!({ "runControlRef": reference(request), "dispatched": true }),
    )
}

fn acknowledge(request: &Seen, status: &str, effect: &str) -> Value {
    let request = request.json();
    json!({
        "operationId": request["operationId"], "requestDigest": request["requestDigest"],
        "run": request["run"], "status": status, "effect": effect,
    })
}

fn done(id: usize) -> String {
    frame(id, "done", json!({ "status": "completed" }))
}

#[tokio::test]
async fn wire_7_8_dropping_a_run_closes_the_body_and_cancels_exactly_this_execution_once() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        held(&(with_reference(seen) + &text(2, "a") + &text(3, "b")))
    });
    service.on(CANCEL, |seen, _| {
        data(acknowledge(seen, "accepted", "cancelled"))
    });
    let mut run = sandbox.stream("go").await.unwrap();
    for _ in 0..3 {
        run.next().await.unwrap().unwrap();
    }
    drop(run);
    let cancels = service.until_seen(CANCEL, 1).await;
    until(|| service.left() == [0]).await;
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 1);
    let run = service.seen_on(RUN).remove(0);
    let body = cancels[0].json();
    assert_eq!(body["run"], reference(&run));
    let mut material = body.clone();
    material.as_object_mut().unwrap().remove("requestDigest");
    assert_eq!(body["requestDigest"], Digest::of(&material).to_string());
    assert_eq!(body.as_object().unwrap().len(), 3);
    assert!(body["operationId"].is_string());
}

#[tokio::test]
async fn a_run_without_a_known_reference_is_cancelled_by_its_ids() {
    for admitted in [false, true] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, move |seen, _| {
            held(&if admitted {
                admission(seen)
            } else {
                String::new()
            })
        });
        service.always(CANCEL, Answer::Json(200, json!({ "success": true })));
        let mut run = sandbox.stream("go").await.unwrap();
        if admitted {
            run.next().await.unwrap().unwrap();
        }
        drop(run);
        let cancel = service.until_seen(CANCEL, 1).await.remove(0).json();
        let run = service.seen_on(RUN)[0].json();
        assert_eq!(
            cancel,
            json!({ "executionId": run["executionId"], "sessionId": run["sessionId"] })
        );
    }
}

#[tokio::test]
async fn a_run_that_has_ended_is_only_let_go() {
    let error = frame(2, "error", json!({ "code": "X", "message": "m" }));
    let result = frame(2, "result", json!({ "finalText": "x" }));
    for end in [done(2), error, result] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, move |seen, _| held(&(admission(seen) + &end)));
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        run.next().await.unwrap().unwrap();
        drop(run);
        until(|| service.left() == [0]).await;
        a_moment().await;
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_run_that_another_caller_started_is_only_let_go() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        held(&admitted(
            seen,
            json!({ "dispatched": false, "alreadyExisted": true }),
        ))
    });
    let prompt = Prompt::new("go").execution("exe_theirs".parse().unwrap());
    let mut run = sandbox.stream(prompt).await.unwrap();
    run.next().await.unwrap().unwrap();
    drop(run);
    until(|| service.left() == [0]).await;
    a_moment().await;
    assert_eq!(service.seen().len(), 1);
    // The same answer about an execution that nobody else can name is the echo of a repeated request.
    let mut run = sandbox.stream("go").await.unwrap();
    run.next().await.unwrap().unwrap();
    drop(run);
    service.until_seen(CANCEL, 1).await;
}

#[tokio::test]
async fn the_repeat_of_a_turn_follows_the_first_run_and_does_not_end_it() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let first = json!({ "executionId": "exe_first", "dispatched": false });
        held(&admitted(seen, first))
    });
    let prompt = || {
        Prompt::new("go")
            .session("s".parse().unwrap())
            .turn("t".parse().unwrap())
    };
    let mut run = sandbox.stream(prompt()).await.unwrap();
    run.next().await.unwrap().unwrap();
    assert_eq!(run.execution_id().as_str(), "exe_first");
    drop(run);
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 0);
    // To cancel it in so many words is another thing.
    service.always(CANCEL, Answer::Json(200, json!({ "success": true })));
    let mut run = sandbox.stream(prompt()).await.unwrap();
    run.next().await.unwrap().unwrap();
    run.cancel().await.unwrap();
    assert_eq!(
        service.seen_on(CANCEL)[0].json()["executionId"],
        "exe_first"
    );
}

#[tokio::test]
async fn leaving_before_the_service_has_answered_cancels_too() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.always(RUN, Answer::Never);
    {
        let stream = sandbox.stream("go");
        tokio::select! {
            _ = stream => panic!("an answer"),
            _ = service.until_seen(RUN, 1) => {}
        }
    }
    let cancel = service.until_seen(CANCEL, 1).await.remove(0).json();
    assert_eq!(
        cancel["executionId"],
        service.seen_on(RUN)[0].json()["executionId"]
    );
    // A call that is never awaited asks for nothing.
    drop(sandbox.stream("go"));
    drop(sandbox.prompt("go"));
    a_moment().await;
    assert_eq!(service.seen().len(), 2);
}

#[tokio::test]
async fn a_run_that_was_never_answered_is_cancelled_and_a_refused_one_is_not() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.always(RUN, Answer::Drop);
    let stream = sandbox.stream("go");
    let error = clock.drive(&service, SECOND / 4, stream).await.unwrap_err();
    assert_eq!(error.code(), Code::NetworkError);
    let runs = service.seen_on(RUN);
    assert_eq!(runs.len(), 3);
    // The repeats are the same request under the same execution: the service runs it once.
    assert!(runs.iter().all(|again| again.body == runs[0].body));
    service.until_seen(CANCEL, 1).await;
    for (status, code) in [
        (500, "AGENT_EXECUTION_FAILED"),
        (503, "X"),
        (409, "SESSION_BUSY"),
    ] {
        service.always(RUN, refusal(status, code, json!({})));
        let stream = sandbox.stream("go");
        clock.drive(&service, SECOND / 4, stream).await.unwrap_err();
    }
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 1);
    assert_eq!(service.seen_on(RUN).len(), 6);
}

#[tokio::test]
async fn the_cancel_of_a_dropped_run_ends_within_five_seconds() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| held(&with_reference(seen)));
    service.always(CANCEL, Answer::Never);
    let work = async {
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        drop(run);
        let dropped = tokio::time::Instant::now();
        until(|| service.seen_on(CANCEL).len() == 1).await;
        while service.left().len() < 2 {
            tokio::time::sleep(SECOND / 4).await;
        }
        dropped.elapsed()
    };
    let took = clock.drive(&service, SECOND / 4, work).await;
    assert!(took >= SECOND * 4 && took <= SECOND * 6, "{took:?}");
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 1);
}

#[tokio::test]
async fn a_cancel_waits_for_the_service_and_reads_what_it_says() {
    for (answer, code) in [
        (("accepted", "cancelled"), None),
        (("accepted", "cancel_requested"), None),
        (("replayed", "not_live"), None),
        (("accepted", "unknown"), Some(Code::ProtocolError)),
        (("conflict", "unknown"), Some(Code::ProtocolError)),
        (("unknown", "unknown"), Some(Code::ProtocolError)),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, |seen, _| held(&with_reference(seen)));
        service.on(CANCEL, move |seen, _| {
            data(acknowledge(seen, answer.0, answer.1))
        });
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        let outcome = run.cancel().await;
        assert_eq!(outcome.err().map(|error| error.code()), code, "{answer:?}");
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), 1);
        assert_eq!(service.left(), [0]);
    }
}

#[tokio::test]
async fn an_acknowledgement_of_another_cancel_is_refused() {
    for key in ["operationId", "requestDigest", "run"] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, |seen, _| held(&with_reference(seen)));
        service.on(CANCEL, move |seen, _| {
            let mut answer = acknowledge(seen, "accepted", "cancelled");
            match key {
                "run" => answer["run"]["runId"] = json!("run_8"),
                "requestDigest" => answer[key] = json!(format!("sha256:{}", "1".repeat(64))),
                _ => answer[key] = json!("other"),
            }
            data(answer)
        });
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        let error = run.cancel().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cancel: the acknowledgement is of another request"
        );
    }
}

#[tokio::test]
async fn a_run_that_is_over_needs_no_cancel() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| events(&(admission(seen) + &done(2))));
    let mut run = sandbox.stream("go").await.unwrap();
    while run.next().await.is_some() {}
    run.cancel().await.unwrap();
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_detach_asks_first_and_closes_the_first_body_only_when_it_is_accepted() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let gate = Gate::new();
    let accept = gate.clone();
    service.on(RUN, move |seen, nth| match nth {
        0 => held(&(with_reference(seen) + &text(2, "a"))),
        _ => Answer::After(accept.clone(), Box::new(held(&text(3, "b")))),
    });
    let mut run = sandbox.stream("go").await.unwrap();
    run.next().await.unwrap().unwrap();
    run.next().await.unwrap().unwrap();
    let detaching = async {
        let asked = service.until_seen(RUN, 2).await;
        a_moment().await;
        assert_eq!(service.left(), [0; 0]);
        gate.open();
        asked
    };
    let (detached, asked) = tokio::join!(run.detach(), detaching);
    let detached = detached.unwrap();
    assert_eq!(json!(detached.control_ref()), reference(&asked[0]));
    assert_eq!(
        asked[1].json(),
        json!({
            "message": "", "detach": true, "lastEventId": "2",
            "sessionId": asked[0].json()["sessionId"],
            "executionId": asked[0].json()["executionId"],
        })
    );
    until(|| service.left().len() == 2).await;
    drop(detached);
    a_moment().await;
    assert_eq!(service.seen().len(), 2);
}

#[tokio::test]
async fn a_run_that_is_over_already_is_detached_as_well() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => held(&with_reference(seen)),
        _ => Answer::Whole(204, "", Vec::new()),
    });
    let detached = sandbox.stream("go").await.unwrap().detach().await.unwrap();
    assert_eq!(detached.control_ref().run_id.as_str(), "run_7");
    a_moment().await;
    assert_eq!(service.seen_on(CANCEL).len(), 0);
}

#[tokio::test]
async fn a_refused_detach_gives_the_run_back_and_no_event_is_lost_or_told_twice() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let gate = Gate::new();
    let rest = gate.clone();
    service.on(RUN, move |seen, nth| match nth {
        0 => {
            // The admission is not the first event: what comes before is read ahead.
            let early = frame(1, "warning", json!({ "message": "early" })) + &text(2, "He");
            let admission = with_reference(seen).replace("id: 1", "id: 3");
            Answer::Events(vec![
                Piece::Send((early + &admission).into()),
                Piece::Wait(rest.clone()),
                Piece::Send((text(4, "llo") + &done(5)).into()),
            ])
        }
        _ => refusal(409, "INVALID_STATE", json!({})),
    });
    let run = sandbox.stream("go").await.unwrap();
    let kept = run.detach().await.unwrap_err();
    assert_eq!(kept.error.code(), Code::InvalidState);
    assert_eq!(service.left(), [0; 0]);
    let mut run = kept.handle;
    assert_eq!(run.cursor(), None);
    assert_eq!(run.next().await.unwrap().unwrap().name, "warning");
    assert_eq!(run.cursor(), Some("1"));
    // Once more, with events still waiting.
    let mut run = run.detach().await.unwrap_err().handle;
    assert_eq!(run.cursor(), Some("1"));
    assert_eq!(run.next().await.unwrap().unwrap().text_delta(), Some("He"));
    assert_eq!(run.next().await.unwrap().unwrap().name, "execution.started");
    assert_eq!(run.cursor(), Some("3"));
    gate.open();
    let result = run.result().await.unwrap();
    assert!(result.success());
    assert_eq!(result.text(), "Hello");
    assert_eq!(service.seen_on(RUN).len(), 3);
    assert_eq!(service.seen_on(RUN)[2].json()["lastEventId"], "3");
}

#[tokio::test]
async fn a_run_without_a_reference_is_not_let_go() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| held(&(admission(seen) + &text(2, "a"))));
    let kept = sandbox
        .stream("go")
        .await
        .unwrap()
        .detach()
        .await
        .unwrap_err();
    assert_eq!(kept.error.code(), Code::NotSupported);
    assert!(matches!(
        kept.error,
        Error::Unsupported {
            operation: "detach",
            ..
        }
    ));
    let mut run = kept.handle;
    assert_eq!(run.next().await.unwrap().unwrap().name, "execution.started");
    assert_eq!(run.next().await.unwrap().unwrap().text_delta(), Some("a"));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_run_that_is_never_admitted_is_not_read_ahead_without_end() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |_, _| {
        held(&(1..=500).map(|id| text(id, "x")).collect::<String>())
    });
    let kept = sandbox
        .stream("go")
        .await
        .unwrap()
        .detach()
        .await
        .unwrap_err();
    assert_eq!(kept.error.code(), Code::NotSupported);
    let mut run = kept.handle;
    for id in 1..=500 {
        let event = run.next().await.unwrap().unwrap();
        assert_eq!(event.id, Some(id.to_string()));
    }
}

#[tokio::test]
async fn a_run_that_breaks_before_its_admission_keeps_what_was_read() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |_, _| held(&(text(1, "a") + "id: 2\ndata: {oops\n\n")));
    let kept = sandbox
        .stream("go")
        .await
        .unwrap()
        .detach()
        .await
        .unwrap_err();
    assert_eq!(kept.error.code(), Code::ProtocolError);
    let mut run = kept.handle;
    assert_eq!(run.next().await.unwrap().unwrap().text_delta(), Some("a"));
    assert!(run.next().await.is_none());
}

#[tokio::test]
async fn a_detach_that_is_given_up_cancels_the_run_as_a_drop_does() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => held(&with_reference(seen)),
        _ => Answer::Never,
    });
    let run = sandbox.stream("go").await.unwrap();
    tokio::select! {
        _ = run.detach() => panic!("an answer"),
        _ = service.until_seen(RUN, 2) => {}
    }
    service.until_seen(CANCEL, 1).await;
}

#[tokio::test]
async fn a_reference_of_another_run_is_refused() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let mut reference = reference(seen);
        reference["executionId"] = json!("exe_other");
        held(&admitted(
            seen,
            json!({ "runControlRef": reference, "dispatched": true }),
        ))
    });
    let prompt = Prompt::new("go").rejoin(Rejoin::Off);
    let mut run = sandbox.stream(prompt).await.unwrap();
    let error = run.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "stream: the reference of the admission names another run"
    );
    // The run itself was started here: leaving it ends it, by its ids.
    let execution = run.execution_id().to_string();
    drop(run);
    let cancel = service.until_seen(CANCEL, 1).await.remove(0).json();
    assert_eq!(cancel["executionId"], execution.as_str());
    assert_eq!(cancel.get("run"), None);
}

#[test]
fn a_run_that_is_dropped_outside_of_a_runtime_does_not_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = runtime.block_on(async {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, |seen, _| held(&admission(seen)));
        sandbox.stream("go").await.unwrap()
    });
    drop(run);
    drop(runtime);
}
