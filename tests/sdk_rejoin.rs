//! Coming back to a run after its stream was lost (wire protocol, 7.6; rows 5 and 6 of the public reports).

mod support {
    pub mod service;
}

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use support::service::{
    Answer, CANCEL, Clock, Piece, RUN, Seen, Service, a_moment, admission, cut, data, events,
    frame, held, refusal, text, waits,
};
use tangle_sandbox::sandbox::{
    Attached, Error, Event, EventKind, Prompt, PromptStatus, Rejoin, Run,
};
use tangle_sandbox::transport::Code;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);

/// The frames of one recorded run.
fn recorded(request: &Seen) -> Vec<String> {
    let tool = json!({ "type": "tool", "id": "t", "tool": "sh", "state": { "status": "running" } });
    vec![
        admission(request),
        text(2, "Hé"),
        frame(3, "message.part.updated", json!({ "part": tool })),
        frame(4, "novelty", json!({ "x": 1 })),
        text(5, "llo"),
        frame(
            6,
            "result",
            json!({ "finalText": "Héllo", "status": "success" }),
        ),
        frame(7, "done", json!({ "status": "completed" })),
    ]
}

/// What the service still has to send to someone who names this cursor.
fn after(frames: &[String], request: &Seen) -> String {
    let cursor = request.json()["lastEventId"]
        .as_str()
        .map_or(0, |id| id.parse().unwrap());
    frames[cursor..].concat()
}

async fn all(run: &mut Run<Attached>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event.unwrap());
    }
    events
}

fn ids(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event.id.as_deref().unwrap_or("-"))
        .collect()
}

fn is_lost(event: &Event) -> bool {
    matches!(&event.kind, EventKind::Error(error) if error.code.as_deref() == Some("STREAM_INTERRUPTED"))
}

fn only_one_run(requests: &[Seen]) {
    for again in &requests[1..] {
        assert_eq!(again.json()["message"], "", "a run was asked for twice");
        assert_eq!(
            again.json()["executionId"],
            requests[0].json()["executionId"]
        );
        assert_eq!(again.json()["sessionId"], requests[0].json()["sessionId"]);
    }
}

#[tokio::test]
async fn row_6_a_run_that_is_cut_at_any_byte_gives_each_event_once_and_one_result() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    let probe = Service::start().await;
    let probed = probe.running().await;
    probe.on(RUN, |seen, _| events(&recorded(seen).concat()));
    drop(probed.stream("0").await);
    let length = recorded(&probe.seen()[0]).concat().len();
    // One run for each byte at which its first connection ends, every second one as if it ended in good order.
    let started: Mutex<HashMap<String, Seen>> = Mutex::default();
    service.on(RUN, move |seen, _| {
        let request = seen.json();
        let execution = request["executionId"].as_str().unwrap().to_owned();
        let message = request["message"].as_str().unwrap();
        let mut started = started.lock().unwrap();
        let Ok(at) = message.parse::<usize>() else {
            let frames = recorded(&started[&execution]);
            return events(&after(&frames, seen));
        };
        started.insert(execution, seen.clone());
        let body = recorded(seen).concat().into_bytes();
        let first = Piece::Send(body[..at.min(body.len())].to_vec());
        Answer::Events(if at % 2 == 0 {
            vec![first]
        } else {
            vec![first, Piece::Cut]
        })
    });
    let runs = (0..=length).map(|at| {
        let sandbox = &sandbox;
        async move {
            let mut run = sandbox.stream(at.to_string()).await.unwrap();
            let events = all(&mut run).await;
            (at, events, run.result().await.unwrap())
        }
    });
    let outcomes = clock.drive(&service, STEP, join_all(runs)).await;
    for (at, events, result) in outcomes {
        // Once the result was seen, `done` is not waited for.
        let seen = ids(&events);
        let whole = seen == ["1", "2", "3", "4", "5", "6", "7"];
        assert!(
            whole || seen == ["1", "2", "3", "4", "5", "6"],
            "at {at}: {seen:?}"
        );
        assert_eq!(result.status, PromptStatus::Success, "at {at}");
        assert_eq!(result.text(), "Héllo");
        assert_eq!(result.tool_invocations.len(), 1);
    }
    let mut by_run: HashMap<String, Vec<Seen>> = HashMap::new();
    for seen in service.seen() {
        let execution = seen.json()["executionId"].as_str().unwrap().to_owned();
        by_run.entry(execution).or_default().push(seen);
    }
    assert_eq!(by_run.len(), length + 1);
    for requests in by_run.values() {
        only_one_run(requests);
        assert!(requests.len() <= 2);
    }
}

