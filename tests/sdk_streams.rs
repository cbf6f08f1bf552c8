//! The events of a run on one connection, and how its end is read (wire protocol, 7.1 to 7.5).

mod support {
    pub mod service;
}

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use support::service::{
    Answer, CANCEL, Clock, Piece, RUN, Service, a_moment, admission, cut, events, frame, held,
    refusal, text, until,
};
use tangle_sandbox::sandbox::{
    Attached, Error, Event, EventKind, Prompt, PromptStatus, Rejoin, Run,
};
use tangle_sandbox::transport::Code;

const SECOND: Duration = Duration::from_secs(1);

fn once(text: &str) -> Prompt {
    Prompt::new(text).rejoin(Rejoin::Off)
}

async fn all(run: &mut Run<Attached>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event.unwrap());
    }
    events
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

fn code(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::Error(error) => error.code.as_deref(),
        _ => None,
    }
}

fn end(id: usize) -> String {
    frame(
        id,
        "result",
        json!({ "finalText": "Hello", "status": "success" }),
    ) + &frame(id + 1, "done", json!({ "status": "completed" }))
}

#[tokio::test]
async fn a_run_is_asked_for_with_names_of_its_own() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| events(&(admission(seen) + &end(2))));
    let mut first = sandbox.stream("say hello").await.unwrap();
    all(&mut first).await;
    let named = Prompt::new("more")
        .session(first.session_id().clone())
        .execution("exe_mine".parse().unwrap())
        .turn("turn_1".parse().unwrap())
        .context("origin", "test");
    let mut second = sandbox.stream(named).await.unwrap();
    all(&mut second).await;
    let seen = service.seen();
    assert_eq!(seen[0].header("accept"), Some("text/event-stream"));
    let body = seen[0].json();
    assert_eq!(body["message"], "say hello");
    assert_eq!(body["executionId"], first.execution_id().as_str());
    assert_eq!(body["sessionId"], first.session_id().as_str());
    assert_eq!(body.as_object().unwrap().len(), 3);
    assert_eq!(
        seen[1].json(),
        json!({
            "message": "more", "sessionId": first.session_id(), "executionId": "exe_mine",
            "turnId": "turn_1", "metadata": { "origin": "test" },
        })
    );
}

#[tokio::test]
async fn wire_7_1_frames_that_come_byte_by_byte_are_the_same_events() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    let body = |seen: &_| {
        admission(seen)
            + "id: 2\r\nevent: warning\r\ndata: {\"message\":\r\ndata: \"é\",\r\ndata: \"code\":\"W\"}\r\n\r\n"
            + &text(3, "Hel")
            + ": comment\n\n"
            + &text(4, "lo")
            + &end(5)
    };
    service.on(RUN, move |seen, nth| {
        let body = body(seen);
        match nth {
            0 => events(&body),
            _ => Answer::Events(body.bytes().map(|byte| Piece::Send(vec![byte])).collect()),
        }
    });
    let prompt = || {
        once("hi")
            .execution("exe_1".parse().unwrap())
            .session("ses_1".parse().unwrap())
    };
    let whole = all(&mut sandbox.stream(prompt()).await.unwrap()).await;
    let split = all(&mut sandbox.stream(prompt()).await.unwrap()).await;
    assert_eq!(whole, split);
    assert_eq!(
        names(&whole),
        [
            "execution.started",
            "warning",
            "message.part.updated",
            "message.part.updated",
            "result",
            "done"
        ]
    );
    assert_eq!(whole[1].to_string(), "[2] warning é");
    let deltas: String = whole.iter().filter_map(Event::text_delta).collect();
    assert_eq!(deltas, "Hello");
}

#[tokio::test]
async fn wire_7_2_an_id_is_not_inherited() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let without = "event: warning\ndata: {\"message\":\"m\"}\n\n";
        cut(&(admission(seen) + &text(2, "a") + without))
    });
    let mut run = sandbox.stream(once("hi")).await.unwrap();
    let events = all(&mut run).await;
    let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
    assert_eq!(ids, [Some("1"), Some("2"), None, None]);
    assert_eq!(run.cursor(), Some("2"));
    let EventKind::Error(lost) = &events[3].kind else {
        panic!("{events:?}")
    };
    assert_eq!(lost.last_event_id.as_deref(), Some("2"));
}

