//! The shapes of the generated types, as schemars derives them, against the schemas: names of properties, which of them are
//! required, whether others may stand beside them, what each refers to, words of enumerations, tags of unions.

use serde_json::{Map, Value, json};
use tangle_sandbox_proofs::schemas::{Schemas, Union, referenced, texts, union};
use tangle_sandbox_proofs::shapes;

#[test]
fn the_types_have_the_shapes_of_the_schemas() {
    let schemas = Schemas::read();
    let derived = shapes::derived();
    let mut differ = Vec::new();
    let mut objects = 0;
    for name in shapes::names() {
        let expected = of_schema(&schemas, schemas.get(name), None);
        let got = of_type(&derived[name], false);
        objects += usize::from(expected.get("properties").is_some());
        if expected != got {
            differ.push(format!("{name}\n  schema {expected}\n  type   {got}"));
        }
    }
    assert!(objects > 50, "only {objects} objects were compared");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The shape that a schema says. `tag` is the property that tells the branches of the union around it apart.
fn of_schema(schemas: &Schemas, schema: &Value, tag: Option<&str>) -> Value {
    let below = |schema: &Value| of_schema(schemas, schema, None);
    if let Some(name) = referenced(schema) {
        // Secrets and plain digests are types by hand.
        return match schemas.get(name)["x-rust"].as_str() {
            Some("secret") => "Secret".into(),
            _ => name.into(),
        };
    }
    if let Some(branches) = schema["oneOf"].as_array() {
        let tag = match union(branches) {
            Union::Tag(tag) => Some(tag),
            _ => None,
        };
        let shapes = branches
            .iter()
            .map(|branch| of_schema(schemas, branch, tag.as_deref()));
        return json!({ "branches": shapes.collect::<Vec<_>>() });
    }
    if let Some(words) = schema.get("enum") {
        return json!({ "words": words });
    }
    if let Some(items) = schema.get("items") {
        return json!({ "items": below(items) });
    }
    if let Some(properties) = schema["properties"].as_object() {
        let kept = properties
            .iter()
            .filter(|(_, property)| property.get("x-refuse").is_none());
        let shapes: Map<String, Value> = kept
            .map(|(name, property)| match tag == Some(name) {
                true => (name.clone(), json!({ "word": property["const"] })),
                false => (name.clone(), below(property)),
            })
            .collect();
        return object(
            shapes,
            &schema["required"],
            schema["x-mode"].as_str().unwrap_or_default(),
        );
    }
    match schema["type"].as_str() {
        Some("object") => {
            json!({ "each": schema.get("additionalProperties").map_or("any".into(), below) })
        }
        Some(kind) => kind.into(),
        None => "any".into(),
    }
}

fn object(properties: Map<String, Value>, required: &Value, mode: &str) -> Value {
    let mut required = texts(required);
    required.sort_unstable();
    json!({ "properties": properties, "required": required, "mode": mode })
}

/// The shape that a type has. What is `optional` may be null to schemars; the checker never lets it be.
fn of_type(schema: &Value, optional: bool) -> Value {
    if let Some(name) = referenced(schema) {
        return name.into();
    }
    for key in ["oneOf", "anyOf"] {
        let Some(branches) = schema[key].as_array() else {
            continue;
        };
        let some: Vec<&Value> = branches
            .iter()
            .filter(|it| !optional || it["type"] != "null")
            .collect();
        if let ([one], true) = (&some[..], optional) {
            return of_type(one, false);
        }
        if some.iter().all(|branch| branch["const"].is_string()) {
            let words: Vec<&Value> = some.iter().map(|branch| &branch["const"]).collect();
            return json!({ "words": words });
        }
        let shapes: Vec<Value> = some
            .into_iter()
            .map(|branch| of_type(branch, false))
            .collect();
        return json!({ "branches": shapes });
    }
    if let Some(words) = schema.get("enum") {
        return json!({ "words": words });
    }
    if let Some(word) = schema.get("const") {
        return json!({ "word": word });
    }
    let kind = kind(&schema["type"], optional);
    match kind.as_deref() {
        Some("array") => json!({ "items": of_type(&schema["items"], false) }),
        Some("object") => match schema["properties"].as_object() {
            Some(properties) => {
                let required = texts(&schema["required"]);
                let shapes = properties
                    .iter()
                    .map(|(name, it)| {
                        (
                            name.clone(),
                            of_type(it, !required.contains(&name.as_str())),
                        )
                    })
                    .collect();
                let mode = match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => "strict",
                    Some(_) => "open",
                    None => "record",
                };
                object(shapes, &schema["required"], mode)
            }
            None => json!({ "each": of_type(&schema["additionalProperties"], false) }),
        },
        Some(kind) => kind.into(),
        None => "any".into(),
    }
}

fn kind(kind: &Value, optional: bool) -> Option<String> {
    match kind {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => {
            let some: Vec<&str> = kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|it| !optional || *it != "null")
                .collect();
            Some(some.join(" or "))
        }
        _ => None,
    }
}
