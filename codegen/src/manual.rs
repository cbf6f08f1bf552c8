//! Tables of the manual, in Markdown: what the schemas hold, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::Options;
use crate::bundle::Bundle;

/// The tables, one member a page.
#[derive(Clone, Debug, Default)]
pub struct Manual {
    /// Every generated type by file, with its kind and its description.
    pub contracts: String,
    /// Every limit with value, unit and chapter.
    pub limits: String,
    /// Every claim with the flags that prove it and what it implies.
    pub claims: String,
}

pub(crate) fn write(bundle: &Bundle, options: &Options) -> Manual {
    Manual {
        contracts: contracts(bundle, options),
        limits: limits(bundle),
        claims: claims(bundle),
    }
}

fn contracts(bundle: &Bundle, options: &Options) -> String {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, (file, _)) in &bundle.origins {
        files.entry(file).or_default().push(name);
    }
    let mut text = String::new();
    for (file, names) in files {
        let _ = writeln!(
            text,
            "\n## `{file}`\n\n| type | kind | what it is |\n|---|---|---|"
        );
        for name in names {
            let schema = &bundle.defs[name];
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                link(name, schema, options),
                kind(schema),
                cell(schema["description"].as_str().unwrap_or_default()),
            );
        }
    }
    text
}

/// A named scalar of another module has no type of its own name.
fn link(name: &str, schema: &Value, options: &Options) -> String {
    let contract = &options.contract;
    match schema["x-rust"].as_str() {
        Some("secret") => format!("[`Secret`]({contract}::secret::Secret) (`{name}`)"),
        Some("digest") if name == "Digest" => format!("[`Digest`]({contract}::digest::Digest)"),
        _ => format!("[`{name}`]({contract}::types::{name})"),
    }
}

fn kind(schema: &Value) -> String {
    let word = match (schema["x-mode"].as_str(), schema["type"].as_str()) {
        (Some("strict"), _) => "object, unknown fields refused",
        (Some("record"), _) => "object, unknown fields ignored",
        (Some(_), _) => "object, unknown fields kept",
        (None, Some("object")) => "map",
        (None, Some("array")) => "list",
        (None, Some("string")) if schema.get("enum").is_some() => "one of a few texts",
        (None, Some("string")) => "text",
        (None, Some("integer")) => "whole number",
        (None, Some("number")) => "number",
        (None, Some(_)) => "value",
        (None, None) if schema.get("oneOf").is_some() => "union",
        (None, None) => "any JSON",
    };
    word.to_owned()
}

fn limits(bundle: &Bundle) -> String {
    let Some((_, limits)) = &bundle.limits else {
        return String::new();
    };
    let mut text = String::from(
        "\n| limit | value | unit | what it bounds | chapter |\n|---|---:|---|---|---|\n",
    );
    for (name, limit) in limits {
        let word = |key: &str| cell(limit[key].as_str().unwrap_or_default());
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} | {} |",
            grouped(limit["value"].as_u64().unwrap_or_default()),
            word("unit"),
            word("doc"),
            word("chapter"),
        );
    }
    text
}

fn claims(bundle: &Bundle) -> String {
    let Some((_, _, claims)) = &bundle.claims else {
        return String::new();
    };
    let mut text = String::from(
        "\n| claim | what it allows | flags that prove it | implies |\n|---|---|---|---|\n",
    );
    for (name, claim) in claims {
        let list = |key: &str, show: &dyn Fn(&str) -> String| {
            let items = claim[key].as_array().into_iter().flatten();
            let shown: Vec<String> = items.filter_map(Value::as_str).map(show).collect();
            shown.join(", ")
        };
        let _ = writeln!(
            text,
            "| [`{name}`](crate::claims::{name}) | {} | {} | {} |",
            cell(claim["doc"].as_str().unwrap_or_default()),
            list("allOf", &|flag| format!(
                "`{}`",
                flag.trim_start_matches('/').replace('/', ".")
            )),
            list("implies", &|name| format!(
                "[`{name}`](crate::claims::{name})"
            )),
        );
    }
    text
}

/// A text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// `1048576` as `1,048,576`.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