#[tokio::test]
async fn row_6_a_run_that_is_cut_twenty_times_ends_with_its_result() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    let frames = |first: &Seen| -> Vec<String> {
        let words = (2..102).map(|id| text(id, &format!("{id} ")));
        let end = frame(102, "result", json!({ "status": "success" }));
        std::iter::once(admission(first))
            .chain(words)
            .chain([end])
            .collect()
    };
    let first: Mutex<Option<Seen>> = Mutex::default();
    service.on(RUN, move |seen, nth| {
        let mut first = first.lock().unwrap();
        let frames = frames(first.get_or_insert_with(|| seen.clone()));
        let body = after(&frames, seen).into_bytes();
        // A fixed seed; each connection brings at least one new frame and ends somewhere in a later one.
        let noise = (nth as u64 + 1).wrapping_mul(6_364_136_223_846_793_005) >> 33;
        let length = 250 + noise as usize % 300;
        let piece = Piece::Send(body[..length.min(body.len())].to_vec());
        match nth {
            0..20 => Answer::Events(vec![piece, Piece::Cut]),
            _ => Answer::Events(vec![Piece::Send(body)]),
        }
    });
    let work = async {
        let mut run = sandbox.stream("go").await.unwrap();
        let events = all(&mut run).await;
        (events, run.result().await.unwrap())
    };
    let (events, result) = clock.drive(&service, SECOND / 4, work).await;
    let expected: Vec<_> = (1..=102).map(|id| id.to_string()).collect();
    assert_eq!(ids(&events), expected);
    let words: String = (2..102).map(|id| format!("{id} ")).collect();
    assert_eq!(result.text(), words);
    let seen = service.seen();
    assert_eq!(seen.len(), 21);
    only_one_run(&seen);
}

#[tokio::test]
async fn wire_7_6_a_rejoin_names_the_cursor_and_no_input() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&(admission(seen) + &text(41, "a"))),
        _ => events(&(text(41, "a") + &text(42, "b") + &frame(43, "done", json!({})))),
    });
    let prompt = Prompt::new("go")
        .turn("t".parse().unwrap())
        .session("s".parse().unwrap());
    let work = async { all(&mut sandbox.stream(prompt).await.unwrap()).await };
    let events = clock.drive(&service, STEP, work).await;
    // The service repeats the cursor's own frame, which is not handed out again.
    assert_eq!(ids(&events), ["1", "41", "42", "43"]);
    let seen = service.seen();
    assert_eq!(
        seen[1].json(),
        json!({
            "message": "", "sessionId": "s", "executionId": seen[0].json()["executionId"],
            "lastEventId": "41",
        })
    );
}

#[tokio::test]
async fn rejoins_wait_half_a_second_then_one_then_two_and_then_the_stream_is_lost() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&(admission(seen) + &text(2, "a"))),
        1 => Answer::Drop,
        2 => refusal(503, "", json!({})),
        _ => events(""),
    });
    let work = async {
        let mut run = sandbox.stream("go").await.unwrap();
        let events = all(&mut run).await;
        (events, run)
    };
    let (events, mut run) = clock.drive(&service, STEP, work).await;
    assert_eq!(ids(&events), ["1", "2", "-"]);
    assert!(is_lost(&events[2]));
    assert!(run.next().await.is_none());
    let seen = service.seen();
    assert_eq!(seen.len(), 4);
    waits(&seen, &[SECOND / 2, SECOND, SECOND * 2], STEP);
    only_one_run(&seen);
}

