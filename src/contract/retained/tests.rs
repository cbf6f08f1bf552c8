//! What the vectors do not say: codes, order, places, typed digests.

use serde_json::{Value, json};

use super::*;
use crate::contract::types::{AbortAnswer, EventId, SessionStatus};
use crate::contract::{from_value, read};

fn run() -> RunControlRef {
    mint_ref(NewRef {
        provider: "tangle-sandbox".parse().unwrap(),
        environment_id: "sbx-1".parse().unwrap(),
        session_id: "session-1".parse().unwrap(),
        execution_id: "x-1".parse().unwrap(),
        run_id: None,
        request_digest: None,
    })
    .unwrap()
}

/// The same run with one field changed.
fn other(field: &str) -> RunControlRef {
    let mut value = json!(run());
    value[field] = match field {
        "requestDigest" => json!(format!("sha256:{}", "1".repeat(64))),
        _ => json!("other"),
    };
    from_value(value).unwrap()
}

const FIELDS: [&str; 6] = [
    "runId",
    "provider",
    "environmentId",
    "sessionId",
    "executionId",
    "requestDigest",
];

fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn provider_8_1_two_references_name_one_run_only_if_all_six_fields_are_equal() {
    let loose = LooseRunRef::from(run());
    assert!(same_run(&loose, &run().into()));
    for field in FIELDS {
        assert_ne!(run(), other(field));
        assert!(!same_run(&loose, &other(field).into()), "{field}");
    }
    let mut partial = loose.clone();
    partial.request_digest = None;
    assert!(same_run(&partial, &partial.clone()));
    assert!(!same_run(&loose, &partial));
}

#[test]
fn provider_8_1_a_loose_reference_is_exact_when_it_lacks_nothing() {
    let loose = LooseRunRef::from(run());
    assert_eq!(RunControlRef::try_from(loose.clone()), Ok(run()));
    for field in &FIELDS[3..] {
        let mut partial = json!(loose);
        partial.as_object_mut().unwrap().remove(*field);
        let partial: LooseRunRef = from_value(partial).unwrap();
        let refused = RunControlRef::try_from(partial).unwrap_err();
        assert_eq!(refused.path(), format!("/{field}"));
    }
}

#[test]
fn provider_8_1_a_reference_is_used_only_where_it_belongs() {
    let place = Target {
        execution_id: None,
        request_digest: None,
        ..Target::from(&run())
    };
    for field in FIELDS {
        let read = place.read(&json!(other(field)));
        if ["provider", "environmentId", "sessionId"].contains(&field) {
            assert_eq!(read, Err(Refusal::ReferenceOtherTarget { field }));
        } else {
            assert_eq!(read, Ok(other(field)));
        }
    }
    assert_eq!(code(place.read(&Value::Null)), "VALIDATION_ERROR");
    assert_eq!(session::open(None, &place), Ok(None));
    assert_eq!(
        code(session::open(Some(&json!(null)), &place)),
        "VALIDATION_ERROR"
    );
}

#[test]
fn provider_8_2_a_refused_receipt_names_its_first_fault() {
    let good = json!({"sessionId": "session-1", "executionId": "x-1", "runControlRef": run()});
    let asked = run();
    let found = |change: &dyn Fn(&mut Value)| {
        let mut receipt = good.clone();
        change(&mut receipt);
        code(read_receipt(&receipt, &asked, None))
    };
    let set = |key: &'static str, value: Value| {
        found(&move |receipt: &mut Value| receipt[key] = value.clone())
    };
    assert_eq!(set("sessionId", json!("")), "session-missing");
    assert_eq!(set("sessionId", json!(null)), "session-missing");
    assert_eq!(set("sessionId", json!(" s")), "session-missing");
    assert_eq!(set("sessionId", json!("other")), "session-mismatch");
    assert_eq!(set("executionId", json!("x-1 ")), "execution-missing");
    assert_eq!(set("executionId", json!("other")), "execution-mismatch");
    assert_eq!(set("status", json!(null)), "status-type");
    assert_eq!(set("dispatched", json!(null)), "flag-type");
    assert_eq!(
        set("runControlRef", json!({})),
        "reference-missing-or-invalid"
    );
    for field in &FIELDS[1..] {
        let refused = set("runControlRef", json!(other(field)));
        assert_eq!(refused, "reference-mismatch", "{field}");
    }
    assert_eq!(set("more", json!("m".repeat(16_385))), "metadata-bound");
    assert_eq!(set("status", json!("s".repeat(16_385))), "metadata-bound");
    for nothing in [json!([]), json!("session-1"), json!(true)] {
        assert_eq!(
            code(read_receipt(&nothing, &asked, None)),
            "session-missing"
        );
    }
}

