//! Bounded texts, numbers and secrets: each named one becomes a type whose values have passed its check.

use std::fmt::Write as _;

use serde_json::Value;

use crate::bundle::Bundle;
use crate::{Options, checks};

/// What a definition is, when it is no struct, enum, list or map.
enum Scalar {
    Secret,
    /// The digest of anything.
    Digest,
    /// The digest of one kind of thing.
    TypedDigest,
    Text,
    Integer(&'static str),
    Number,
}

fn scalar(name: &str, schema: &Value) -> Option<Scalar> {
    if schema["x-rust"] == "secret" {
        return Some(Scalar::Secret);
    }
    if schema["x-rust"] == "digest" {
        return Some(match name {
            "Digest" => Scalar::Digest,
            _ => Scalar::TypedDigest,
        });
    }
    match schema["type"].as_str()? {
        "string" if schema.get("enum").is_none() => Some(Scalar::Text),
        "integer" => Some(Scalar::Integer(integer(schema))),
        "number" => Some(Scalar::Number),
        _ => None,
    }
}

/// Whether a definition has a type of its own name; a secret and a digest of anything are types of the contract.
pub(crate) fn has_own_type(name: &str, schema: &Value) -> bool {
    !matches!(scalar(name, schema), Some(Scalar::Secret | Scalar::Digest))
}

/// The smallest integer type that holds every allowed value.
fn integer(schema: &Value) -> &'static str {
    let (low, high) = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
    match (low, high) {
        (Some(0..), Some(..=0xff)) => "u8",
        (Some(0..), Some(..=0xffff)) => "u16",
        (Some(0..), Some(..=0xffff_ffff)) => "u32",
        (Some(0..), _) => "u64",
        _ => "i64",
    }
}

/// The Rust path of a scalar definition; `None` when typify writes the type.
pub(crate) fn path(name: &str, schema: &Value, options: &Options) -> Option<String> {
    scalar(name, schema).map(|scalar| match scalar {
        Scalar::Secret => format!("{}::secret::Secret", options.contract),
        Scalar::Digest => format!("{}::digest::Digest", options.contract),
        _ => name.to_owned(),
    })
}

/// One macro call a scalar; the macros stand in the contract's `scalar` module.
pub(crate) fn write(bundle: &Bundle, options: &Options) -> String {
    let mut text = String::new();
    for (name, schema) in &bundle.defs {
        let Some(scalar) = scalar(name, schema) else {
            continue;
        };
        let (call, kind) = match scalar {
            Scalar::Secret | Scalar::Digest => continue,
            Scalar::TypedDigest => ("typed_digest", ""),
            Scalar::Text => ("text", ""),
            Scalar::Integer(kind) => ("integer", kind),
            Scalar::Number => ("number", "f64"),
        };
        let doc = schema["description"].as_str().unwrap_or_default();
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!(": {kind}")
        };
        let _ = writeln!(
            text,
            "{contract}::scalar::{call}! {{ #[doc = {doc:?}] {name}{kind}, super::checks::{check} }}",
            contract = options.contract,
            check = checks::table_name(name),
        );
    }
    text
}