#[tokio::test]
async fn the_count_starts_anew_after_a_new_frame_and_only_then() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    let hello = "event: connection.established\ndata: {}\n\n";
    service.on(RUN, move |seen, nth| match nth {
        0 => cut(&(hello.to_owned() + &admission(seen))),
        1 => cut(hello),
        2 => cut(&(hello.to_owned() + &text(2, "a"))),
        // A greeting without an id and the cursor's own frame are nothing new.
        3 => cut(hello),
        4 => cut(&text(2, "a")),
        _ => cut(hello),
    });
    let work = async { all(&mut sandbox.stream("go").await.unwrap()).await };
    let events = clock.drive(&service, STEP, work).await;
    assert!(is_lost(events.last().unwrap()));
    let half = SECOND / 2;
    waits(
        &service.seen_on(RUN),
        &[half, SECOND, half, SECOND, SECOND * 2],
        STEP,
    );
}

#[tokio::test]
async fn a_run_without_a_first_frame_is_joined_from_its_begin() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    let first: Mutex<Option<Seen>> = Mutex::default();
    service.on(RUN, move |seen, nth| {
        let mut first = first.lock().unwrap();
        let frames = recorded(first.get_or_insert_with(|| seen.clone()));
        match nth {
            0 => cut(&frames[0][..20]),
            _ => events(&after(&frames, seen)),
        }
    });
    let work = async { all(&mut sandbox.stream("go").await.unwrap()).await };
    let events = clock.drive(&service, STEP, work).await;
    assert_eq!(ids(&events), ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(service.seen()[1].json().get("lastEventId"), None);
}

#[tokio::test]
async fn events_without_an_id_are_not_told_twice() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |_, _| {
        cut("event: message.part.updated\ndata: {\"part\":{\"type\":\"text\"},\"delta\":\"a\"}\n\n")
    });
    let events = all(&mut sandbox.stream("go").await.unwrap()).await;
    assert_eq!(events.len(), 2);
    assert!(is_lost(&events[1]));
    assert_eq!(service.seen_on(RUN).len(), 1);
}

#[tokio::test]
async fn a_service_that_ignores_the_cursor_tells_nothing_twice_and_is_not_asked_for_ever() {
    for ids in ["number", "word"] {
        let service = Service::start().await;
        let clock = Clock::stop();
        let sandbox = service.running().await;
        let first: Mutex<Option<Seen>> = Mutex::default();
        service.on(RUN, move |seen, nth| {
            let mut first = first.lock().unwrap();
            let mut frames = recorded(first.get_or_insert_with(|| seen.clone()));
            if ids == "word" {
                frames
                    .iter_mut()
                    .for_each(|frame| *frame = frame.replacen("id: ", "id: f", 1));
            }
            match nth {
                0 => cut(&frames[..3].concat()),
                _ => cut(&frames[..4].concat()),
            }
        });
        let work = async { all(&mut sandbox.stream("go").await.unwrap()).await };
        let events = clock.drive(&service, STEP, work).await;
        let letters: String = ids_of(&events).replace('f', "");
        assert_eq!(letters, "1 2 3 4 -", "{ids}");
        let half = SECOND / 2;
        waits(
            &service.seen_on(RUN),
            &[half, half, SECOND, SECOND * 2],
            STEP,
        );
        tokio::time::resume();
    }
}

fn ids_of(events: &[Event]) -> String {
    ids(events).join(" ")
}

#[tokio::test]
async fn a_rejoin_that_is_off_is_not_tried() {
    let service = Service::start().await;
    let sandbox = service.running().await;
    service.on(RUN, |seen, _| cut(&admission(seen)));
    let prompt = Prompt::new("go").rejoin(Rejoin::Off);
    let events = all(&mut sandbox.stream(prompt).await.unwrap()).await;
    assert!(is_lost(&events[1]));
    assert_eq!(service.seen_on(RUN).len(), 1);
}

#[tokio::test]
async fn row_5_a_cursor_that_is_gone_is_an_error_that_names_the_oldest_event() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&(admission(seen) + &text(2, "a"))),
        _ => {
            let error = json!({
                "code": "EVENT_CURSOR_UNKNOWN", "message": "evicted", "oldestEventId": "17",
            });
            Answer::Json(410, json!({ "success": false, "error": error }))
        }
    });
    let work = async {
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        run.next().await.unwrap().unwrap();
        let error = run.next().await.unwrap().unwrap_err();
        assert!(run.next().await.is_none());
        tokio::time::sleep(SECOND * 10).await;
        (error, run)
    };
    let (error, run) = clock.drive(&service, STEP, work).await;
    assert_eq!(error.code(), Code::EventCursorUnknown);
    assert!(matches!(&error, Error::CursorUnknown { oldest: Some(oldest), .. } if oldest == "17"));
    assert_eq!(
        error.failure().unwrap().detail("oldestEventId").unwrap(),
        "17"
    );
    assert!(
        error
            .to_string()
            .contains("the oldest event that the service holds is 17"),
        "{error}"
    );
    assert!(!error.is_retryable());
    // In ten seconds there was one rejoin.
    assert_eq!(service.seen_on(RUN).len(), 2);
    drop(run);
}