#[test]
fn provider_8_2_a_refused_receipt_names_its_place() {
    let receipt = |more: Value| {
        let mut receipt =
            json!({"sessionId": "session-1", "executionId": "x-1", "runControlRef": run()});
        receipt
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let refusal = read_receipt(&receipt, &run(), None).unwrap_err();
        refusal.path().into_owned()
    };
    assert_eq!(receipt(json!({"dispatched": 1})), "/dispatched");
    assert_eq!(
        receipt(json!({"runControlRef": other("provider")})),
        "/runControlRef/provider"
    );
    assert_eq!(
        receipt(json!({"more": {"a": "m".repeat(16_385)}})),
        "/more/a"
    );
}

#[test]
fn provider_8_2_an_empty_status_is_left_out_and_the_callers_reference_stands_in() {
    let receipt =
        json!({"id": "session-1", "executionId": "x-1", "status": "", "dispatched": true});
    let session = read_receipt(&receipt, &run(), Some(&run())).unwrap();
    assert_eq!(session.control_ref, run());
    assert_eq!(json!(session.metadata), json!({"dispatched": true}));
    // A reference that is there and not exact is not made good by that of the caller.
    let mut receipt = receipt;
    receipt["runControlRef"] = Value::Null;
    assert_eq!(
        read_receipt(&receipt, &run(), Some(&run())),
        Err(Refusal::ReferenceMissingOrInvalid)
    );
    // Beside the session, its older spelling counts for nothing.
    for older in [json!("other"), json!(" s"), json!(7), json!(null)] {
        let receipt = json!({"sessionId": "session-1", "id": older, "executionId": "x-1"});
        assert!(read_receipt(&receipt, &run(), Some(&run())).is_ok());
    }
}

#[test]
fn provider_8_2_only_a_run_that_this_call_started_may_be_interrupted() {
    for (dispatched, existed, ours) in [
        (json!(true), json!(false), true),
        (json!(true), json!(null), true),
        (json!(true), json!(true), false),
        (json!(false), json!(false), false),
        (json!("true"), json!(false), false),
        (json!(null), json!(null), false),
    ] {
        let receipt =
            json!({"executionId": "x-2", "dispatched": dispatched, "alreadyExisted": existed});
        let expected = ours.then(|| "x-2".parse().unwrap());
        assert_eq!(started_by_this_call(&receipt), expected, "{receipt}");
    }
    assert_eq!(started_by_this_call(&json!({"dispatched": true})), None);
    assert_eq!(started_by_this_call(&Value::Null), None);
}

