//! The bounds of core contracts 1.3 to 1.8 and 3.12, each at its edge.

use super::*;
use crate::contract::document::Document;
use crate::contract::limits::{MAX_ARRAY, MAX_FILE_PAYLOAD, MAX_IDENTIFIER, MAX_INLINE_TOTAL};
use crate::contract::strict;
use proptest::prelude::*;
use serde_json::json;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "n": inner }))
}

fn violation(result: Result<(), BoundError>) -> Violation {
    result.unwrap_err().violation().clone()
}

fn facts(violation: &Violation) -> (&'static str, &str, Option<usize>, Option<usize>) {
    let limit = violation.limit().map(|limit| limit.value());
    (
        violation.rule().as_str(),
        violation.path(),
        violation.observed(),
        limit,
    )
}

#[test]
fn core_1_1_an_identifier_has_512_units_and_no_outer_white_space() {
    let taken = |text: &str| Identifier::new(text).is_ok();
    assert!(taken(&"a".repeat(MAX_IDENTIFIER)) && !taken(&"a".repeat(MAX_IDENTIFIER + 1)));
    assert!(taken(&"😀".repeat(256)) && !taken(&"😀".repeat(257)));
    // ECMAScript trims a byte order mark and leaves a next line.
    assert!(!taken("\u{feff}a") && !taken("a\u{feff}"));
    assert!(taken("\u{85}a") && taken("a\u{85}"));
}

#[test]
fn core_1_2_an_object_has_256_keys() {
    let object = |keys: usize| -> Value {
        let members = (0..keys).map(|key| (format!("k{key}"), json!(1)));
        members.collect::<serde_json::Map<_, _>>().into()
    };
    assert!(json("m", &object(256)).is_ok());
    let refused = violation(json("m", &object(257)));
    assert_eq!(facts(&refused), ("entries", "", Some(257), Some(256)));
}

#[test]
fn core_1_2_sixteen_levels_are_taken_and_seventeen_refused() {
    assert!(json("m", &nested(16)).is_ok());
    let refused = violation(json("m", &nested(17)));
    let path = vec!["n"; 16].join(".");
    assert_eq!(facts(&refused), ("depth", &*path, Some(16), Some(16)));
    // A scalar inside the sixteenth is fine, an empty container is not.
    let list = (0..15).fold(json!([[]]), |inner, _| json!([inner]));
    assert_eq!(violation(json("m", &list)).rule(), BoundRule::Depth);
}

#[test]
fn core_1_3_a_container_counts_two_nodes_and_one_as_operation_material() {
    let scalars = |count: usize| -> Value {
        let lists = (0..8).map(|list| vec![0; (count / 8) + usize::from(list < count % 8)]);
        lists.map(Value::from).collect()
    };
    assert!(json("m", &scalars(8_174)).is_ok());
    let refused = violation(json("m", &scalars(8_175)));
    assert_eq!(facts(&refused), ("nodes", "", Some(8_193), Some(8_192)));
    assert!(operation_digest("m", &scalars(8_183)).is_ok());
    assert!(operation_digest("m", &scalars(8_184)).is_err());
}

#[test]
fn core_1_4_a_long_string_is_event_content_and_not_metadata() {
    let value = json!({ "t": "a".repeat(1_000_000) });
    assert!(event_content("e", &value).is_ok());
    let refused = violation(json("m", &value));
    assert_eq!(
        facts(&refused),
        ("string", "t", Some(1_000_000), Some(MAX_STRING))
    );
    assert!(string("s", &"研".repeat(MAX_STRING)).is_ok());
    assert!(string("s", &"😀".repeat(MAX_STRING / 2 + 1)).is_err());
}

#[test]
fn event_content_is_refused_where_its_text_grows_too_large() {
    let value = json!(["a".repeat(600_000), "b".repeat(600_000), 1]);
    let refused = violation(event_content("e", &value));
    assert_eq!(
        facts(&refused),
        ("payload", "[1]", Some(1_200_008), Some(MAX_JSON_BYTES))
    );
    assert_eq!(refused.limit().unwrap().name(), "MAX_JSON_BYTES");
}

#[test]
fn operation_material_is_hashed_whole_or_not_at_all() {
    let material = json!({"b": 1, "a": [true]});
    assert_eq!(operation_digest("op", &material), Ok(Digest::of(&material)));
    let large: Value = (0..70).map(|_| json!("a".repeat(MAX_STRING))).collect();
    assert!(json("m", &large).is_ok());
    let refused = operation_digest("op", &large).unwrap_err();
    assert_eq!(refused.violation().rule(), BoundRule::Payload);
    assert!(operation_digest("op", &json!("a".repeat(MAX_STRING + 1))).is_err());
}

