//! The checker's tables: one `static` node a schema, and `Checked` for each definition.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Options;
use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;
use crate::keywords;

/// The name of the table of definition `name`.
pub(crate) fn table_name(name: &str) -> String {
    let mut text = String::from("CHECK");
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

pub(crate) fn write(bundle: &Bundle, options: &Options) -> Result<String, SchemaError> {
    let mut tables = Tables {
        text: String::new(),
        anonymous: 0,
    };
    let contract = &options.contract;
    let _ = writeln!(
        tables.text,
        "use {contract}::checker::{{Checked, Constant, Extra, Kind, Node, Pattern, Units}};\n"
    );
    for (name, schema) in &bundle.defs {
        let body = tables.body(bundle, name, schema)?;
        let table = table_name(name);
        let _ = writeln!(
            tables.text,
            "/// Check of `{name}`.\npub static {table}: Node = {body};"
        );
        let is_type = schema["type"] == "object" && schema.get("properties").is_some()
            || schema.get("oneOf").is_some()
            || schema.get("enum").is_some();
        if is_type {
            let _ = writeln!(
                tables.text,
                "impl Checked for super::types::{name} {{ const NAME: &'static str = {name:?}; fn node() -> &'static Node {{ &{table} }} }}"
            );
        }
    }
    let names: Vec<String> = bundle
        .defs
        .keys()
        .map(|name| format!("({name:?}, &{})", table_name(name)))
        .collect();
    let _ = writeln!(
        tables.text,
        "/// Every check by the name of its definition, sorted.\npub static ALL: &[(&str, &Node)] = &[{}];",
        names.join(", ")
    );
    Ok(tables.text)
}

struct Tables {
    text: String,
    anonymous: usize,
}

impl Tables {
    /// A reference to the table of `schema`: a named one, or an anonymous one that is written first.
    fn reference(
        &mut self,
        bundle: &Bundle,
        name: &str,
        schema: &Value,
    ) -> Result<String, SchemaError> {
        let plain = referenced(schema);
        if let (Some(target), None) = (plain, schema.get("x-refuse")) {
            return Ok(format!("&{}", table_name(target)));
        }
        let body = self.body(bundle, name, schema)?;
        self.anonymous += 1;
        let table = format!("N{}", self.anonymous);
        let _ = writeln!(self.text, "static {table}: Node = {body};");
        Ok(format!("&{table}"))
    }

    fn body(&mut self, bundle: &Bundle, name: &str, schema: &Value) -> Result<String, SchemaError> {
        let Some(schema) = schema.as_object() else {
            return Err(bundle.error(name, "a schema must be an object"));
        };
        let mut fields = String::new();
        scalar_fields(&mut fields, schema);
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let mut list = Vec::new();
            for (key, property) in properties {
                let table = self.reference(bundle, name, property)?;
                list.push(format!("({key:?}, {table})"));
            }
            let _ = write!(fields, "properties: &[{}], ", list.join(", "));
        }
        match (schema.get("x-mode"), schema.get("additionalProperties")) {
            (Some(mode), _) if mode == "strict" => fields.push_str("extra: Extra::Refuse, "),
            (_, Some(values)) => {
                let table = self.reference(bundle, name, values)?;
                let _ = write!(fields, "extra: Extra::Each({table}), ");
            }
            _ => {}
        }
        if let Some(items) = schema.get("items") {
            let table = self.reference(bundle, name, items)?;
            let _ = write!(fields, "items: Some({table}), ");
        }
        if let Some(Value::Array(branches)) = schema.get("oneOf") {
            let tag =
                keywords::tag(branches).ok_or_else(|| bundle.error(name, "`oneOf` has no tag"))?;
            let mut list = Vec::new();
            for branch in branches {
                let table = self.reference(bundle, name, branch)?;
                let value = branch["properties"][tag]["const"]
                    .as_str()
                    .unwrap_or_default();
                list.push(format!("({value:?}, {table})"));
            }
            let _ = write!(
                fields,
                "kind: Kind::Object, tagged: Some(({tag:?}, &[{}])), ",
                list.join(", ")
            );
        }
        Ok(format!("Node {{ {fields}..Node::ANY }}"))
    }
}

fn scalar_fields(out: &mut String, schema: &Map<String, Value>) {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(kind) = text("type") {
        let _ = write!(out, "kind: Kind::{}, ", capital(kind));
    }
    for (key, member) in [
        ("minLength", "min_length"),
        ("maxLength", "max_length"),
        ("minItems", "min_items"),
        ("maxItems", "max_items"),
        ("maxProperties", "max_properties"),
    ] {
        if let Some(value) = schema.get(key).and_then(Value::as_u64) {
            let _ = write!(out, "{member}: {value}, ");
        }
    }
    for (key, member) in [("minimum", "minimum"), ("maximum", "maximum")] {
        if let Some(value) = schema.get(key).and_then(Value::as_f64) {
            let _ = write!(out, "{member}: {value:?}, ");
        }
    }
    match text("x-units") {
        Some("utf16") => out.push_str("units: Units::Utf16, "),
        Some("utf8") => out.push_str("units: Units::Utf8, "),
        _ => {}
    }
    for (key, member) in [("x-trim", "trim"), ("uniqueItems", "unique")] {
        if schema.get(key) == Some(&Value::Bool(true)) {
            let _ = write!(out, "{member}: true, ");
        }
    }
    if text("x-format") == Some("timestamp") {
        out.push_str("timestamp: true, ");
    }
    if text("x-rust") == Some("secret") {
        out.push_str("secret: true, ");
    }
    if let Some(reason) = text("x-refuse") {
        let _ = write!(out, "refuse: Some({reason:?}), ");
    }
    if let Some(pattern) = text("pattern") {
        let _ = write!(
            out,
            "pattern: Some({{ static P: Pattern = Pattern::new({pattern:?}); &P }}), "
        );
    }
    match schema.get("const") {
        Some(Value::Bool(value)) => {
            let _ = write!(out, "constant: Some(Constant::Boolean({value})), ");
        }
        Some(Value::String(value)) => {
            let _ = write!(out, "constant: Some(Constant::Text({value:?})), ");
        }
        _ => {}
    }
    for (key, member) in [("enum", "one_of"), ("required", "required")] {
        if let Some(list) = schema.get(key) {
            let _ = write!(out, "{member}: &{:?}, ", texts(list));
        }
    }
    if let Some(Value::Object(needs)) = schema.get("dependentRequired") {
        let list: Vec<String> = needs
            .iter()
            .map(|(key, needed)| format!("({key:?}, &{:?})", texts(needed)))
            .collect();
        let _ = write!(out, "needs: &[{}], ", list.join(", "));
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn capital(kind: &str) -> String {
    let mut chars = kind.chars();
    chars
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
        .unwrap_or_default()
}