#[test]
fn provider_8_3_a_call_about_one_run_without_a_reference_is_refused() {
    let since: EventId = "4".parse().unwrap();
    let request = CancelRequest::new("op-1".parse().unwrap(), run(), None);
    let needs = "reference-required";
    assert_eq!(
        code(session::events(None, Some(since.clone()), None)),
        needs
    );
    let execution = run().execution_id;
    assert_eq!(code(session::events(None, None, Some(&execution))), needs);
    assert_eq!(code(session::result(None, Some("x-1"))), needs);
    assert_eq!(code(session::exact(None)), needs);
    assert_eq!(code(session::cancel_run(None, &request)), needs);
    assert_eq!(
        session::events(None, None, None),
        Ok(session::Events::LiveTail)
    );
    // With one, a reader gets the frames of that execution: all, or those after the cursor.
    let run = run();
    for (since, after) in [(None, "0"), (Some(since), "4")] {
        let events = session::events(Some(&run), since, Some(&execution)).unwrap();
        let after = after.parse().unwrap();
        assert_eq!(events, session::Events::Exact { run: &run, after });
    }
    let elsewhere = "x-2".parse().unwrap();
    assert_eq!(
        code(session::events(Some(&run), None, Some(&elsewhere))),
        "reference-other-target"
    );
}

#[test]
fn provider_8_3_a_result_of_another_execution_is_refused() {
    let run = run();
    assert_eq!(session::result(Some(&run), Some("x-1")), Ok(()));
    for named in [Some("x-2"), Some(""), None] {
        assert_eq!(
            code(session::result(Some(&run), named)),
            "result-other-execution"
        );
    }
}

#[test]
fn provider_8_3_a_cancel_that_is_not_confirmed_is_an_error() {
    let answer = |cancelled: bool| -> AbortAnswer {
        from_value(json!({"cancelled": cancelled, "reason": "not-running"})).unwrap()
    };
    assert_eq!(session::cancel(&answer(true)), Ok(()));
    assert_eq!(code(session::cancel(&answer(false))), "cancel-unconfirmed");
}

#[test]
fn provider_8_3_the_status_without_a_reference_is_that_of_the_session() {
    let record = json!({"status": "running", "activeExecutionId": "x-2"});
    assert_eq!(session::status(None, &record), Some(SessionStatus::Running));
    assert_eq!(
        session::status(Some(&run()), &record),
        Some(SessionStatus::Unknown)
    );
    assert_eq!(session::status(None, &Value::Null), None);
    assert_eq!(session::status(Some(&run()), &Value::Null), None);
}

#[test]
fn provider_8_5_a_cancel_is_bound_to_its_run_and_its_digest() {
    let request = CancelRequest::new("op-1".parse().unwrap(), run(), None);
    let reasoned = |reason: &str| {
        CancelRequest::new(
            "op-1".parse().unwrap(),
            run(),
            Some(reason.parse().unwrap()),
        )
    };
    assert_ne!(request.digest(), reasoned("late").digest());
    assert_eq!(session::cancel_run(Some(&run()), &request), Ok(()));
    for field in FIELDS {
        assert_eq!(
            session::cancel_run(Some(&other(field)), &request),
            Err(Refusal::CancelOtherRun)
        );
    }
    // A request that was put together by hand passes only with its own digest.
    let forged = CancelRequest {
        request_digest: reasoned("late").digest(),
        ..request.clone()
    };
    assert_eq!(forged.rules().unwrap_err().path(), "/requestDigest");
    assert_eq!(
        code(session::cancel_run(Some(&run()), &forged)),
        "VALIDATION_ERROR"
    );
    let refused = from_value::<CancelRequest>(json!(forged)).unwrap_err();
    assert_eq!(refused.path(), "/requestDigest");
    assert_eq!(from_value::<CancelRequest>(json!(request)), Ok(request));
}

#[test]
fn provider_8_5_an_acknowledgement_belongs_to_its_request_alone() {
    let request = CancelRequest::new("op-1".parse().unwrap(), run(), None);
    let answer = CancelAcknowledgement {
        operation_id: request.operation_id.clone(),
        request_digest: request.request_digest,
        run: run(),
        status: ControlStatus::Accepted,
        effect: CancelEffect::CancelRequested,
        message: None,
        retryable: None,
        existing_request_digest: None,
    };
    assert_eq!(answer.answers(&request), Ok(()));
    let another = CancelRequest::new("op-2".parse().unwrap(), run(), None);
    let elsewhere = CancelRequest::new("op-1".parse().unwrap(), other("runId"), None);
    for request in [another, elsewhere] {
        assert_eq!(
            answer.answers(&request),
            Err(Refusal::AcknowledgementOtherRun)
        );
    }
    // What breaks a rule belongs to no request.
    let untrue = CancelAcknowledgement {
        effect: CancelEffect::Unknown,
        ..answer
    };
    assert_eq!(code(untrue.answers(&request)), "acknowledgement-other-run");
}

