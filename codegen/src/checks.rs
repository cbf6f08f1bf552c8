//! The checker's tables: one `static` node a schema, and `Checked` for each definition.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Options;
use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;
use crate::scalars;
use crate::unions::{self, Choice};

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
        rules: options.rules.clone(),
    };
    let contract = &options.contract;
    let _ = writeln!(
        tables.text,
        "#[allow(unused_imports)]\nuse {contract}::checker::{{Checked, Choice, Constant, Extra, Json, Kind, Node, Pattern, Property, Rule, Time, Units}};\n"
    );
    for (name, schema) in &bundle.defs {
        let body = tables.body(bundle, name, schema)?;
        let table = table_name(name);
        let _ = writeln!(
            tables.text,
            "/// Check of `{name}`.\npub static {table}: Node = {body};"
        );
        if scalars::has_own_type(name, schema) {
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
    /// Path of the module with the functions that `x-rule` names.
    rules: String,
}

impl Tables {
    /// A reference to the table of `schema`: a named one, or an anonymous one that is written first.
    fn reference(
        &mut self,
        bundle: &Bundle,
        name: &str,
        schema: &Value,
    ) -> Result<String, SchemaError> {
        let beside = ["x-refuse", "x-json"]
            .iter()
            .any(|key| schema.get(*key).is_some());
        if let (Some(target), false) = (referenced(schema), beside) {
            return Ok(format!("&{}", table_name(target)));
        }
        let body = self.body(bundle, name, schema)?;
        self.anonymous += 1;
        let table = format!("N{}", self.anonymous);
        let _ = writeln!(self.text, "static {table}: Node = {body};");
        Ok(format!("&{table}"))
    }

    fn body(&mut self, bundle: &Bundle, name: &str, schema: &Value) -> Result<String, SchemaError> {
        let Some(members) = schema.as_object() else {
            return Err(bundle.error(name, "a schema must be an object"));
        };
        let mut fields = String::new();
        if let Some(target) = referenced(schema) {
            let _ = write!(fields, "also: Some(&{}), ", table_name(target));
        }
        scalar_fields(&mut fields, members);
        self.rule_field(&mut fields, members);
        self.object_fields(&mut fields, bundle, name, members)?;
        if let Some(items) = members.get("items") {
            let table = self.reference(bundle, name, items)?;
            let _ = write!(fields, "items: Some({table}), ");
        }
        if let Some(Value::Array(branches)) = members.get("oneOf") {
            self.union_fields(&mut fields, bundle, name, branches)?;
        }
        Ok(format!("Node {{ {fields}..Node::ANY }}"))
    }

    fn rule_field(&self, fields: &mut String, schema: &Map<String, Value>) {
        let Some(rule) = schema.get("x-rule").and_then(Value::as_str) else {
            return;
        };
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => "Text",
            _ => "Value",
        };
        let _ = write!(fields, "rule: Rule::{kind}({}::{rule}), ", self.rules);
    }

    fn object_fields(
        &mut self,
        fields: &mut String,
        bundle: &Bundle,
        name: &str,
        schema: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let required = schema.get("required").map(texts).unwrap_or_default();
            let mut list = Vec::new();
            for (key, property) in properties {
                let table = self.reference(bundle, name, property)?;
                let required = required.contains(&key.as_str());
                list.push((
                    key,
                    format!("Property {{ name: {key:?}, required: {required}, node: {table} }}"),
                ));
            }
            // The checker walks members and properties side by side.
            list.sort();
            let list: Vec<String> = list.into_iter().map(|(_, property)| property).collect();
            let _ = write!(
                fields,
                "required: {}, properties: &[{}], ",
                required.len(),
                list.join(", ")
            );
        }
        match (schema.get("x-mode"), schema.get("additionalProperties")) {
            (Some(mode), _) if mode == "strict" => fields.push_str("extra: Extra::Refuse, "),
            (_, Some(values)) => {
                let table = self.reference(bundle, name, values)?;
                let _ = write!(fields, "extra: Extra::Each({table}), ");
            }
            _ => {}
        }
        if let Some(names) = schema.get("propertyNames") {
            let table = self.reference(bundle, name, names)?;
            let _ = write!(fields, "names: Some({table}), ");
        }
        Ok(())
    }

    fn union_fields(
        &mut self,
        fields: &mut String,
        bundle: &Bundle,
        name: &str,
        branches: &[Value],
    ) -> Result<(), SchemaError> {
        let choice = unions::choice(branches)
            .ok_or_else(|| bundle.error(name, "nothing tells the branches of `oneOf` apart"))?;
        let mut list = Vec::new();
        for branch in branches {
            let table = self.reference(bundle, name, branch)?;
            list.push(match choice {
                Choice::Tag(tag) => {
                    format!("({:?}, {table})", text(&branch["properties"][tag]["const"]))
                }
                Choice::Mark => {
                    let mark = unions::mark(branch).unwrap_or_default();
                    let constant = match constant(&branch["properties"][mark]["const"]) {
                        Some(constant) => format!("Some({constant})"),
                        None => "None".to_owned(),
                    };
                    format!("({mark:?}, {constant}, {table})")
                }
                Choice::Kind => {
                    let kind = unions::kind(bundle, branch).unwrap_or_default();
                    format!("(Kind::{}, {table})", capital(kind))
                }
            });
        }
        let list = list.join(", ");
        let _ = match choice {
            Choice::Tag(tag) => write!(
                fields,
                "kind: Kind::Object, choice: Choice::Tag({tag:?}, &[{list}]), "
            ),
            Choice::Mark => write!(
                fields,
                "kind: Kind::Object, choice: Choice::Mark(&[{list}]), "
            ),
            Choice::Kind => {
                unions::prove_kinds(bundle, name, branches)?;
                write!(fields, "choice: Choice::Kind(&[{list}]), ")
            }
        };
        Ok(())
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
        ("minProperties", "min_properties"),
        ("maxProperties", "max_properties"),
    ] {
        if let Some(value) = schema.get(key).and_then(Value::as_u64) {
            let _ = write!(out, "{member}: {value}, ");
        }
    }
    for (key, member) in [
        ("minimum", "minimum"),
        ("maximum", "maximum"),
        ("exclusiveMinimum", "above"),
    ] {
        if let Some(value) = schema.get(key).and_then(Value::as_f64) {
            let _ = write!(out, "{member}: {value:?}, ");
        }
    }
    flag_fields(out, schema);
    text_fields(out, schema);
    json_field(out, text("x-json"), text("x-payload"));
    if let Some(reason) = text("x-refuse") {
        let _ = write!(out, "refuse: Some({reason:?}), ");
    }
    if let Some(constant) = schema.get("const").and_then(constant) {
        let _ = write!(out, "constant: Some({constant}), ");
    }
    for (key, member) in [("dependentRequired", "needs"), ("x-implies", "implies")] {
        if let Some(Value::Object(needs)) = schema.get(key) {
            let list: Vec<String> = needs
                .iter()
                .map(|(key, needed)| format!("({key:?}, &{:?})", texts(needed)))
                .collect();
            let _ = write!(out, "{member}: &[{}], ", list.join(", "));
        }
    }
}

