//! Canonical text against RFC 8785, against an independent implementation, and against hostile depth.

use super::*;
use crate::contract::strict;
use proptest::prelude::*;
use serde_json::json;

fn of(text: &str) -> String {
    to_text(&strict::parse(text.as_bytes()).unwrap())
}

#[test]
fn core_2_1_the_empty_object_has_its_known_digest() {
    let known = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(digest(&json!({})).to_string(), known);
}

#[test]
fn core_2_2_numbers_are_written_as_ecmascript_writes_them() {
    assert_eq!(of("[1e21,-0,1e-7,1.0]"), "[1e+21,0,1e-7,1]");
    assert_eq!(
        of("[9007199254740993,12345678901234567890,-9223372036854775808,-5,1.5e-9]"),
        "[9007199254740992,12345678901234567000,-9223372036854776000,-5,1.5e-9]"
    );
    // A value made by hand may hold what the parser would have normalised.
    assert_eq!(
        to_text(&json!([-0.0, 2.0, -3.0, 1e20])),
        "[0,2,-3,100000000000000000000]"
    );
}

#[test]
fn core_2_3_keys_are_sorted_by_utf16_code_units() {
    assert_eq!(
        of(r#"{"\ue000":1,"😀":2,"z":3}"#),
        "{\"z\":3,\"😀\":2,\"\u{e000}\":1}"
    );
    assert_eq!(
        of(r#"{"b":{"d":1,"c":2},"a":[]}"#),
        r#"{"a":[],"b":{"c":2,"d":1}}"#
    );
}

#[test]
fn strings_escape_what_json_must_escape_and_nothing_else() {
    let text = "\u{0}\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f}\"\\/\u{7f}\u{2028}é😀<&>";
    assert_eq!(
        to_text(&json!(text)),
        "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u{7f}\u{2028}é😀<&>\""
    );
}

#[test]
fn depth_costs_no_stack() {
    let text = format!(
        "{}{}",
        "[{\"n\":".repeat(256),
        "null".to_owned() + &"}]".repeat(256)
    );
    let value = strict::parse(text.as_bytes()).unwrap();
    let small = std::thread::Builder::new().stack_size(64 * 1024);
    let (same, digest) = std::thread::scope(|scope| {
        small
            .spawn_scoped(scope, || (to_text(&value) == text, digest(&value)))
            .unwrap()
            .join()
            .unwrap()
    });
    assert!(same);
    assert_eq!(digest, Digest::of_bytes(text.as_bytes()));
}

#[test]
fn a_record_is_hashed_without_its_own_digest() {
    let record = json!({"a": {"digest": 1}, "digest": "sha256:0", "z": 2});
    assert_eq!(
        digest_without(&record, "digest"),
        digest(&json!({"a": {"digest": 1}, "z": 2}))
    );
    assert_eq!(digest_without(&json!([1]), "digest"), digest(&json!([1])));
    assert_eq!(
        digest_without(&json!({"digest": 1}), "digest"),
        digest(&json!({}))
    );
}

#[test]
fn a_large_value_is_hashed_in_pieces() {
    let value: Value = (0..5_000)
        .map(|n| json!({"id": n, "text": "é".repeat(n % 40)}))
        .collect();
    assert!(to_text(&value).len() > 10 * HASHED_AT_ONCE);
    assert_eq!(digest(&value), Digest::of_bytes(to_text(&value).as_bytes()));
}

/// Keys and texts from the places where UTF-8 and UTF-16 disagree and where escapes begin.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>(),
        prop::char::range('\u{0}', '\u{7f}'),
        prop::char::range('\u{d7f0}', '\u{e010}'),
        prop::char::range('\u{fff0}', '\u{1000f}'),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|chars| chars.into_iter().collect())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (any::<i32>(), -30..30i32).prop_map(|(n, e)| json!(f64::from(n) * 10f64.powi(e))),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn text_equals_that_of_an_independent_implementation(value in value()) {
        prop_assert_eq!(to_text(&value), serde_json_canonicalizer::to_string(&value).unwrap());
    }

    #[test]
    fn canonical_text_is_a_fixed_point(value in value()) {
        let text = to_text(&value);
        prop_assert_eq!(of(&text), text);
    }

    #[test]
    fn order_is_that_of_utf16_code_units(a in text(), b in text()) {
        prop_assert_eq!(utf16_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn the_digest_is_that_of_the_text(value in value()) {
        prop_assert_eq!(digest(&value), Digest::of_bytes(to_text(&value).as_bytes()));
    }

    #[test]
    fn the_length_is_that_of_the_text(value in value()) {
        prop_assert_eq!(length(&value), to_text(&value).len());
    }
}
