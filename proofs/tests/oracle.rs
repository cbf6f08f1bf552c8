//! The generated checker against an independent validator of standard JSON Schema.
//!
//! Over many damaged documents of every definition: what the checker accepts, the validator accepts, and where the checker
//! refuses more, the refusal names the `x-` keyword by which it does. `TANGLE_ORACLE_CASES` says how many documents are
//! damaged, `TANGLE_ORACLE_SEED` which.

use std::collections::BTreeMap;

use serde_json::Value;
use tangle_sandbox_proofs::generate::{Generator, as_read, node};
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::standard::{self, Reading, validator};
use tangle_sandbox_proofs::{cases, seed};

/// Both readers of one definition.
struct Readers {
    plain: jsonschema::Validator,
    least: jsonschema::Validator,
}

/// What the checker said, by the keyword that refused.
#[derive(Default)]
struct Tally {
    accepted: usize,
    refused: BTreeMap<&'static str, usize>,
    unreadable: usize,
    differ: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, readers: &Readers, value: &Value, how: &str) {
        let answer = node(name).check(value);
        let wrong = match &answer {
            Ok(()) => {
                self.accepted += 1;
                let error = readers.least.validate(value).err();
                error.map(|error| format!("accepted, but the validator says {error}"))
            }
            Err(refused) => {
                let keyword = refused.keyword().unwrap_or("");
                *self.refused.entry(keyword).or_default() += 1;
                (!keyword.starts_with("x-") && readers.plain.is_valid(value)).then(|| {
                    format!("refused by `{keyword}` ({refused}), but the validator accepts")
                })
            }
        };
        if let Some(wrong) = wrong {
            let mut text = value.to_string();
            text.truncate(text.floor_char_boundary(600));
            self.differ
                .push(format!("{name}, {how}: {wrong}\n    {text}"));
        }
    }
}

#[test]
fn the_checker_accepts_nothing_that_the_standard_refuses() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let names: Vec<&str> = schemas.names().collect();
    let each = cases(40_000).div_ceil(names.len());
    let mut tally = Tally::default();
    let mut poor = Vec::new();
    for name in names {
        let readers = Readers {
            plain: validator(&schemas, name, Reading::Plain),
            least: validator(&schemas, name, Reading::Least),
        };
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        let mut valid = 0;
        let before = tally.accepted;
        for _ in 0..each.div_ceil(8) {
            let document = maker.document(name);
            if let Err(error) = readers.plain.validate(&document) {
                tally
                    .differ
                    .push(format!("{name}: the maker made {document}: {error}"));
            }
            tally.compare(name, &readers, &document, "as made");
            valid += usize::from(node(name).check(&document).is_ok());
            for _ in 0..8 {
                let mut damaged = document.clone();
                let mut how = "";
                for _ in 0..*maker.dice.pick(&[1, 1, 1, 2, 3]) {
                    how = maker.damage(schemas.get(name), &mut damaged);
                }
                match as_read(&damaged) {
                    Some(damaged) => tally.compare(name, &readers, &damaged, how),
                    None => tally.unreadable += 1,
                }
            }
        }
        let made = each.div_ceil(8);
        if valid * 2 < made {
            poor.push(format!(
                "{name}: {valid} of {made} documents were accepted as made"
            ));
        }
        if std::env::var_os("TANGLE_ORACLE_TELL").is_some() {
            println!(
                "{name}: {valid} of {made} as made, {} accepted in all",
                tally.accepted - before
            );
        }
    }
    let refused: usize = tally.refused.values().sum();
    println!(
        "accepted {}, refused {refused}, unreadable {}",
        tally.accepted, tally.unreadable
    );
    println!("refused by {:?}", tally.refused);
    assert!(poor.is_empty(), "{}", poor.join("\n"));
    let found = tally.differ.len();
    tally.differ.truncate(40);
    assert!(
        found == 0,
        "{found} differences\n{}",
        tally.differ.join("\n")
    );
    // A tally without one of these has not tried what it says.
    for keyword in [
        "type",
        "required",
        "x-mode",
        "enum",
        "maxLength",
        "x-units",
        "x-trim",
        "pattern",
        "minimum",
    ] {
        assert!(
            tally.refused.contains_key(keyword),
            "nothing was refused by `{keyword}`"
        );
    }
}

/// Would a checker that is one off be found? The other reader is made one too strict, keyword by keyword: each time the checker
/// accepts what that reader refuses.
#[test]
fn a_bound_that_is_one_off_is_found() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    for key in [
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maximum",
        "minimum",
        "enum",
        "required",
        "uniqueItems",
    ] {
        let mut found = 0;
        let mut stricter = 0;
        for name in schemas.names() {
            let mut document = standard::document(&schemas, name, Reading::Least);
            if !tighten(&mut document["$defs"][name], key) {
                continue;
            }
            stricter += 1;
            let reader = jsonschema::draft202012::new(&document).expect("a schema");
            let mut maker = Generator::new(&schemas, &samples, seed(), name);
            let differs = (0..200).any(|_| {
                let mut value = maker.document(name);
                if maker.dice.once_in(2) {
                    maker.damage(schemas.get(name), &mut value);
                }
                as_read(&value).is_some_and(|value| {
                    node(name).check(&value).is_ok() && !reader.is_valid(&value)
                })
            });
            found += usize::from(differs);
        }
        println!("{key}: found in {found} of {stricter} definitions");
        assert!(
            found * 2 > stricter,
            "{key}: found in {found} of {stricter} definitions"
        );
    }
}

/// Makes `key` one stricter wherever it stands directly in `schema`; false where it does not.
fn tighten(schema: &mut Value, key: &str) -> bool {
    let mut changed = false;
    let Some(members) = schema.as_object_mut() else {
        return false;
    };
    for child in ["properties", "items", "oneOf", "additionalProperties"] {
        match members.get_mut(child) {
            Some(Value::Array(branches)) => {
                branches
                    .iter_mut()
                    .for_each(|branch| changed |= tighten(branch, key));
            }
            Some(Value::Object(properties)) if child == "properties" => {
                properties
                    .values_mut()
                    .for_each(|property| changed |= tighten(property, key));
            }
            Some(other) => changed |= tighten(other, key),
            None => {}
        }
    }
    let known: Vec<String> = members
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    if key == "required" && !known.is_empty() {
        let required = members
            .entry("required")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Some(list) = required.as_array_mut()
            && let Some(name) = known
                .iter()
                .find(|name| !list.contains(&Value::String(name.to_string())))
        {
            list.push(name.as_str().into());
            changed = true;
        }
        return changed;
    }
    if key == "uniqueItems" {
        if members.contains_key("items") && !members.contains_key(key) {
            members.insert(key.into(), true.into());
            changed = true;
        }
        return changed;
    }
    match members.get_mut(key) {
        Some(Value::Array(words)) => changed |= words.len() > 1 && words.pop().is_some(),
        Some(bound) => {
            if let Some(number) = bound.as_i64() {
                *bound = if key.starts_with("max") {
                    number - 1
                } else {
                    number + 1
                }
                .into();
                changed = true;
            }
        }
        None => {}
    }
    changed
}