#[tokio::test]
async fn wire_7_3_a_frame_without_its_end_is_dropped_and_the_stream_is_lost() {
    for (answer, last) in [
        (|body: &str| events(body), None),
        (|body: &str| cut(body), Some("2")),
    ] as [(fn(&str) -> Answer, Option<&str>); 2]
    {
        let service = Service::start().await;
        let sandbox = service.running().await;
        let before = last.map_or(String::new(), |_| text(2, "x"));
        service.on(RUN, move |_, _| {
            answer(&(before.clone() + "data: {\"a\":1}"))
        });
        let mut run = sandbox.stream(once("hi")).await.unwrap();
        let execution = run.execution_id().to_string();
        let mut events = all(&mut run).await;
        let lost = events.pop().unwrap();
        assert_eq!(events.len(), last.iter().count());
        assert_eq!((lost.id.as_deref(), lost.name.as_str()), (None, "error"));
        let EventKind::Error(lost) = lost.kind else {
            panic!("{lost:?}")
        };
        assert_eq!(lost.code.as_deref(), Some("STREAM_INTERRUPTED"));
        assert_eq!(lost.execution_id, Some(execution));
        assert_eq!(lost.last_event_id.as_deref(), last);
        assert_eq!(service.seen_on(RUN).len(), 1);
    }
}

#[tokio::test]
async fn wire_7_5_the_sentinel_is_skipped_and_broken_json_is_a_protocol_error() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => events(&(admission(seen) + "data: [DONE]\n\n" + &end(2) + "data: [DONE]\n\n")),
        _ => held(&(admission(seen) + "id: 2\ndata: {oops\n\n" + &end(3))),
    });
    let events = all(&mut sandbox.stream("hi").await.unwrap()).await;
    assert_eq!(names(&events), ["execution.started", "result", "done"]);
    let mut run = sandbox.stream("hi").await.unwrap();
    run.next().await.unwrap().unwrap();
    let error = run.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::ProtocolError);
    assert!(!error.to_string().contains("oops"), "{error}");
    assert!(run.next().await.is_none());
    assert_eq!(service.seen_on(RUN).len(), 2);
}

#[tokio::test]
async fn a_frame_that_breaks_the_protocol_ends_the_stream_without_a_rejoin() {
    let long = frame(2, "novelty", json!({ "x": "y".repeat(4096) }));
    for (bytes, known) in [
        (long.into_bytes(), "larger"),
        (b"id: 2\ndata: {\"x\":\"\xff\"}\n\n".to_vec(), "UTF-8"),
        (b"id: 2\nevent: done\ndata: 7\n\n".to_vec(), "object"),
        (
            [b"id: ", "i".repeat(513).as_bytes(), b"\ndata: {}\n\n"].concat(),
            "512",
        ),
    ] {
        let service = Service::start().await;
        let client = service.builder().frame_limit(2048).build().unwrap();
        let sandbox = service.running_by(&client).await;
        service.on(RUN, move |seen, _| {
            let body = [admission(seen).into_bytes(), bytes.clone()].concat();
            Answer::Events(vec![Piece::Send(body), Piece::Hold])
        });
        let mut run = sandbox.stream("hi").await.unwrap();
        run.next().await.unwrap().unwrap();
        let error = run.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::ProtocolError, "{known}: {error}");
        assert!(run.next().await.is_none());
        assert_eq!(service.seen_on(RUN).len(), 1);
        // The connection is closed at once; the run may still go on, so that leaving it cancels it.
        until(|| !service.left().is_empty()).await;
        drop(run);
        service.until_seen(CANCEL, 1).await;
    }
}

#[tokio::test]
async fn an_unknown_event_is_kept_as_it_came() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let novel = frame(2, "novelty", json!({ "a": [1, { "b": null }] }));
        let typed = "id: 3\ndata: {\"type\":\"other\",\"x\":1}\n\n";
        let list = "id: 4\nevent: listed\ndata: [1]\n\n";
        events(&(admission(seen) + &novel + typed + list + &end(5)))
    });
    let events = all(&mut sandbox.stream("hi").await.unwrap()).await;
    assert_eq!(names(&events)[1..4], ["novelty", "other", "listed"]);
    for (event, data) in events[1..4].iter().zip([
        json!({ "a": [1, { "b": null }] }),
        json!({ "type": "other", "x": 1 }),
        json!({ "value": [1] }),
    ]) {
        let EventKind::Raw(raw) = &event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(json!(raw), data);
    }
}

