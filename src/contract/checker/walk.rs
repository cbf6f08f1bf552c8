//! The walk of a value along its schema.
//!
//! A path is put together only where something is refused, from the inside out.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Choice, Constant, Extra, Json, Kind, Node, Rule, scalar};
use crate::contract::bounds::{self, BoundError};
use crate::contract::canonical::{self, utf16_order};
use crate::contract::check::{Key, Refused};
use crate::contract::limits;

/// How many unknown fields the words of a refusal name.
const SHOWN_FIELDS: usize = 16;

/// A refusal on its way out: the steps of its path from the last to the first.
pub(super) struct Fault(Box<Inner>);

struct Inner {
    steps: Vec<Key>,
    /// A path below the innermost step, as a rule function or the bounded walk gives it.
    below: String,
    /// The steps below the innermost one to what was refused, where they are not those of `below`.
    place: Option<String>,
    rule: Cow<'static, str>,
    keyword: &'static str,
    unknown: Vec<Key>,
}

impl Fault {
    pub(super) fn new(keyword: &'static str, rule: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            steps: Vec::new(),
            below: String::new(),
            place: None,
            rule: rule.into(),
            keyword,
            unknown: Vec::new(),
        }))
    }

    /// What the bounded walk refused.
    pub(super) fn bound(error: &BoundError) -> Self {
        let mut fault = Self::new("x-json", error.violation().words());
        fault.0.below = error.violation().pointer().to_owned();
        fault.0.place = Some(String::new());
        fault
    }

    fn rule(refused: &Refused) -> Self {
        let keyword = refused.keyword().unwrap_or("x-rule");
        let mut fault = Self::new(keyword, refused.rule().to_owned());
        fault.0.below = refused.path().to_owned();
        fault.0.place = refused.place().map(str::to_owned);
        fault
    }

    fn under(mut self, step: &str) -> Self {
        self.0.steps.push(Key::new(step));
        self
    }

    pub(super) fn refused(self) -> Refused {
        let inner = *self.0;
        let (mut path, mut place) = (String::new(), String::new());
        for step in inner.steps.iter().rev() {
            path.push_str(&format!("/{step}"));
            place.push('/');
            place.push_str(&step.pointer_step());
        }
        path.push_str(&inner.below);
        place.push_str(&inner.place.unwrap_or(inner.below));
        let same = path == place;
        let refused = Refused::new(path, inner.rule)
            .by(inner.keyword)
            .of_unknown(inner.unknown);
        if same {
            return refused;
        }
        refused.at_place(place)
    }
}

/// Checks `value`: how large it is, what it is, then what it holds.
pub(super) fn value(node: &Node, value: &Value) -> Result<(), Fault> {
    if let Some(reason) = node.refuse {
        return Err(Fault::new("x-refuse", reason));
    }
    size(node.json, value).map_err(|error| Fault::bound(&error))?;
    if let Some(also) = node.also {
        self::value(also, value)?;
    }
    scalar::kind(node.kind, value)?;
    if let Some(constant) = node.constant
        && !is(value, constant)
    {
        return Err(Fault::new(
            "const",
            "must be the one value that stands here",
        ));
    }
    match (node.choice, value) {
        // A union says nothing itself; its branch does.
        (Choice::Tag(..) | Choice::Mark(_) | Choice::Kind(_), _) => branch(node.choice, value)?,
        (Choice::None, Value::String(text)) => scalar::text(node, text)?,
        (Choice::None, Value::Number(number)) => {
            scalar::number(node, number.as_f64().unwrap_or(f64::NAN))?;
        }
        (Choice::None, Value::Array(items)) => array(node, items)?,
        (Choice::None, Value::Object(members)) => object(node, members)?,
        (Choice::None, Value::Null | Value::Bool(_)) => {}
    }
    match node.rule {
        Rule::Value(rule) => rule(value).map_err(|refused| Fault::rule(&refused)),
        _ => Ok(()),
    }
}

