//! The targets that do no I/O. Each takes any bytes and panics where the contracts contradict themselves.

use serde_json::Value;
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::event::{
    ChildUpdates, EventDocument, Expected, RawFrame, project_terminal, read_frame,
};
use tangle_sandbox::contract::{bounds, canonical, checks, registry, strict, verify};

/// Strict JSON: both readers agree, and what they take serde_json takes too.
pub fn strict_json(bytes: &[u8]) {
    let value = strict::parse(bytes);
    let document = strict::parse_document(bytes);
    match (value, document) {
        (Ok(value), Ok(document)) => {
            assert_eq!(document.into_value(), value);
            let other: Result<Value, _> = serde_json::from_slice(bytes);
            if let Err(error) = other {
                assert!(error.to_string().contains("recursion limit"), "{error}");
            }
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(one.rule().len() < 200);
        }
        (one, other) => panic!("one reads and the other refuses: {one:?}, {other:?}"),
    }
}

/// Canonical JSON: its text is a fixed point, strict JSON, and what its digest is of.
pub fn canonical_json(bytes: &[u8]) {
    let Ok(value) = strict::parse(bytes) else {
        return;
    };
    let text = canonical::to_text(&value);
    let again = strict::parse(text.as_bytes()).expect("canonical text is strict JSON");
    assert_eq!(canonical::to_text(&again), text);
    assert_eq!(canonical::digest(&value), Digest::of_bytes(text.as_bytes()));
    let mut appended = b"before".to_vec();
    canonical::write(&value, &mut appended);
    assert_eq!(&appended[6..], text.as_bytes());
    if bounds::event_content("value", &value).is_ok() {
        // Numbers are written the same, whoever wrote them first.
        assert!(text.len() <= bytes.len().max(1 << 20));
    }
}

/// The checker: the first two bytes choose a definition, the rest is a document of it; and the contracts by name.
pub fn checker(bytes: &[u8]) {
    let Some(([low, high], document)) = bytes.split_first_chunk::<2>().map(|(a, b)| (*a, b)) else {
        return;
    };
    let choice = usize::from(u16::from_le_bytes([low, high]));
    let (_, node) = checks::ALL[choice % checks::ALL.len()];
    if let Ok(value) = strict::parse(document) {
        let answer = node.check(&value);
        assert_eq!(answer, node.check(&value));
        if let Err(refused) = answer {
            assert!(refused.keyword().is_some(), "{refused}");
        }
    }
    let contract = &registry::CONTRACTS[choice % registry::CONTRACTS.len()];
    if let Ok(accepted) = contract.check(document) {
        let normal = canonical::to_text(&accepted.document);
        assert!(strict::parse(normal.as_bytes()).is_ok());
    }
}

/// Frames: what becomes an event is one by its own schema, and nothing that a frame says stops its reader.
pub fn frames(bytes: &[u8]) {
    let Ok(value) = strict::parse(bytes) else {
        return;
    };
    if let Value::Object(record) = &value {
        let _ = project_terminal(record.clone());
    }
    let Ok(frame) = RawFrame::from_value(value) else {
        return;
    };
    event_of(frame);
}

/// The event of a frame, which the schema of events takes.
pub fn event_of(frame: RawFrame) {
    let again = RawFrame::from_value(frame.to_value()).expect("a frame is a frame as JSON");
    assert_eq!(again, frame);
    let Ok(event) = read_frame(frame, &Expected::default()) else {
        return;
    };
    if let Some(normal) = event.normalized() {
        let mut updates = ChildUpdates::new();
        updates.is_new(normal);
    }
    verify(&EventDocument::from(event)).expect("an event keeps its schema");
}
