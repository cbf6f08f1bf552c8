//! Reads the schema files and joins them into one map of definitions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::SchemaError;
use crate::keywords;

/// Every definition of a folder, references resolved to names.
pub(crate) struct Bundle {
    /// Definitions by type name; a reference reads `#/definitions/Name`.
    pub defs: BTreeMap<String, Value>,
    /// File and pointer of each definition, for messages.
    pub origins: BTreeMap<String, (String, String)>,
    /// The claim table with the file that holds it and the name of its document.
    pub claims: Option<(String, String, Map<String, Value>)>,
    /// The limits with the file that holds them.
    pub limits: Option<(String, Map<String, Value>)>,
    pub inputs: Vec<PathBuf>,
}

impl Bundle {
    /// An error that points at definition `name`.
    pub fn error(&self, name: &str, rule: impl Into<String>) -> SchemaError {
        match self.origins.get(name) {
            Some((file, pointer)) => SchemaError::new(file, pointer, rule),
            None => SchemaError::new(name, "", rule),
        }
    }
}

pub(crate) fn read(dir: &Path) -> Result<Bundle, SchemaError> {
    let shown = dir.display().to_string();
    let entries = std::fs::read_dir(dir)
        .map_err(|error| SchemaError::new(&shown, "", format!("cannot be listed: {error}")))?;
    let mut inputs: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    inputs.sort();
    let mut files = BTreeMap::new();
    for path in &inputs {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let root = parse(&name, path)?;
        keywords::check_file(&name, &root)?;
        files.insert(name, root);
    }
    let mut bundle = Bundle {
        defs: BTreeMap::new(),
        origins: BTreeMap::new(),
        claims: None,
        limits: None,
        inputs,
    };
    for (name, root) in &files {
        add(&mut bundle, &files, name, root)?;
    }
    Ok(bundle)
}

fn parse(name: &str, path: &Path) -> Result<Map<String, Value>, SchemaError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| SchemaError::new(name, "", format!("cannot be read: {error}")))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err(SchemaError::new(name, "", "a schema must be an object")),
        Err(error) => Err(SchemaError::new(name, "", format!("is not JSON: {error}"))),
    }
}

fn add(
    bundle: &mut Bundle,
    files: &BTreeMap<String, Map<String, Value>>,
    file: &str,
    root: &Map<String, Value>,
) -> Result<(), SchemaError> {
    let title = title(file, root)?;
    let mut found: Vec<(String, String, Value)> = Vec::new();
    if let Some(Value::Object(defs)) = root.get("$defs") {
        for (name, schema) in defs {
            found.push((name.clone(), format!("/$defs/{name}"), schema.clone()));
        }
    }
    if keywords::is_definition(root) {
        let mut own = root.clone();
        for key in ["$schema", "$id", "$defs", "x-claims", "x-limits", "title"] {
            own.remove(key);
        }
        found.push((title.to_owned(), String::new(), Value::Object(own)));
    }
    for (name, pointer, mut schema) in found {
        resolve(files, file, &pointer, &mut schema)?;
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return Err(SchemaError::new(
                file,
                pointer,
                "a type name starts with a capital",
            ));
        }
        if bundle.defs.insert(name.clone(), schema).is_some() {
            return Err(SchemaError::new(
                file,
                pointer,
                format!("the type {name} exists twice"),
            ));
        }
        bundle.origins.insert(name, (file.to_owned(), pointer));
    }
    if let Some(claims) = root.get("x-claims") {
        let claims = claims
            .as_object()
            .ok_or_else(|| SchemaError::new(file, "/x-claims", "must be an object"))?;
        bundle.claims = Some((file.to_owned(), title.to_owned(), claims.clone()));
    }
    if let Some(limits) = root.get("x-limits") {
        let limits = limits
            .as_object()
            .ok_or_else(|| SchemaError::new(file, "/x-limits", "must be an object"))?;
        bundle.limits = Some((file.to_owned(), limits.clone()));
    }
    Ok(())
}

fn title<'a>(file: &str, root: &'a Map<String, Value>) -> Result<&'a str, SchemaError> {
    root.get("title")
        .and_then(Value::as_str)
        .ok_or_else(|| SchemaError::new(file, "", "`title` is missing"))
}

/// Rewrites each `$ref` to `#/definitions/Name`; walks schema positions only, since a property may be named `$ref`.
fn resolve(
    files: &BTreeMap<String, Map<String, Value>>,
    file: &str,
    pointer: &str,
    schema: &mut Value,
) -> Result<(), SchemaError> {
    let Some(schema) = schema.as_object_mut() else {
        return Ok(());
    };
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = target(files, file, reference)
            .map(|name| format!("#/definitions/{name}"))
            .ok_or_else(|| {
                SchemaError::new(file, pointer, format!("`{reference}` names nothing"))
            })?;
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            resolve(
                files,
                file,
                &format!("{pointer}/properties/{name}"),
                property,
            )?;
        }
    }
    for key in ["items", "additionalProperties", "propertyNames"] {
        if let Some(child) = schema.get_mut(key) {
            resolve(files, file, &format!("{pointer}/{key}"), child)?;
        }
    }
    if let Some(Value::Array(branches)) = schema.get_mut("oneOf") {
        for (index, branch) in branches.iter_mut().enumerate() {
            resolve(files, file, &format!("{pointer}/oneOf/{index}"), branch)?;
        }
    }
    Ok(())
}

/// The type that `reference`, written in `file`, names: `#/$defs/X`, `other.json#/$defs/X` or `other.json#`.
fn target(
    files: &BTreeMap<String, Map<String, Value>>,
    file: &str,
    reference: &str,
) -> Option<String> {
    let (other, fragment) = reference.split_once('#')?;
    let root = files.get(if other.is_empty() { file } else { other })?;
    match fragment.strip_prefix("/$defs/") {
        Some(name) => root
            .get("$defs")?
            .get(name)
            .is_some()
            .then(|| name.to_owned()),
        None if fragment.is_empty() => root.get("title")?.as_str().map(str::to_owned),
        None => None,
    }
}

/// The definition that a resolved `$ref` names.
pub(crate) fn referenced(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/definitions/")
}
