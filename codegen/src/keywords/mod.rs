//! The closed list of keywords, and the rules about where each may stand.
//!
//! A keyword that is not listed here stops the build: a constraint that nobody enforces must not look enforced.

mod list;
mod objects;

use serde_json::{Map, Value};

use crate::error::SchemaError;
use crate::unions;
use list::{BESIDE_REFERENCE, SCALAR_BOUNDS};
pub use list::{ROOT, SCHEMA};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A named definition or the root of a file.
    Named,
    /// A branch of `oneOf`.
    Branch,
    /// A property, an item or the value of a map.
    Inline,
}

pub(crate) struct At<'a> {
    pub file: &'a str,
    pub pointer: String,
}

impl At<'_> {
    fn no<T>(&self, rule: impl Into<String>) -> Result<T, SchemaError> {
        Err(SchemaError::new(self.file, &self.pointer, rule))
    }

    fn below(&self, key: &str) -> At<'_> {
        At {
            file: self.file,
            pointer: format!(
                "{}/{}",
                self.pointer,
                key.replace('~', "~0").replace('/', "~1")
            ),
        }
    }
}

/// Checks a whole file; `root` is its parsed text.
pub(crate) fn check_file(file: &str, root: &Map<String, Value>) -> Result<(), SchemaError> {
    let at = At {
        file,
        pointer: String::new(),
    };
    for key in root.keys() {
        if !ROOT.contains(&key.as_str()) && !SCHEMA.contains(&key.as_str()) {
            return at.no(format!("keyword `{key}` is not supported"));
        }
    }
    if let Some(defs) = root.get("$defs") {
        let Some(defs) = defs.as_object() else {
            return at.no("`$defs` must be an object");
        };
        let at = at.below("$defs");
        for (name, schema) in defs {
            check(&at.below(name), schema, Place::Named)?;
        }
    }
    if is_definition(root) {
        let own: Map<_, _> = root
            .iter()
            .filter(|(key, _)| !ROOT.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        check(&at, &Value::Object(own), Place::Named)?;
    }
    Ok(())
}

/// Whether the root of a file is itself a definition, named by its `title`.
pub(crate) fn is_definition(root: &Map<String, Value>) -> bool {
    ["type", "oneOf", "enum"]
        .iter()
        .any(|key| root.contains_key(*key))
}

fn check(at: &At<'_>, schema: &Value, place: Place) -> Result<(), SchemaError> {
    let Some(schema) = schema.as_object() else {
        return at.no("a schema must be an object");
    };
    for key in schema.keys() {
        if !SCHEMA.contains(&key.as_str()) {
            return at.no(format!("keyword `{key}` is not supported"));
        }
    }
    check_name(at, schema, place)?;
    check_reference(at, schema)?;
    check_kind(at, schema)?;
    objects::check(at, schema)?;
    check_children(at, schema)
}

/// Bounds, objects and enumerations have names, so that they become types; whatever is named is described.
fn check_name(at: &At<'_>, schema: &Map<String, Value>, place: Place) -> Result<(), SchemaError> {
    if !schema.get("description").is_some_and(Value::is_string) {
        return at.no("a description is missing");
    }
    if place != Place::Inline {
        return Ok(());
    }
    if let Some(key) = SCALAR_BOUNDS.iter().find(|key| schema.contains_key(**key)) {
        return at.no(format!(
            "`{key}` needs a definition of its own under `$defs`"
        ));
    }
    for key in ["properties", "enum", "oneOf"] {
        if schema.contains_key(key) {
            return at.no(format!(
                "`{key}` needs a definition of its own under `$defs`"
            ));
        }
    }
    Ok(())
}

fn check_reference(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    if !schema.contains_key("$ref") {
        return Ok(());
    }
    for key in schema.keys() {
        if !BESIDE_REFERENCE.contains(&key.as_str()) {
            return at.no(format!("`{key}` beside `$ref` is not supported"));
        }
    }
    Ok(())
}

/// Each keyword stands only beside the type that it constrains, with a value that the generator understands.
fn check_kind(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    let kind = match schema.get("type") {
        None => None,
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(_) => return at.no("`type` must be one name"),
    };
    let need = |key: &str, kinds: &[&str]| {
        if schema.contains_key(key) && !kind.is_some_and(|kind| kinds.contains(&kind)) {
            return at.no(format!("`{key}` needs `type` {}", kinds.join(" or ")));
        }
        Ok(())
    };
    if let Some(kind) = kind
        && ![
            "array", "boolean", "integer", "null", "number", "object", "string",
        ]
        .contains(&kind)
    {
        return at.no(format!("`type` {kind} is not supported"));
    }
    for key in [
        "minLength",
        "maxLength",
        "pattern",
        "x-format",
        "x-units",
        "x-trim",
        "enum",
    ] {
        need(key, &["string"])?;
    }
    for key in ["minimum", "maximum", "exclusiveMinimum"] {
        need(key, &["integer", "number"])?;
    }
    for key in ["items", "minItems", "maxItems", "uniqueItems"] {
        need(key, &["array"])?;
    }
    for key in [
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependentRequired",
        "x-implies",
        "x-mark",
        "x-mode",
    ] {
        need(key, &["object"])?;
    }
    need("const", &["string", "boolean"])?;
    if schema.contains_key("propertyNames") && schema.contains_key("properties") {
        return at.no("`propertyNames` beside `properties`: it is for maps");
    }
    if kind == Some("array") && !schema.contains_key("items") {
        return at.no("`items` is missing");
    }
    values(at, schema)
}

fn values(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    let counts = [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    for key in counts {
        if schema.get(key).is_some_and(|value| !value.is_u64()) {
            return at.no(format!("`{key}` must be a whole number"));
        }
    }
    let words: &[(&str, &[&str])] = &[
        ("x-mode", &["strict", "record", "open"]),
        ("x-rust", &["secret", "digest"]),
        ("x-units", &["utf16", "utf8"]),
        ("x-format", &["timestamp", "date-time"]),
        ("x-json", &["bounded", "content"]),
        ("x-payload", &["root", "profile", "backend.profile"]),
    ];
    for (key, allowed) in words {
        if let Some(value) = schema.get(*key)
            && !value.as_str().is_some_and(|value| allowed.contains(&value))
        {
            return at.no(format!("`{key}` must be {}", allowed.join(" or ")));
        }
    }
    for key in ["uniqueItems", "x-trim"] {
        if schema
            .get(key)
            .is_some_and(|value| value != &Value::Bool(true))
        {
            return at.no(format!("`{key}` must be true or absent"));
        }
    }
    for key in [
        "x-refuse",
        "x-ungated",
        "x-rule",
        "x-mark",
        "pattern",
        "title",
        "$ref",
    ] {
        if schema.get(key).is_some_and(|value| !value.is_string()) {
            return at.no(format!("`{key}` must be a text"));
        }
    }
    check_bounded(at, schema)?;
    if let Some(list) = schema.get("enum")
        && !list
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
    {
        return at.no("`enum` must be a list of texts");
    }
    Ok(())
}

/// The bounded walk is of whole values; a text that is not content has a length instead.
fn check_bounded(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if text("x-payload").is_some() && text("x-json") != Some("bounded") {
        return at.no("`x-payload` needs `x-json` bounded");
    }
    if text("x-json") == Some("bounded") && text("type") == Some("string") {
        return at.no("`x-json` bounded on a text: `maxLength` says it");
    }
    let name = |rule: &str| {
        rule.starts_with(|c: char| c.is_ascii_lowercase())
            && rule
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if text("x-rule").is_some_and(|rule| !name(rule)) {
        return at.no("`x-rule` must be the name of a function");
    }
    Ok(())
}

fn check_children(at: &At<'_>, schema: &Map<String, Value>) -> Result<(), SchemaError> {
    if let Some(properties) = schema.get("properties") {
        let Some(properties) = properties.as_object() else {
            return at.no("`properties` must be an object");
        };
        let at = at.below("properties");
        for (name, property) in properties {
            check(&at.below(name), property, Place::Inline)?;
        }
    }
    for key in ["items", "additionalProperties", "propertyNames"] {
        if let Some(child) = schema.get(key) {
            check(&at.below(key), child, Place::Inline)?;
        }
    }
    if let Some(branches) = schema.get("oneOf") {
        check_branches(&at.below("oneOf"), branches)?;
    }
    Ok(())
}

/// `oneOf` is a union whose value says which branch it means.
fn check_branches(at: &At<'_>, branches: &Value) -> Result<(), SchemaError> {
    let Some(branches) = branches.as_array().filter(|list| !list.is_empty()) else {
        return at.no("`oneOf` must be a list of branches");
    };
    for (index, branch) in branches.iter().enumerate() {
        let at = at.below(&index.to_string());
        check(&at, branch, Place::Branch)?;
        if branch.get("title").is_none() && branch.get("$ref").is_none() {
            return at.no("a branch of `oneOf` has a `title` or is a `$ref`");
        }
    }
    match unions::choice(branches) {
        Some(_) => Ok(()),
        None => at.no(
            "`oneOf` needs a required property that is a constant text in each branch, or `x-mark` in each, or types",
        ),
    }
}
