//! Structs and enums: typify writes them from what is left of a schema when scalars and checks are taken out.

use quote::ToTokens as _;
use serde_json::{Map, Value, json};
use typify::{TypeSpace, TypeSpaceImpl, TypeSpaceSettings};

use crate::bundle::Bundle;
use crate::error::SchemaError;
use crate::{Options, polish, scalars};

pub(crate) fn write(bundle: &Bundle, options: &Options) -> Result<String, SchemaError> {
    let mut settings = TypeSpaceSettings::default();
    settings
        .with_derive("PartialEq".into())
        .with_map_type("::std::collections::BTreeMap");
    for (name, schema) in &bundle.defs {
        if let Some(path) = scalars::path(name, schema, options) {
            let traits = if path.ends_with("::Secret") {
                Vec::new()
            } else {
                vec![TypeSpaceImpl::Display, TypeSpaceImpl::FromStr]
            };
            settings.with_replacement(name, path, traits.into_iter());
        }
    }
    let definitions: Map<String, Value> = bundle
        .defs
        .iter()
        .map(|(name, schema)| (name.clone(), reduce(schema)))
        .collect();
    let root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": definitions,
    });
    let mut space = TypeSpace::new(&settings);
    let failed = |error: String| {
        SchemaError::new(
            "schemas",
            "",
            format!("typify cannot take the bundle: {error}"),
        )
    };
    let root = serde_json::from_value(root).map_err(|error| failed(error.to_string()))?;
    space
        .add_root_schema(root)
        .map_err(|error| failed(error.to_string()))?;
    let mut file: syn::File = syn::parse2(space.to_stream().into_token_stream())
        .map_err(|error| failed(error.to_string()))?;
    polish::polish(&mut file, bundle, options)?;
    let mut text = scalars::write(bundle, options);
    text.push_str(&prettyplease::unparse(&file));
    Ok(text)
}

/// What typify sees of a schema: shape without the constraints that the checker holds.
fn reduce(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else {
        return schema.clone();
    };
    if let Some(reference) = schema.get("$ref") {
        return json!({ "$ref": reference });
    }
    let mut reduced = Map::new();
    for (key, value) in schema {
        match key.as_str() {
            "type" | "title" | "description" | "enum" | "required" => {
                reduced.insert(key.clone(), value.clone());
            }
            "const" if value.is_string() => {
                reduced.insert(key.clone(), value.clone());
            }
            "items" | "additionalProperties" => {
                reduced.insert(key.clone(), reduce(value));
            }
            "oneOf" => {
                let branches = value.as_array().into_iter().flatten().map(reduce).collect();
                reduced.insert(key.clone(), Value::Array(branches));
            }
            "properties" => {
                let kept: Map<_, _> = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, property)| property.get("x-refuse").is_none())
                    .map(|(name, property)| (name.clone(), reduce(property)))
                    .collect();
                reduced.insert(key.clone(), Value::Object(kept));
            }
            "x-mode" => match value.as_str() {
                Some("strict") => {
                    reduced.insert("additionalProperties".into(), json!(false));
                }
                Some("open") => {
                    reduced.insert("additionalProperties".into(), json!({}));
                }
                _ => {}
            },
            _ => {}
        }
    }
    Value::Object(reduced)
}