fn flag_fields(out: &mut String, schema: &Map<String, Value>) {
    for (key, member) in [("x-trim", "trim"), ("uniqueItems", "unique")] {
        if schema.get(key) == Some(&Value::Bool(true)) {
            let _ = write!(out, "{member}: true, ");
        }
    }
}

fn text_fields(out: &mut String, schema: &Map<String, Value>) {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    match text("x-units") {
        Some("utf16") => out.push_str("units: Units::Utf16, "),
        Some("utf8") => out.push_str("units: Units::Utf8, "),
        _ => {}
    }
    match text("x-format") {
        Some("timestamp") => out.push_str("time: Time::Utc, "),
        Some(_) => out.push_str("time: Time::Offset, "),
        None => {}
    }
    if text("x-rust") == Some("secret") {
        out.push_str("secret: true, ");
    }
    if let Some(pattern) = text("pattern") {
        let _ = write!(
            out,
            "pattern: Some({{ static P: Pattern = Pattern::new({pattern:?}); &P }}), "
        );
    }
    if let Some(list) = schema.get("enum") {
        let _ = write!(out, "one_of: &{:?}, ", texts(list));
    }
}

/// The bounded walk, and where in the value a profile sits.
fn json_field(out: &mut String, json: Option<&str>, payload: Option<&str>) {
    match (json, payload) {
        (None, _) => {}
        (Some("content"), _) => out.push_str("json: Json::Content, "),
        (Some(_), None) => out.push_str("json: Json::Bounded, "),
        (Some(_), Some("root")) => out.push_str("json: Json::Profile(&[]), "),
        (Some(_), Some(path)) => {
            let path: Vec<&str> = path.split('.').collect();
            let _ = write!(out, "json: Json::Profile(&{path:?}), ");
        }
    }
}

fn constant(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(format!("Constant::Boolean({value})")),
        Value::String(value) => Some(format!("Constant::Text({value:?})")),
        _ => None,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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