#[tokio::test]
async fn a_rejoin_of_a_run_that_is_not_known_is_an_error() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&admission(seen)),
        _ => refusal(404, "NOT_FOUND", json!({ "resourceType": "execution" })),
    });
    let work = async {
        let mut run = sandbox.stream("go").await.unwrap();
        run.next().await.unwrap().unwrap();
        run.next().await.unwrap().unwrap_err()
    };
    let error = clock.drive(&service, STEP, work).await;
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(service.seen_on(RUN).len(), 2);
}

fn result_route(execution: &str, session: &str) -> String {
    format!("GET /v1/sandboxes/sbx_1/runtime/agents/sessions/{session}/runs/{execution}/result")
}

fn named(prompt: &str) -> Prompt {
    Prompt::new(prompt)
        .session("s".parse().unwrap())
        .execution("e".parse().unwrap())
}

fn outcome(status: &str) -> Value {
    json!({ "executionId": "e", "sessionId": "s", "status": status, "finalText": "recorded" })
}

#[tokio::test]
async fn wire_7_15_a_rejoin_at_the_terminal_cursor_gives_the_recorded_result() {
    for over in [
        Answer::Whole(204, "", Vec::new()),
        Answer::Whole(200, "content-type: text/event-stream\r\n", Vec::new()),
    ] {
        let service = Service::start().await;
        let clock = Clock::stop();
        let sandbox = service.running().await;
        service.on(RUN, move |seen, nth| match nth {
            0 => cut(&(admission(seen) + &text(2, "rec"))),
            _ => over.clone(),
        });
        service.always(&result_route("e", "s"), data(outcome("completed")));
        let work = async {
            let mut run = sandbox.stream(named("go")).await.unwrap();
            let events = all(&mut run).await;
            (events, run.result().await.unwrap())
        };
        let (events, result) = clock.drive(&service, STEP, work).await;
        assert_eq!(ids(&events), ["1", "2", "-"]);
        assert_eq!(events[2].name, "result");
        assert!(result.success());
        assert_eq!(result.text(), "recorded");
        a_moment().await;
        assert_eq!(service.seen_on(CANCEL).len(), 0);
        assert_eq!(service.seen().len(), 3);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn row_5_an_empty_answer_to_a_run_that_goes_on_is_not_a_success() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&admission(seen)),
        _ => Answer::Whole(200, "", Vec::new()),
    });
    service.always(
        &result_route("e", "s"),
        Answer::Json(202, json!({ "success": true, "data": outcome("running") })),
    );
    let work = async {
        let events = all(&mut sandbox.stream(named("go")).await.unwrap()).await;
        tokio::time::sleep(SECOND * 10).await;
        events
    };
    let events = clock.drive(&service, STEP, work).await;
    assert!(is_lost(events.last().unwrap()));
    assert_eq!(service.seen_on(RUN).len(), 2);
}

#[tokio::test]
async fn a_rejoin_that_hangs_is_given_up() {
    let service = Service::start().await;
    let clock = Clock::stop();
    let sandbox = service.running().await;
    service.on(RUN, |seen, nth| match nth {
        0 => cut(&admission(seen)),
        1..=2 => Answer::Never,
        _ => held(": nothing\n\n"),
    });
    let started = tokio::time::Instant::now();
    let work = async { all(&mut sandbox.stream("go").await.unwrap()).await };
    let events = clock.drive(&service, SECOND / 2, work).await;
    assert!(is_lost(events.last().unwrap()));
    assert_eq!(service.seen_on(RUN).len(), 4);
    // Two answers that did not come within 30 seconds, one stream that was silent for 60.
    assert!(started.elapsed() <= SECOND * 130, "{:?}", started.elapsed());
}