#[tokio::test]
async fn what_follows_done_is_ignored() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let late =
            text(4, "late") + "data: {oops\n\n" + &frame(5, "error", json!({ "message": "m" }));
        held(&(admission(seen) + &end(2) + &late))
    });
    let mut run = sandbox.stream("hi").await.unwrap();
    assert_eq!(
        names(&all(&mut run).await),
        ["execution.started", "result", "done"]
    );
    let result = run.result().await.unwrap();
    assert!(result.success());
    until(|| !service.left().is_empty()).await;
    a_moment().await;
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_result_without_done_is_an_end() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| {
        let result = frame(2, "result", json!({ "finalText": "Hello" }));
        let body = admission(seen) + &result;
        match nth {
            0 => events(&body),
            1 => cut(&body),
            _ => cut(&(body + "event: done\ndata: {\"sta")),
        }
    });
    for _ in 0..3 {
        let mut run = sandbox.stream("hi").await.unwrap();
        assert_eq!(names(&all(&mut run).await), ["execution.started", "result"]);
        let result = run.result().await.unwrap();
        assert!(result.success());
        assert_eq!(result.text(), "Hello");
    }
    a_moment().await;
    assert_eq!(service.seen().len(), 3);
}

#[tokio::test]
async fn an_error_without_done_is_an_end_too() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        cut(&(admission(seen) + &frame(2, "error", json!({ "code": "X", "message": "m" }))))
    });
    let mut run = sandbox.stream("hi").await.unwrap();
    let events = all(&mut run).await;
    assert_eq!(code(&events[1]), Some("X"));
    assert_eq!(events.len(), 2);
    let result = run.result().await.unwrap();
    assert_eq!(result.status, PromptStatus::Failed);
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_step_that_broke_off_before_the_end_means_that_the_stream_was_lost() {
    let step = |reason: &str| {
        let part = json!({ "type": "step-finish", "id": "s", "reason": reason });
        frame(2, "message.part.updated", json!({ "part": part }))
    };
    let result = frame(3, "result", json!({ "finalText": "half" }));
    for (body, lost) in [
        (step("error"), true),
        (step("other"), true),
        (step("unknown") + &result, true),
        (
            step("unknown") + &result + &frame(4, "done", json!({})),
            false,
        ),
        (
            step("error") + &frame(3, "error", json!({ "message": "m" })),
            false,
        ),
        (
            step("error") + &text(3, "on") + &frame(4, "result", json!({})),
            false,
        ),
        (step("stop") + &result, false),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, move |seen, _| events(&(admission(seen) + &body)));
        let mut run = sandbox.stream(once("hi")).await.unwrap();
        let events = all(&mut run).await;
        let last = events.last().unwrap();
        assert_eq!(
            code(last) == Some("STREAM_INTERRUPTED"),
            lost,
            "{events:#?}"
        );
        let result = run.result().await.unwrap();
        assert_eq!(result.status == PromptStatus::Unknown, lost, "{result:#?}");
    }
}

#[tokio::test]
async fn wire_7_12_comments_keep_a_silent_run_and_silence_loses_it() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let client = service.builder().stream_idle(SECOND * 60).build().unwrap();
    let sandbox = service.running_by(&client).await;
    service.on(RUN, |seen, _| {
        let mut pieces = vec![Piece::Send(admission(seen).into())];
        for _ in 0..20 {
            pieces.push(Piece::Sleep(SECOND * 15));
            pieces.push(Piece::Send(b": keep-alive\n\n".to_vec()));
        }
        pieces.push(Piece::Send(text(2, "a").into()));
        pieces.push(Piece::Hold);
        Answer::Events(pieces)
    });
    let reading = async {
        let mut run = sandbox.stream(once("hi")).await.unwrap();
        let started = tokio::time::Instant::now();
        run.next().await.unwrap().unwrap();
        assert_eq!(run.next().await.unwrap().unwrap().text_delta(), Some("a"));
        assert!(started.elapsed() >= SECOND * 300);
        let silent = tokio::time::Instant::now();
        let lost = run.next().await.unwrap().unwrap();
        assert_eq!(code(&lost), Some("STREAM_INTERRUPTED"));
        assert!(silent.elapsed() >= SECOND * 60 && silent.elapsed() <= SECOND * 70);
    };
    clock.drive(&service, SECOND * 5, reading).await;
}

#[tokio::test]
async fn a_next_that_is_given_up_loses_nothing() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| {
        let body =
            admission(seen) + &(2..40).map(|id| text(id, "x")).collect::<String>() + &end(40);
        let pieces = body.into_bytes();
        let pieces = pieces.chunks(7).map(|chunk| Piece::Send(chunk.to_vec()));
        let pauses = std::iter::repeat(Piece::Sleep(Duration::from_micros(300)));
        Answer::Events(
            pieces
                .zip(pauses)
                .flat_map(|(piece, pause)| [piece, pause])
                .collect(),
        )
    });
    let mut run = sandbox.stream("hi").await.unwrap();
    let mut ids = Vec::new();
    let mut given_up = 0;
    loop {
        tokio::select! {
            biased;
            event = run.next() => match event {
                Some(event) => ids.push(event.unwrap().id.unwrap()),
                None => break,
            },
            () = tokio::task::yield_now() => given_up += 1,
        }
    }
    assert!(given_up > 40, "{given_up}");
    let expected: Vec<_> = (1..=41).map(|id| id.to_string()).collect();
    assert_eq!(ids, expected);
    assert_eq!(run.result().await.unwrap().text(), "Hello");
}

