//! Canonical JSON against an independent implementation, over documents of every definition and over any JSON.
//!
//! With the feature `preserve-order` the same runs beside a `serde_json` that keeps the order of members, as a neighbour's
//! crate may ask for.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tangle_sandbox::contract::{canonical, digest::Digest, strict};
use tangle_sandbox_proofs::generate::{Generator, as_read};
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::{cases, seed};

/// What the other implementation writes.
fn peer(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).expect("a value of JSON")
}

#[test]
fn documents_of_every_definition_have_the_text_of_the_peer() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let names: Vec<&str> = schemas.names().collect();
    let each = cases(4_000).div_ceil(names.len());
    let mut compared = 0;
    for name in names {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        for _ in 0..each {
            let mut document = maker.document(name);
            maker.damage(schemas.get(name), &mut document);
            // Members in another order than the sorted one, for maps that keep it.
            let shuffled = shuffled(&document, &mut |count| maker.dice.below(count));
            let text = canonical::to_text(&shuffled);
            assert_eq!(text, peer(&document), "{name}");
            assert_eq!(
                canonical::digest(&shuffled),
                Digest::of_bytes(text.as_bytes()),
                "{name}"
            );
            compared += 1;
        }
    }
    println!("{compared} documents");
}

fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<f64>().prop_filter_map("finite", serde_json::Number::from_f64),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1000i64..1000).prop_map(Into::into),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed()),
        failure_persistence: None,
        cases: 2_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_json_has_the_text_of_the_peer(value in any_json()) {
        let text = canonical::to_text(&value);
        prop_assert_eq!(&text, &peer(&value));
        // The text is a fixed point, whoever reads it.
        let read = strict::parse(text.as_bytes()).expect("canonical text is strict JSON");
        prop_assert_eq!(canonical::to_text(&read), text);
    }
}

/// `value` with the members of each object put in by chance.
fn shuffled(value: &Value, below: &mut impl FnMut(usize) -> usize) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| shuffled(item, below)).collect(),
        Value::Object(members) => {
            let mut left: Vec<(&String, &Value)> = members.iter().collect();
            let mut new = Map::new();
            while !left.is_empty() {
                let (key, member) = left.swap_remove(below(left.len()));
                new.insert(key.clone(), shuffled(member, below));
            }
            Value::Object(new)
        }
        scalar => scalar.clone(),
    }
}

#[test]
fn the_map_keeps_order_only_with_the_feature() {
    let read: Value = serde_json::from_str(r#"{"b":1,"a":2}"#).expect("JSON");
    let first = read.as_object().and_then(|members| members.keys().next());
    let kept = first.is_some_and(|first| first == "b");
    assert_eq!(kept, cfg!(feature = "preserve-order"));
    assert_eq!(as_read(&read), Some(read));
}
