//! Every accepted document survives type, JSON and type again, byte for byte in canonical form.
//!
//! A type whose objects are records drops what it does not know; those fields are taken out of the document before the
//! texts are compared, and nothing else is.

use serde_json::{Map, Value};
use tangle_sandbox::contract::{canonical, registry};
use tangle_sandbox_proofs::generate::{Generator, as_read, node};
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::{cases, seed, trips};

/// Definitions whose Rust type is written by hand.
const BY_HAND: &[(&str, &str)] = &[("Digest", "digest")];

#[test]
fn every_definition_has_a_type() {
    let schemas = Schemas::read();
    for name in schemas.names() {
        let kind = schemas.get(name)["x-rust"].as_str();
        let by_hand =
            kind == Some("secret") || kind.is_some_and(|kind| BY_HAND.contains(&(name, kind)));
        assert_eq!(trips::of(name).is_none(), by_hand, "{name}");
    }
    for (name, _) in trips::ALL {
        assert!(
            schemas.definitions().contains_key(*name),
            "{name} has no schema"
        );
    }
}

#[test]
fn every_accepted_document_survives_its_type() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let each = cases(6_000).div_ceil(trips::ALL.len());
    let mut faults = Vec::new();
    let mut taken = 0;
    for (name, trip) in trips::ALL {
        let schema = schemas.get(name);
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        let mut survived = 0;
        for round in 0..each {
            let mut document = maker.document(name);
            if round % 2 == 1 {
                maker.damage(schema, &mut document);
            }
            let Some(document) = as_read(&document).filter(|it| node(name).check(it).is_ok())
            else {
                continue;
            };
            survived += 1;
            let kept = known(&schemas, schema, &document);
            let fault = match trip(&document) {
                Err(error) => Some(format!("no type: {error}")),
                Ok(first) => fault(*trip, &kept, &first.body),
            };
            if let Some(fault) = fault {
                let mut text = document.to_string();
                text.truncate(text.floor_char_boundary(400));
                faults.push(format!("{name}: {fault}\n    {text}"));
            }
        }
        taken += survived;
        assert!(
            survived * 3 >= each,
            "{name}: only {survived} of {each} documents were accepted"
        );
    }
    println!("{taken} documents of {} types", trips::ALL.len());
    let found = faults.len();
    faults.truncate(30);
    assert!(found == 0, "{found} faults\n{}", faults.join("\n"));
}

/// What a second reading of `body` shows, or a difference from the document.
fn fault(trip: trips::Trip, document: &Value, body: &Value) -> Option<String> {
    let (expected, got) = (canonical::to_text(document), canonical::to_text(body));
    if expected != got {
        return Some(format!("became {got}"));
    }
    match trip(body) {
        Err(error) => Some(format!("not read again: {error}")),
        Ok(second) => (second.body != *body).then(|| "another at the second reading".to_owned()),
    }
}

/// `value` without what the records in it do not know.
fn known(schemas: &Schemas, schema: &Value, value: &Value) -> Value {
    let schema = schemas.follow(schema);
    if let Some(branch) = schemas.branch(schema, value) {
        return known(schemas, branch, value);
    }
    match value {
        Value::Array(items) => match schema.get("items") {
            Some(each) => items
                .iter()
                .map(|item| known(schemas, each, item))
                .collect(),
            None => value.clone(),
        },
        Value::Object(members) => {
            let mut kept = Map::new();
            for (key, member) in members {
                let below = schema["properties"]
                    .get(key)
                    .or_else(|| schema.get("additionalProperties"));
                match below {
                    Some(below) => kept.insert(key.clone(), known(schemas, below, member)),
                    None if schema["x-mode"] == "record" => None,
                    None => kept.insert(key.clone(), member.clone()),
                };
            }
            Value::Object(kept)
        }
        scalar => scalar.clone(),
    }
}

/// A scalar is made by its type alone, without a document around it: the type refuses exactly what the check refuses.
#[test]
fn a_scalar_type_refuses_what_its_check_refuses() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let each = cases(10_000).div_ceil(trips::ALL.len());
    let mut compared = 0;
    for (name, trip) in trips::ALL {
        let schema = schemas.get(name);
        if schema.get("oneOf").is_some()
            || !["string", "integer", "number"]
                .map(Value::from)
                .contains(&schema["type"])
        {
            continue;
        }
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        for _ in 0..each {
            let mut value = maker.document(name);
            maker.damage(schema, &mut value);
            let Some(value) = as_read(&value) else {
                continue;
            };
            let (check, type_) = (node(name).check(&value), trip(&value));
            assert_eq!(
                check.is_ok(),
                type_.is_ok(),
                "{name} {value}: {check:?}, {type_:?}"
            );
            compared += 1;
        }
    }
    assert!(
        compared * 10 > each * trips::ALL.len(),
        "only {compared} values"
    );
}

/// Contracts whose normal form is a document of another kind.
const OF_ANOTHER_KIND: &[&str] = &["capabilities-deployment", "frame", "usage-record"];

#[test]
fn the_normal_form_of_a_contract_is_its_own_normal_form() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let mut maker = Generator::new(&schemas, &samples, seed(), "contracts");
    let mut documents: Vec<Value> = samples
        .values
        .iter()
        .filter(|value| value.is_object())
        .cloned()
        .collect();
    for name in schemas.names() {
        documents.extend(
            (0..4)
                .map(|_| maker.document(name))
                .filter(Value::is_object),
        );
    }
    let texts: Vec<String> = documents
        .iter()
        .map(Value::to_string)
        .filter(|text| text.len() < 4_000)
        .collect();
    let mut taken = 0;
    for contract in registry::CONTRACTS
        .iter()
        .filter(|it| !OF_ANOTHER_KIND.contains(&it.name))
    {
        let mut few = 0;
        for text in &texts {
            let Ok(accepted) = contract.check(text.as_bytes()) else {
                continue;
            };
            let again = contract.check(accepted.document.to_string().as_bytes());
            assert_eq!(again.as_ref(), Ok(&accepted), "{}: {text}", contract.name);
            few += 1;
        }
        taken += few;
    }
    assert!(taken > 300, "only {taken} documents");
}