#[test]
fn a_record_is_an_object() {
    assert!(record("r", &json!({"a": 1})).is_ok());
    for value in [json!([1]), json!(null), json!("a")] {
        let error = record("r", &value).unwrap_err();
        assert_eq!(facts(error.violation()), ("type", "", None, None));
        assert_eq!(
            error.to_string(),
            "r violates its bound: must be an object, at the root"
        );
    }
}

#[test]
fn the_first_violation_is_first_in_the_text() {
    let text = format!(
        r#"{{"z":{{"late":"{0}"}},"a":"{0}"}}"#,
        "x".repeat(MAX_STRING + 1)
    );
    let document = strict::parse_document(text.as_bytes()).unwrap();
    assert_eq!(violation(json("m", &document)).path(), "z.late");
    assert_eq!(violation(profile("m", &document)).path(), "z.late");
    // A key is looked at with its member, not before the members that stand before it.
    let (text, key) = ("x".repeat(MAX_STRING + 1), "k".repeat(MAX_IDENTIFIER + 1));
    for (text, rule, path) in [
        (format!(r#"{{"a":"{text}","{key}":1}}"#), "string", "a"),
        (format!(r#"{{"{key}":1,"a":"{text}"}}"#), "key", ""),
        (format!(r#"{{"a":1,"{key}":"{text}"}}"#), "key", ""),
    ] {
        let document = strict::parse_document(text.as_bytes()).unwrap();
        let found = violation(json("m", &document));
        assert_eq!((found.rule().as_str(), found.path()), (rule, path));
    }
}

#[test]
fn an_over_long_key_is_named_by_its_position() {
    let key = "k".repeat(MAX_IDENTIFIER + 1);
    let text = format!(r#"{{"o":[{{"b":0,"{key}":1}}]}}"#);
    let document = strict::parse_document(text.as_bytes()).unwrap();
    let error = json("metadata", &document).unwrap_err();
    assert_eq!(
        facts(error.violation()),
        ("key", "o[0]", Some(513), Some(512))
    );
    assert_eq!(error.violation().entry(), Some(1));
    assert_eq!(
        error.to_string(),
        "metadata exceeds its bound: 513 UTF-16 units of a key, limit 512 (MAX_IDENTIFIER), key 1, at o[0]"
    );
}

#[test]
fn provider_1_4_payload_is_recognised_by_position_only() {
    let long = "a".repeat(MAX_STRING + 1);
    let resource = json!({"kind": "inline", "name": "n", "content": long});
    let taken = json!({"resources": {
        "files": [{"path": "p", "resource": resource}],
        "tools": [resource], "skills": [resource], "agents": [resource], "commands": [resource],
        "instructions": resource,
    }});
    assert!(profile("p", &taken).is_ok());
    assert!(json("p", &taken).is_err());
    assert!(profile("p", &json!({"resources": {"instructions": long}})).is_ok());
    for refused in [
        json!({"metadata": {"resources": {"instructions": long}}}),
        json!({"resources": {"tools": {"0": resource}}}),
        json!({"resources": {"tools": [{"resource": resource}]}}),
        json!({"resources": {"files": [resource]}}),
        json!({"resources": {"files": [{"resource": long}]}}),
        json!({"resources": {"instructions": {"content": {"content": long}}}}),
        json!({"resources": {"prompts": [resource]}}),
    ] {
        assert_eq!(violation(profile("p", &refused)).rule(), BoundRule::String);
    }
}

fn mounts(contents: &[&str]) -> Value {
    let mount = |content: &&str| json!({"path": "p", "resource": {"kind": "inline", "name": "n", "content": content}});
    let files: Vec<Value> = contents.iter().map(mount).collect();
    json!({"resources": {"files": files}})
}

#[test]
fn credentials_12_a_payload_is_counted_in_bytes() {
    let full = "x".repeat(MAX_FILE_PAYLOAD);
    assert!(profile("p", &mounts(&[&full])).is_ok());
    for over in [format!("{full}x"), "研".repeat(1_398_102)] {
        let refused = violation(profile("p", &mounts(&["", &over])));
        let at = "resources.files[1].resource.content";
        let counts = (Some(over.len()), Some(MAX_FILE_PAYLOAD));
        assert_eq!(facts(&refused), ("payload", at, counts.0, counts.1));
    }
}

#[test]
fn credentials_12_inline_resources_are_counted_together() {
    let full = "x".repeat(MAX_INLINE_TOTAL);
    let text = |skill: &str| {
        let skills = format!(r#"[{{"content": ""}}, {{"content": "{skill}"}}]"#);
        let file = format!(r#"{{"resource": {{"content": "{full}"}}}}"#);
        format!(
            r#"{{"resources": {{"files": [{file}], "instructions": "{full}", "skills": {skills}}}}}"#
        )
    };
    let check = |skill| {
        profile(
            "p",
            &strict::parse_document(text(skill).as_bytes()).unwrap(),
        )
    };
    assert!(check("").is_ok());
    let (at, counts) = (
        "resources.skills[1].content",
        (MAX_INLINE_TOTAL + 1, MAX_INLINE_TOTAL),
    );
    let refused = violation(check("x"));
    assert_eq!(
        facts(&refused),
        ("inlinePayload", at, Some(counts.0), Some(counts.1))
    );
}

#[test]
fn credentials_12_all_payloads_are_counted_together() {
    let full = "x".repeat(MAX_FILE_PAYLOAD);
    assert!(profile("p", &mounts(&[&*full; 16])).is_ok());
    let refused = violation(profile("p", &mounts(&[&*full; 17])));
    assert_eq!(refused.rule(), BoundRule::TotalPayload);
    assert_eq!(refused.path(), "resources.files[16].resource.content");
}

#[test]
fn credentials_12_other_text_is_counted_in_utf16_units() {
    let name = |emoji: usize| json!({"name": "😀".repeat(emoji)});
    assert!(profile("p", &name(8192)).is_ok());
    let refused = violation(profile("p", &name(8193)));
    assert_eq!(
        facts(&refused),
        ("string", "name", Some(16_386), Some(MAX_STRING))
    );
}

#[test]
fn credentials_12_a_list_of_mounts_is_an_array() {
    let refused = violation(profile("p", &mounts(&[""; 1025])));
    assert_eq!(
        facts(&refused),
        ("array", "resources.files", Some(1025), Some(MAX_ARRAY))
    );
}

#[test]
fn a_profile_may_lie_under_keys() {
    let long = "a".repeat(MAX_STRING + 1);
    let inner = json!({"resources": {"instructions": long}});
    let value = json!({"backend": {"profile": inner}});
    assert!(profile_at("b", &value, &["backend", "profile"]).is_ok());
    let refused = violation(profile_at("b", &value, &["profile"]));
    assert_eq!(refused.path(), "backend.profile.resources.instructions");
    assert!(profile_at("b", &inner, &["backend", "profile"]).is_err());
}

#[test]
fn core_1_5_a_bound_error_is_short_and_holds_nothing_of_the_value() {
    let secret = "§".repeat(MAX_STRING + 1);
    let long = "k".repeat(MAX_IDENTIFIER);
    let value = (0..15).fold(json!(secret), |inner, _| json!({ (&*long): inner }));
    let error = json(&"label ".repeat(200), &value).unwrap_err();
    let message = error.to_string();
    assert!(message.encode_utf16().count() <= 512, "{message}");
    assert!(message.contains("exceeds"));
    assert!(!format!("{message}{error:?}").contains('§'));
    assert_eq!(error.code(), "JSON_BOUND_VIOLATION");
}

#[test]
fn approximate_equality_allows_sixteen_roundings() {
    assert!(approx_equal(0.1 + 0.2, 0.3));
    assert!(!approx_equal(1.0, 1.000_000_000_000_01));
    assert!(approx_equal(1e15, 1_000_000_000_000_002.0));
    assert!(!approx_equal(0.0, f64::NAN));
    assert!(!approx_equal(f64::INFINITY, 1.0));
}

proptest! {
    #[test]
    fn event_content_counts_the_bytes_of_the_compact_text(
        texts in prop::collection::vec("[\\x00-\\x7fé😀]{0,20}", 0..20),
        numbers in prop::collection::vec(any::<f64>(), 0..20),
        over in any::<bool>(),
    ) {
        let members: Vec<(String, Document)> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| (format!("{n}{text}"), Document::String(text.clone())))
            .collect();
        let numbers = numbers.into_iter().filter_map(serde_json::Number::from_f64);
        let numbers = numbers.map(Document::Number).collect();
        let parts = vec![Document::Object(members), Document::Array(numbers), Document::Bool(false)];
        let text = canonical::to_text(&Document::Array(parts.clone()).into_value());
        let fill = MAX_JSON_BYTES - text.len() - 3 + usize::from(over);
        let mut parts = parts;
        parts.push(Document::String("f".repeat(fill)));
        prop_assert_eq!(event_content("e", &Document::Array(parts)).is_err(), over);
    }
}