fn size(json: Json, value: &Value) -> Result<(), BoundError> {
    match (json, value) {
        // A lone text is measured with its other rules.
        (Json::Any, _) | (Json::Content, Value::String(_)) => Ok(()),
        (Json::Bounded, value) => bounds::json("value", value),
        (Json::Profile(at), value) => bounds::profile_at("value", value, at),
        (Json::Content, value) => bounds::event_content("value", value),
    }
}

fn is(value: &Value, constant: Constant) -> bool {
    match constant {
        Constant::Boolean(constant) => value.as_bool() == Some(constant),
        Constant::Text(constant) => value.as_str() == Some(constant),
    }
}

/// The branch of a union that the value itself names.
fn branch(choice: Choice, value: &Value) -> Result<(), Fault> {
    let member = |name: &str| value.get(name);
    match choice {
        Choice::None => Ok(()),
        Choice::Tag(tag, branches) => {
            let found = member(tag).and_then(Value::as_str);
            match branches.iter().find(|(name, _)| Some(*name) == found) {
                Some((_, branch)) => self::value(branch, value),
                None => {
                    let names: Vec<&str> = branches.iter().map(|(name, _)| *name).collect();
                    let rule = format!("must be one of {}", names.join(", "));
                    Err(Fault::new("oneOf", rule).under(tag))
                }
            }
        }
        Choice::Mark(branches) => {
            let means = |(name, constant, _): &&(&str, Option<Constant>, &Node)| {
                member(name)
                    .is_some_and(|found| constant.is_none_or(|constant| is(found, constant)))
            };
            match branches.iter().find(means) {
                Some((_, _, branch)) => self::value(branch, value),
                None => {
                    let names: Vec<String> = branches
                        .iter()
                        .map(|(name, ..)| format!("`{name}`"))
                        .collect();
                    let rule = format!("one of {} is missing", names.join(", "));
                    Err(Fault::new("oneOf", rule))
                }
            }
        }
        Choice::Kind(branches) => {
            let fits = |(kind, _): &&(Kind, &Node)| scalar::kind(*kind, value).is_ok();
            match branches.iter().find(fits) {
                Some((_, branch)) => self::value(branch, value),
                None => {
                    let names: Vec<&str> = branches.iter().map(|(kind, _)| kind.word()).collect();
                    let rule = format!("must be {}", names.join(" or "));
                    Err(Fault::new("oneOf", rule))
                }
            }
        }
    }
}

fn array(node: &Node, items: &[Value]) -> Result<(), Fault> {
    if items.len() < node.min_items {
        let rule = format!("must have at least {} items", node.min_items);
        return Err(Fault::new("minItems", rule));
    }
    if items.len() > node.max_items {
        let rule = format!("must have at most {} items", node.max_items);
        return Err(Fault::new("maxItems", rule));
    }
    if let Some(each) = node.items {
        for (index, item) in items.iter().enumerate() {
            value(each, item).map_err(|fault| fault.under(&index.to_string()))?;
        }
    }
    if node.unique && has_equal(items) {
        return Err(Fault::new("uniqueItems", "must not have equal items"));
    }
    Ok(())
}

/// Whether two items are equal; by their canonical text above a handful.
fn has_equal(items: &[Value]) -> bool {
    if items.len() <= 8 {
        return (1..items.len()).any(|index| items[..index].contains(&items[index]));
    }
    let mut seen = std::collections::HashSet::new();
    !items
        .iter()
        .all(|item| seen.insert(canonical::to_text(item)))
}