#[test]
fn provider_8_5_a_control_request_counts_an_empty_payload_and_bounds_a_large_one() {
    let request = |payload: Option<Value>| {
        let payload = payload.map(|payload| payload.as_object().unwrap().clone());
        let operation = "op-9".parse().unwrap();
        ControlRequest::new(operation, ControlAction::Steer, run(), payload)
    };
    let (none, empty) = (request(None).unwrap(), request(Some(json!({}))).unwrap());
    assert_ne!(none.digest(), empty.digest());
    for request in [none.clone(), empty] {
        assert_eq!(request.rules(), Ok(()));
        assert_eq!(from_value::<ControlRequest>(json!(request)), Ok(request));
    }
    let large = json!({"s": "s".repeat(16_385)});
    assert_eq!(
        request(Some(large.clone())).unwrap_err().code(),
        "JSON_BOUND_VIOLATION"
    );
    let mut read = json!(none);
    read["payload"] = large;
    let refused = from_value::<ControlRequest>(read).unwrap_err();
    assert_eq!(
        (refused.path(), refused.code()),
        ("/payload/s", "JSON_BOUND_VIOLATION")
    );
}

#[test]
fn provider_8_5_a_conflict_of_a_control_request_is_an_answer_to_it() {
    let request =
        ControlRequest::new("op-9".parse().unwrap(), ControlAction::Status, run(), None).unwrap();
    let answer = json!({
        "operationId": "op-9", "requestDigest": request.request_digest, "run": run(),
        "status": "conflict", "existingRequestDigest": format!("sha256:{}", "1".repeat(64)),
    });
    let answer: ControlAcknowledgement = from_value(answer).unwrap();
    assert_eq!(answer.answers(&request), Ok(()));
    let another = ControlRequest::new("op-9".parse().unwrap(), ControlAction::Steer, run(), None);
    assert_eq!(
        code(answer.answers(&another.unwrap())),
        "acknowledgement-other-run"
    );
}

#[test]
fn provider_8_6_a_prompt_comes_with_the_reference_of_its_session_or_with_none() {
    let place = Target {
        execution_id: None,
        request_digest: None,
        ..Target::from(&run())
    };
    assert_eq!(session::prompt(&place, None, &run()), Ok(()));
    assert_eq!(session::prompt(&place, Some(&run()), &run()), Ok(()));
    for field in FIELDS {
        let refused = session::prompt(&place, Some(&run()), &other(field));
        assert_eq!(refused, Err(Refusal::ReferenceOtherTarget { field }));
    }
}

#[test]
fn a_refusal_shows_no_value() {
    let canary = "hunter2hunter2";
    let text = json!(run()).to_string();
    for key in FIELDS {
        let mut document: Value = serde_json::from_str(&text).unwrap();
        document[key] = json!(format!(" {canary}"));
        let refused = read::<RunControlRef>(document.to_string().as_bytes()).unwrap_err();
        let refusal = Target::from(&run()).read(&document).unwrap_err();
        let shown = format!("{refused} {refused:?} {refusal} {refusal:?}");
        assert!(!shown.contains(canary), "{shown}");
        let receipt = json!({"sessionId": "session-1", "executionId": "x-1",
            "runControlRef": document, "status": canary, "dispatched": canary});
        let refusal = read_receipt(&receipt, &run(), None).unwrap_err();
        assert!(!format!("{refusal} {refusal:?}").contains(canary));
    }
}
