//! Strict parsing against its rules and against serde_json.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn refusal(text: &str) -> String {
    let refused = parse(text.as_bytes()).unwrap_err();
    assert_eq!(parse_document(text.as_bytes()).unwrap_err(), refused);
    refused.to_string()
}

fn nested(open: &str, levels: usize, close: &str) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn a_repeated_key_is_refused_wherever_and_however_it_is_written() {
    assert_eq!(refusal(r#"{"a":1,"a":2}"#), "/a: key is repeated");
    assert_eq!(refusal(r#"{"a":1,"\u0061":2}"#), "/a: key is repeated");
    assert_eq!(
        refusal(r#"[0,{"b":[{"c/d":{},"c\/d":{}}]}]"#),
        "/1/b/0/c~1d: key is repeated"
    );
    assert_eq!(
        refusal(r#"{"😀":1,"\ud83d\ude00":2}"#),
        "/😀: key is repeated"
    );
    let many: String = (0..100).map(|n| format!("\"k{n}\":0,")).collect();
    assert_eq!(
        refusal(&format!("{{{many}\"k3\":0}}")),
        "/k3: key is repeated"
    );
    assert_eq!(
        parse(br#"{"a":{"a":1},"b":{"a":1}}"#).unwrap(),
        json!({"a":{"a":1},"b":{"a":1}})
    );
}

#[test]
fn five_hundred_and_twelve_levels_pass_and_one_more_is_refused() {
    for (open, close) in [("[", "]"), ("{\"n\":", "}"), ("[{\"n\":", "}]")] {
        let step = if open.len() > 5 { 2 } else { 1 };
        let value = parse(nested(open, MAX_STRICT_DEPTH / step, close).as_bytes()).unwrap();
        assert_eq!(value, value.clone());
        assert_eq!(
            value.to_string(),
            nested(open, MAX_STRICT_DEPTH / step, close)
        );
        let document =
            parse_document(nested(open, MAX_STRICT_DEPTH / step, close).as_bytes()).unwrap();
        assert_eq!(document.into_value(), value);
        let refused = refusal(&nested(open, MAX_STRICT_DEPTH / step + 1, close));
        assert!(
            refused.ends_with("is nested more than 512 levels deep"),
            "{refused}"
        );
    }
    let endless = "[".repeat(1 << 20);
    assert!(refusal(&endless).ends_with("is nested more than 512 levels deep"));
}

#[test]
fn core_2_4_what_is_not_json_is_refused_with_its_place() {
    for (text, refused) in [
        ("", "must be JSON (byte 0)"),
        (" ", "must be JSON (byte 1)"),
        ("[1,]", "/1: must be JSON (byte 3)"),
        ("{\"a\":1,}", "must be JSON (byte 7)"),
        ("{a:1}", "must be JSON (byte 1)"),
        ("[1 2]", "must be JSON (byte 3)"),
        ("01", "must end after one JSON value (byte 1)"),
        ("{} {}", "must end after one JSON value (byte 3)"),
        ("\u{FEFF}{}", "must be JSON (byte 0)"),
        ("nul", "must be JSON (byte 0)"),
        ("\"a\nb\"", "must be JSON (byte 2)"),
        ("\"a", "must be JSON (byte 2)"),
        ("\"\\x\"", "must be JSON (byte 2)"),
        ("\"\\u12g4\"", "must be JSON (byte 5)"),
        ("[\"\\ud800\"]", "/0: text holds an unpaired surrogate"),
        ("\"\\ud800\\u0041\"", "text holds an unpaired surrogate"),
        ("\"\\ud800\\ud800\"", "text holds an unpaired surrogate"),
        ("{\"\\udc00\":1}", "text holds an unpaired surrogate"),
        ("{\"a\":1e400}", "/a: number is too large for a double"),
        ("NaN", "must be JSON (byte 0)"),
        ("+1", "must be JSON (byte 0)"),
    ] {
        assert_eq!(refusal(text), refused, "{text:?}");
    }
    assert_eq!(parse(b"\"\xff\"").unwrap_err().to_string(), "must be UTF-8");
}

#[test]
fn a_path_shows_little_of_a_key_and_no_control() {
    let key = "k".repeat(200);
    let refused = refusal(&format!("{{\"{key}\":1e999}}"));
    assert_eq!(
        refused,
        format!("/{}...: number is too large for a double", &key[..48])
    );
    assert_eq!(
        refusal("{\"a\\n\\u0000\":1e999}"),
        "/a??: number is too large for a double"
    );
}

#[test]
fn a_document_keeps_the_order_of_its_members() {
    let document = parse_document(br#"{"z":1,"a":[true,null],"m":{}}"#).unwrap();
    let Document::Object(members) = &document else {
        panic!("{document:?}")
    };
    let keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["z", "a", "m"]);
    assert_eq!(document.get("m"), Some(&Document::Object(vec![])));
}

#[test]
fn proto_is_a_plain_key() {
    let value = parse(br#"{"__proto__":{"a":1},"constructor":2}"#).unwrap();
    assert_eq!(value, json!({"__proto__":{"a":1},"constructor":2}));
}

/// What the rules change against serde_json: repeated keys, depth and doubles out of range aside, the same
/// texts are taken, and the values differ only in how a number is held.
fn agrees(text: &[u8]) -> Result<(), TestCaseError> {
    let ours = parse(text);
    let ordered = parse_document(text).map(Document::into_value);
    prop_assert_eq!(&ours, &ordered);
    match (ours, serde_json::from_slice::<Value>(text)) {
        (Ok(ours), Ok(theirs)) => prop_assert!(same(&ours, &theirs), "{} {}", ours, theirs),
        (Err(_), Err(_)) => {}
        (Err(refused), Ok(_)) => prop_assert_eq!(refused.rule(), "key is repeated"),
        (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("recursion limit")),
    }
    Ok(())
}

/// serde_json's default reading of a double may be one unit in the last place off.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            ours == theirs || (ours - theirs).abs() <= ours.abs() * f64::EPSILON
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(key, a)| theirs.get(key).is_some_and(|b| same(a, b)))
        }
        _ => ours == theirs,
    }
}

/// Text that is nearly JSON: its tokens in any order.
fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"b\":",
        "\\",
        "\\u0061",
        "\\ud83d",
        "\\ude00",
        "null",
        "true",
        "fals",
        "e",
        "0",
        "-",
        "1.5",
        "1e5",
        "e+9",
        "1E-9",
        " ",
        "\n",
        "\u{0}",
        "é",
        "😀",
        "123456789012345678901234567890",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_are_refused_or_read_as_serde_json_reads_them(bytes in any::<Vec<u8>>()) {
        agrees(&bytes)?;
    }

    #[test]
    fn random_tokens_are_refused_or_read_as_serde_json_reads_them(text in tokens()) {
        agrees(text.as_bytes())?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn mutated_documents_are_refused_or_read_as_serde_json_reads_them(
        value in value(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..4),
    ) {
        let mut bytes = serde_json::to_vec(&value).unwrap();
        for (at, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        agrees(&bytes)?;
    }

    #[test]
    fn every_double_is_read_back_exactly(double in any::<f64>()) {
        prop_assume!(double.is_finite());
        for text in [format!("{double:?}"), format!("{double:e}")] {
            prop_assert_eq!(parse(text.as_bytes()).unwrap().as_f64(), Some(double), "{}", text);
        }
    }
}