/// Unknown fields are named before missing ones, and both before what is wrong inside a field.
fn object(node: &Node, members: &Map<String, Value>) -> Result<(), Fault> {
    if members.len() > node.max_properties {
        let rule = format!("must have at most {} entries", node.max_properties);
        return Err(Fault::new("maxProperties", rule));
    }
    let wrong = self::members(node, members)?;
    for (name, needed) in node.needs {
        let missing = || needed.iter().find(|needed| !members.contains_key(**needed));
        if let (true, Some(missing)) = (members.contains_key(*name), missing()) {
            let rule = format!("`{name}` needs `{missing}`");
            return Err(Fault::new("dependentRequired", rule));
        }
    }
    if let Some(fault) = wrong {
        return Err(fault);
    }
    if members.len() < node.min_properties {
        let rule = match node.min_properties {
            1 => "must not be empty".to_owned(),
            least => format!("must have at least {least} entries"),
        };
        return Err(Fault::new("minProperties", rule));
    }
    let set = |name: &str| members.get(name) == Some(&Value::Bool(true));
    for (name, needed) in node.implies {
        if let (true, Some(missing)) = (set(name), needed.iter().find(|needed| !set(needed))) {
            let rule = format!("`{name}` needs `{missing}` to be true");
            return Err(Fault::new("x-implies", rule));
        }
    }
    Ok(())
}

/// Walks members and properties side by side; gives the first fault inside a member back, for after the other rules.
fn members(node: &Node, members: &Map<String, Value>) -> Result<Option<Fault>, Fault> {
    let mut wrong = None;
    let mut required = 0;
    let mut cursor = 0;
    let mut strangers = false;
    for (key, member) in members {
        let (known, name) = match find(node, key, cursor) {
            Some(index) => {
                let property = &node.properties[index];
                cursor = index + 1;
                required += usize::from(property.required);
                (Some(property.node), None)
            }
            None => match node.extra {
                Extra::Refuse => {
                    strangers = true;
                    (None, None)
                }
                Extra::Allow => (None, node.names),
                Extra::Each(each) => (Some(each), node.names),
            },
        };
        if wrong.is_some() {
            continue;
        }
        let checked = match name {
            Some(name) => scalar::text(name, key).map_err(Fault::of_key),
            None => Ok(()),
        }
        .and_then(|()| known.map_or(Ok(()), |known| value(known, member)));
        if let Err(fault) = checked {
            wrong = Some(fault.under(key));
        }
    }
    if strangers {
        return Err(unknown(node, members));
    }
    if required < node.required {
        let missing = node
            .properties
            .iter()
            .find(|property| property.required && !members.contains_key(property.name));
        let name = missing.map_or("", |property| property.name);
        return Err(Fault::missing(name));
    }
    Ok(wrong)
}

/// The property `key`, looked for from `cursor` on first.
fn find(node: &Node, key: &str, cursor: usize) -> Option<usize> {
    const NEAR: usize = 4;
    if node.properties.is_empty() {
        return None;
    }
    // The members of a map are usually sorted, as the properties are; nothing but speed rests on it.
    let near = node.properties.iter().skip(cursor).take(NEAR);
    if let Some(ahead) = near.into_iter().position(|property| property.name == key) {
        return Some(cursor + ahead);
    }
    node.properties
        .binary_search_by(|property| property.name.cmp(key))
        .ok()
}

impl Fault {
    /// The path leads to the object, the place to the field that it lacks.
    fn missing(name: &str) -> Self {
        let mut fault = Self::new("required", format!("`{name}` is missing"));
        fault.0.place = Some(format!("/{}", Key::new(name).pointer_step()));
        fault
    }

    /// The same words about a key, which a path can name only when it is harmless.
    fn of_key(mut self) -> Self {
        self.0.rule = format!("the key {}", self.0.rule).into();
        self
    }
}

/// Names every unknown field at once, sorted, so that one correction is enough.
fn unknown(node: &Node, members: &Map<String, Value>) -> Fault {
    let mut unknown: Vec<&String> = members
        .keys()
        .filter(|key| !node.fields().any(|name| name == *key))
        .collect();
    unknown.sort_by(|left, right| utf16_order(left, right));
    unknown.truncate(limits::MAX_MAP);
    let unknown: Vec<Key> = unknown.into_iter().map(|key| Key::new(key)).collect();
    let many = if unknown.len() > 1 { "s" } else { "" };
    let shown = unknown.iter().take(SHOWN_FIELDS).map(Key::to_string);
    let rule = format!(
        "unknown field{many} `{}`",
        shown.collect::<Vec<_>>().join("`, `")
    );
    let mut fault = Fault::new("x-mode", rule);
    fault.0.unknown = unknown;
    fault
}
