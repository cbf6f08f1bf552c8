//! The schemas as standard JSON Schema 2020-12, for a validator that knows nothing of this project.
//!
//! What the keywords of this project say beyond the standard is dropped, with these exceptions, each of which the
//! standard can say too:
//!
//! * `x-mode` strict is `additionalProperties: false`;
//! * an `integer` is a safe integer, hence also at most 2^53 - 1 either way;
//! * a union by `x-mark` takes the first branch whose mark is there: `if`, `then`, `else` in that order;
//! * a length in UTF-16 units or bytes counts characters instead. Of the two readings, [`Reading::Least`] counts what
//!   a text has at least, so that it never refuses what the unit allows.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::schemas::{Schemas, Union, each, referenced, union};

/// How a shortest length in another unit than characters is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As a number of characters, as the standard says.
    Plain,
    /// As the fewest characters that a text of that many units can have.
    Least,
}

const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The validator of definition `name`.
///
/// # Panics
/// When a keyword has no translation or the validator does not take it.
pub fn validator(schemas: &Schemas, name: &str, reading: Reading) -> Validator {
    let document = document(schemas, name, reading);
    match jsonschema::draft202012::new(&document) {
        Ok(validator) => validator,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Definition `name` and all that it refers to, as one document.
pub fn document(schemas: &Schemas, name: &str, reading: Reading) -> Value {
    let mut wanted = vec![name.to_owned()];
    let mut definitions = Map::new();
    while let Some(name) = wanted.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let translated = translate(schemas.get(&name), reading);
        references(&translated, &mut wanted);
        definitions.insert(name, translated);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/$defs/{name}"),
        "$defs": definitions,
    })
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            found.extend(referenced(schema).map(str::to_owned));
            members
                .values()
                .for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn translate(schema: &Value, reading: Reading) -> Value {
    let schema = schema.as_object().expect("a schema is an object");
    let below = |value: &Value| translate(value, reading);
    let mut new = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "description" | "title" => continue,
            "x-mode" if value == "strict" => {
                new.insert("additionalProperties".into(), false.into());
                continue;
            }
            "x-format" | "x-implies" | "x-json" | "x-mark" | "x-mode" | "x-payload"
            | "x-refuse" | "x-rule" | "x-rust" | "x-trim" | "x-ungated" | "x-units" => continue,
            "$ref" | "const" | "dependentRequired" | "enum" | "exclusiveMinimum" | "maxItems"
            | "maxLength" | "maxProperties" | "maximum" | "minItems" | "minProperties"
            | "minimum" | "pattern" | "required" | "type" | "uniqueItems" => value.clone(),
            "minLength" => match (reading, schema.get("x-units").and_then(Value::as_str)) {
                (Reading::Least, Some("utf16")) => least(value, 2),
                (Reading::Least, Some("utf8")) => least(value, 4),
                _ => value.clone(),
            },
            "items" | "additionalProperties" | "propertyNames" => below(value),
            "properties" => each(value, below),
            "oneOf" => {
                let branches = value.as_array().expect("oneOf is a list");
                if union(branches) == Union::Mark {
                    new.extend(first_marked(branches, reading));
                    continue;
                }
                branches.iter().map(below).collect()
            }
            _ => panic!("`{key}` has no translation"),
        };
        new.insert(key.clone(), value);
    }
    if schema.get("type").is_some_and(|kind| kind == "integer") {
        for (key, bound) in [
            ("minimum", -MAX_SAFE_INTEGER),
            ("maximum", MAX_SAFE_INTEGER),
        ] {
            new.entry(key).or_insert_with(|| bound.into());
        }
    }
    Value::Object(new)
}

/// The fewest characters of a text of `units` units, when a character has at most `most` of them.
fn least(units: &Value, most: u64) -> Value {
    units
        .as_u64()
        .expect("a length is a number")
        .div_ceil(most)
        .into()
}

/// `if` the first branch's mark is there, `then` the first branch, `else` the next.
fn first_marked(branches: &[Value], reading: Reading) -> Map<String, Value> {
    let mut rest = json!(false);
    for branch in branches.iter().rev() {
        let mark = branch["x-mark"].as_str().expect("a mark is a text");
        let mut marked = json!({ "type": "object", "required": [mark] });
        if let Some(constant) = branch["properties"][mark].get("const") {
            marked["properties"] = json!({ mark: { "const": constant } });
        }
        rest = json!({ "if": marked, "then": translate(branch, reading), "else": rest });
    }
    rest.as_object().cloned().unwrap_or_default()
}
