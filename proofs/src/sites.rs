//! The places of a document, each with what its schema says of it.

use serde_json::Value;

use crate::schemas::Schemas;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member.
    Key(String),
    /// An item.
    Index(usize),
}

/// A place of a document.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Where.
    pub path: Vec<Step>,
    /// What the schema says there, references followed and the branch of a union chosen; nothing where any JSON is taken.
    pub schema: Option<&'a Value>,
}

/// Every place of `value`, the root first.
pub fn all<'a>(schemas: &'a Schemas, schema: &'a Value, value: &Value) -> Vec<Site<'a>> {
    let mut found = Vec::new();
    walk(schemas, Some(schema), value, &mut Vec::new(), &mut found);
    found
}

fn walk<'a>(
    schemas: &'a Schemas,
    schema: Option<&'a Value>,
    value: &Value,
    path: &mut Vec<Step>,
    found: &mut Vec<Site<'a>>,
) {
    let schema = schema.map(|schema| settled(schemas, schema, value));
    found.push(Site {
        path: path.clone(),
        schema,
    });
    match value {
        Value::Array(items) => {
            let each = schema.and_then(|schema| schema.get("items"));
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Index(index));
                walk(schemas, each, item, path, found);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let known = schema.and_then(|schema| {
                    schema["properties"]
                        .get(key)
                        .or_else(|| schema.get("additionalProperties"))
                });
                path.push(Step::Key(key.clone()));
                walk(schemas, known, member, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// What `schema` says of `value` once references are followed and branches are chosen.
fn settled<'a>(schemas: &'a Schemas, schema: &'a Value, value: &Value) -> &'a Value {
    let schema = schemas.follow(schema);
    match schemas.branch(schema, value) {
        Some(branch) => settled(schemas, branch, value),
        None => schema,
    }
}

/// The value at `path`.
///
/// # Panics
/// When the path leads nowhere.
pub fn at_mut<'v>(value: &'v mut Value, path: &[Step]) -> &'v mut Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Index(index) => &mut value[*index],
    })
}

/// The value at `path`.
///
/// # Panics
/// When the path leads nowhere.
pub fn at<'v>(value: &'v Value, path: &[Step]) -> &'v Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => &value[key.as_str()],
        Step::Index(index) => &value[*index],
    })
}
