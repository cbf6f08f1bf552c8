//! What a schema says of an object: what becomes of a field that it does not know, and which fields rest on each other.

use serde_json::{Map, Value};

use super::At;
use crate::error::SchemaError;
use crate::unions;

/// An object with properties says what happens to a field that it does not know.
pub(super) fn check(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    if schema.contains_key("properties") {
        if !schema.contains_key("x-mode") {
            return at.no("`x-mode` is missing: strict, record or open");
        }
        if schema.contains_key("additionalProperties") {
            return at.no("`additionalProperties` beside `properties`: `x-mode` says it");
        }
    } else if schema.contains_key("x-mode") {
        return at.no("`x-mode` needs `properties`");
    }
    let known = schema.get("properties").and_then(Value::as_object);
    let knows = |name: &Value| {
        name.as_str()
            .is_some_and(|name| known.is_some_and(|known| known.contains_key(name)))
    };
    if let Some(required) = schema.get("required")
        && !required
            .as_array()
            .is_some_and(|list| list.iter().all(knows))
    {
        return at.no("`required` must name properties");
    }
    for key in ["dependentRequired", "x-implies"] {
        let Some(needs) = schema.get(key) else {
            continue;
        };
        let fine = needs.as_object().is_some_and(|needs| {
            needs.iter().all(|(key, list)| {
                knows(&Value::String(key.clone()))
                    && list.as_array().is_some_and(|list| list.iter().all(knows))
            })
        });
        if !fine {
            return at.no(format!("`{key}` must name properties"));
        }
    }
    if let Some(mark) = schema.get("x-mark")
        && unions::mark(&Value::Object(schema.clone())).is_none()
    {
        return at.no(format!(
            "`x-mark` must name a required property, not {mark}"
        ));
    }
    flags(at, schema)
}

/// `x-implies` speaks of booleans, so that "needs" means "needs to be true".
fn flags(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    let Some(needs) = schema.get("x-implies").and_then(Value::as_object) else {
        return Ok(());
    };
    let texts = |list: &Value| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for name in needs.keys().cloned().chain(needs.values().flat_map(texts)) {
        let flag = schema["properties"].get(&name);
        if flag.is_none_or(|flag| flag["type"] != "boolean") {
            return at.no(format!("`x-implies`: `{name}` is no boolean"));
        }
    }
    Ok(())
}
