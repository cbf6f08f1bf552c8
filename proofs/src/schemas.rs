//! The schema files, read by another reader than the one that the build uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Every definition of `schemas/` by name; each `$ref` reads `#/$defs/Name`.
#[derive(Debug)]
pub struct Schemas {
    definitions: BTreeMap<String, Value>,
}

impl Schemas {
    /// The schemas of this repository.
    pub fn read() -> Self {
        let mut files: Vec<PathBuf> = std::fs::read_dir(repository().join("schemas"))
            .expect("the folder of the schemas")
            .map(|entry| entry.expect("an entry of the folder").path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        files.sort();
        let roots: BTreeMap<String, Value> = files
            .iter()
            .map(|path| {
                let name = path.file_name().expect("a name").to_string_lossy();
                let text = std::fs::read_to_string(path).expect("a schema file");
                let root = serde_json::from_str(&text).expect("JSON in a schema file");
                (name.into_owned(), root)
            })
            .collect();
        let mut definitions = BTreeMap::new();
        for (file, root) in &roots {
            for (name, schema) in root["$defs"].as_object().into_iter().flatten() {
                definitions.insert(name.clone(), resolved(&roots, file, schema));
            }
            if ["type", "oneOf", "enum"]
                .iter()
                .any(|key| root.get(key).is_some())
            {
                let name = root["title"].as_str().expect("a root has a title");
                let mut own = root.clone();
                let members = own.as_object_mut().expect("a root is an object");
                for key in ["$schema", "$id", "$defs", "x-claims", "x-limits"] {
                    members.remove(key);
                }
                definitions.insert(name.to_owned(), resolved(&roots, file, &own));
            }
        }
        Self { definitions }
    }

    /// The names of all definitions, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    /// All definitions by name.
    pub fn definitions(&self) -> &BTreeMap<String, Value> {
        &self.definitions
    }

    /// The schema of definition `name`.
    ///
    /// # Panics
    /// When there is none.
    pub fn get(&self, name: &str) -> &Value {
        match self.definitions.get(name) {
            Some(schema) => schema,
            None => panic!("no schema defines {name}"),
        }
    }

    /// The schema that `schema` refers to, or itself.
    pub fn follow<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match referenced(schema) {
            Some(name) => self.follow(self.get(name)),
            None => schema,
        }
    }

    /// The branch of the union `schema` that `value` means, as the schemas' own documentation says it.
    pub fn branch<'a>(&'a self, schema: &'a Value, value: &Value) -> Option<&'a Value> {
        let branches = schema["oneOf"].as_array()?;
        let means = |branch: &&Value| match union(branches) {
            Union::Tag(tag) => value.get(&tag) == Some(&branch["properties"][&tag]["const"]),
            Union::Mark => {
                let mark = branch["x-mark"].as_str().unwrap_or_default();
                let constant = branch["properties"][mark].get("const");
                value
                    .get(mark)
                    .is_some_and(|found| constant.is_none_or(|it| it == found))
            }
            Union::Kind => self.is_of_kind(branch, value),
        };
        branches.iter().find(means)
    }

    fn is_of_kind(&self, branch: &Value, value: &Value) -> bool {
        let schema = self.follow(branch);
        match schema["type"].as_str() {
            Some("null") => value.is_null(),
            Some("boolean") => value.is_boolean(),
            Some("string") => value.is_string(),
            Some("array") => value.is_array(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some(_) => value.is_object(),
            None => schema.get("oneOf").is_some() && value.is_object(),
        }
    }

    /// Whether any definition on the way of `schema`, its references followed, has `keyword`.
    pub fn has(&self, schema: &Value, keyword: &str) -> bool {
        schema.get(keyword).is_some()
            || referenced(schema).is_some_and(|name| self.has(self.get(name), keyword))
    }
}

/// How a union is told apart.
#[derive(Debug, PartialEq, Eq)]
pub enum Union {
    /// By the constant text of this property.
    Tag(String),
    /// By the property that each branch names.
    Mark,
    /// By JSON type.
    Kind,
}

/// How `branches` are told apart.
pub fn union(branches: &[Value]) -> Union {
    let names = branches[0]["properties"].as_object().into_iter().flatten();
    let tag = names.map(|(name, _)| name).find(|name| {
        branches.iter().all(|branch| {
            branch["properties"][name.as_str()]["const"].is_string() && requires(branch, name)
        })
    });
    match tag {
        Some(name) => Union::Tag(name.clone()),
        None if branches.iter().all(|branch| branch.get("x-mark").is_some()) => Union::Mark,
        None => Union::Kind,
    }
}

/// Whether `schema` requires the property `name`.
pub fn requires(schema: &Value, name: &str) -> bool {
    texts(&schema["required"]).contains(&name)
}

/// The name that a `$ref` says.
pub fn referenced(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// A list of texts.
pub fn texts(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// The folder of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The properties of an object, each as `below` makes it.
///
/// # Panics
/// When they are no object.
pub fn each(properties: &Value, below: impl Fn(&Value) -> Value) -> Value {
    let properties = properties.as_object().expect("properties are an object");
    properties
        .iter()
        .map(|(name, it)| (name.clone(), below(it)))
        .collect()
}

/// `schema` with every reference as `#/$defs/Name`. Only schema positions are walked: a property may be named `$ref`.
fn resolved(roots: &BTreeMap<String, Value>, file: &str, schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else {
        return schema.clone();
    };
    let below = |value: &Value| resolved(roots, file, value);
    let mut new = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "$ref" => Value::String(format!("#/$defs/{}", target(roots, file, value))),
            "properties" => each(value, below),
            "items" | "additionalProperties" | "propertyNames" => below(value),
            "oneOf" => value
                .as_array()
                .expect("oneOf is a list")
                .iter()
                .map(below)
                .collect(),
            _ => value.clone(),
        };
        new.insert(key.clone(), value);
    }
    Value::Object(new)
}

fn target<'a>(roots: &'a BTreeMap<String, Value>, file: &str, reference: &'a Value) -> &'a str {
    let reference = reference.as_str().expect("a reference is a text");
    let (other, fragment) = reference
        .split_once('#')
        .expect("a reference has a fragment");
    match fragment.strip_prefix("/$defs/") {
        Some(name) => name,
        None => {
            let root = &roots[if other.is_empty() { file } else { other }];
            root["title"].as_str().expect("a root has a title")
        }
    }
}