#[tokio::test]
async fn a_run_is_a_stream() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| events(&(admission(seen) + &end(2))));
    let run = sandbox.stream("hi").await.unwrap();
    let events: Vec<_> = run.map(Result::unwrap).collect().await;
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn a_run_that_is_not_read_holds_the_service_back() {
    const PIECES: usize = 128;
    let service = Service::start().await;
    let sandbox = service.running().await;
    let (sent, counted) = tokio::sync::watch::channel(0);
    service.on(RUN, move |seen, _| {
        let frame = text(2, &"x".repeat(1024 * 1024)).into_bytes();
        let mut pieces = vec![Piece::Send(admission(seen).into())];
        for _ in 0..PIECES {
            pieces.push(Piece::Send(frame.clone()));
            pieces.push(Piece::Count(sent.clone()));
        }
        pieces.push(Piece::Hold);
        Answer::Events(pieces)
    });
    let run = sandbox.stream("hi").await.unwrap();
    a_moment().await;
    a_moment().await;
    let sent = *counted.borrow();
    assert!(sent < PIECES / 4, "{sent} MiB were taken from the service");
    drop(run);
}

#[tokio::test]
async fn a_stream_ends_when_its_deadline_has_passed() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| held(&admission(seen)));
    let prompt = Prompt::new("hi").deadline(tangle_sandbox::sandbox::Deadline::from_secs(10));
    let reading = async {
        let mut run = sandbox.stream(prompt).await.unwrap();
        let started = tokio::time::Instant::now();
        let events = all(&mut run).await;
        assert_eq!(code(&events[1]), Some("TIMEOUT"));
        // The service ends the turn itself; the client gives it 5 seconds for that.
        assert!(started.elapsed() >= SECOND * 15 && started.elapsed() <= SECOND * 16);
        assert_eq!(events.len(), 2);
        let result = run.result().await.unwrap();
        assert_eq!(result.error_code.as_deref(), Some("TIMEOUT"));
        assert_eq!(result.status, PromptStatus::Failed);
    };
    clock.drive(&service, SECOND / 4, reading).await;
    assert_eq!(service.seen_on(RUN)[0].json()["timeoutMs"], 10_000);
    service.until_seen(CANCEL, 1).await;
}

#[tokio::test]
async fn a_refused_run_is_an_error_of_the_call() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    for (status, code) in [
        (400, Code::ValidationError),
        (409, Code::SessionBusy),
        (409, Code::TurnConflict),
        (409, Code::RunConflict),
        (500, Code::AgentExecutionFailed),
        (501, Code::NotSupported),
    ] {
        service.always(RUN, refusal(status, code.as_str(), json!({})));
        let error = sandbox.stream("hi").await.unwrap_err();
        assert_eq!(error.code(), code);
    }
    a_moment().await;
    assert_eq!(service.seen().len(), 6);
    service.always(RUN, Answer::Json(200, json!({})));
    let error = sandbox.stream("hi").await.unwrap_err();
    assert!(matches!(error, Error::Call(_)));
    assert_eq!(error.code(), Code::ProtocolError);
    service.always(RUN, Answer::Whole(204, "", Vec::new()));
    let error = sandbox.stream("hi").await.unwrap_err();
    assert_eq!(error.code(), Code::ProtocolError);
}

#[tokio::test]
async fn an_admission_of_another_run_is_refused() {
    for (key, value, rule) in [
        (
            "sessionId",
            "ses_other",
            "the admission names another session",
        ),
        (
            "executionId",
            "exe_other",
            "the admission names another execution",
        ),
    ] {
        let service = Service::start().await;
        let sandbox = service.running().await;
        service.on(RUN, move |seen, _| {
            let request = seen.json();
            let mut data = json!({
                "executionId": request["executionId"], "sessionId": request["sessionId"],
            });
            data[key] = json!(value);
            held(&frame(1, "execution.started", data))
        });
        let mut run = sandbox.stream("hi").await.unwrap();
        let error = run.next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), format!("stream: {rule}"));
        // Nothing proves that this call started that run: it is let alone.
        drop(run);
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), 0);
    }
}
