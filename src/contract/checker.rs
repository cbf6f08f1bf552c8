//! The checker: interprets the tables that the build generates from `schemas/`.
//!
//! One [`Node`] a schema, all of them `static`, so that recursion costs nothing. A refusal names a path and a rule; it
//! never holds a value.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::check::Refused;
use super::{limits, text};

/// A type that is generated from a schema, and its check.
pub trait Checked: Sized {
    /// Name of the definition in `schemas/`.
    const NAME: &'static str;
    /// The table that holds the check.
    fn node() -> &'static Node;
}

/// What a schema allows at one place. Generated; a member that stands at its [`Node::ANY`] value constrains nothing.
#[derive(Debug)]
pub struct Node {
    /// JSON type.
    pub kind: Kind,
    /// The only value.
    pub constant: Option<Constant>,
    /// The only texts.
    pub one_of: &'static [&'static str],
    /// Shortest text, in `units`.
    pub min_length: usize,
    /// Longest text, in `units`.
    pub max_length: usize,
    /// How a text is measured.
    pub units: Units,
    /// Whether outer white space is refused.
    pub trim: bool,
    /// Pattern of a text.
    pub pattern: Option<&'static Pattern>,
    /// Whether a text is a time in UTC.
    pub timestamp: bool,
    /// Whether the text is a secret.
    pub secret: bool,
    /// Smallest number.
    pub minimum: f64,
    /// Largest number.
    pub maximum: f64,
    /// Fewest items.
    pub min_items: usize,
    /// Most items.
    pub max_items: usize,
    /// Whether two equal items are refused.
    pub unique: bool,
    /// What each item must be.
    pub items: Option<&'static Node>,
    /// Known properties.
    pub properties: &'static [(&'static str, &'static Node)],
    /// Properties that must be there.
    pub required: &'static [&'static str],
    /// Properties that need others beside them.
    pub needs: &'static [(&'static str, &'static [&'static str])],
    /// Most properties.
    pub max_properties: usize,
    /// What becomes of a property that is not known.
    pub extra: Extra,
    /// A union: the property that tells, and the branch of each of its values.
    pub tagged: Option<(&'static str, &'static [(&'static str, &'static Node)])>,
    /// A field that is refused whatever it holds, and why.
    pub refuse: Option<&'static str>,
}

impl Node {
    /// Allows everything.
    pub const ANY: Node = Node {
        kind: Kind::Any,
        constant: None,
        one_of: &[],
        min_length: 0,
        max_length: usize::MAX,
        units: Units::Characters,
        trim: false,
        pattern: None,
        timestamp: false,
        secret: false,
        minimum: f64::NEG_INFINITY,
        maximum: f64::INFINITY,
        min_items: 0,
        max_items: usize::MAX,
        unique: false,
        items: None,
        properties: &[],
        required: &[],
        needs: &[],
        max_properties: usize::MAX,
        extra: Extra::Allow,
        tagged: None,
        refuse: None,
    };

    /// The names of the known properties.
    pub fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.properties.iter().map(|(name, _)| *name)
    }

    /// Checks `value` against this schema.
    ///
    /// # Errors
    ///
    /// The first refusal found, with its path and rule.
    pub fn check(&self, value: &Value) -> Result<(), Refused> {
        let mut walk = Walk {
            path: String::new(),
        };
        walk.value(self, value)
    }

    /// Checks a text against this schema.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn check_text(&self, value: &str) -> Result<(), Refused> {
        text_rule(self, value).map_err(|rule| Refused::new("", rule))
    }

    /// Checks a number against this schema.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn check_number(&self, value: f64) -> Result<(), Refused> {
        number_rule(self, value).map_err(|rule| Refused::new("", rule))
    }
}

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No constraint.
    Any,
    /// `null`.
    Null,
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A whole number within the safe integers.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// The only value that a place may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(&'static str),
}

/// How a text is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Unicode scalar values, as JSON Schema counts.
    Characters,
    /// UTF-16 code units.
    Utf16,
    /// Bytes of UTF-8.
    Utf8,
}

/// What becomes of a property that a schema does not know.
#[derive(Clone, Copy, Debug)]
pub enum Extra {
    /// It may be there.
    Allow,
    /// It is refused.
    Refuse,
    /// It is a value of a map.
    Each(&'static Node),
}

/// A regular expression of a schema, compiled when it is first needed.
pub struct Pattern {
    source: &'static str,
    compiled: OnceLock<Option<regress::Regex>>,
}

impl Pattern {
    /// The pattern `source` in the dialect of ECMAScript.
    pub const fn new(source: &'static str) -> Self {
        Pattern {
            source,
            compiled: OnceLock::new(),
        }
    }

    fn matches(&self, value: &str) -> bool {
        let compiled = self
            .compiled
            .get_or_init(|| regress::Regex::new(self.source).ok());
        compiled
            .as_ref()
            .is_some_and(|regex| regex.find(value).is_some())
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.source)
    }
}

struct Walk {
    path: String,
}

impl Walk {
    fn no(&self, rule: impl Into<String>) -> Result<(), Refused> {
        Err(Refused::new(self.path.clone(), rule.into()))
    }

    fn below(
        &mut self,
        key: &str,
        check: impl FnOnce(&mut Self) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&shown_key(key));
        let result = check(self);
        self.path.truncate(length);
        result
    }

    fn value(&mut self, node: &Node, value: &Value) -> Result<(), Refused> {
        if let Some(reason) = node.refuse {
            return self.no(reason);
        }
        if let Some(rule) = kind_rule(node.kind, value) {
            return self.no(rule);
        }
        let same = match node.constant {
            None => true,
            Some(Constant::Boolean(constant)) => value.as_bool() == Some(constant),
            Some(Constant::Text(constant)) => value.as_str() == Some(constant),
        };
        if !same {
            return self.no("must be the one value that stands here");
        }
        match value {
            Value::String(value) => text_rule(node, value).or_else(|rule| self.no(rule)),
            Value::Number(value) => {
                number_rule(node, value.as_f64().unwrap_or(f64::NAN)).or_else(|rule| self.no(rule))
            }
            Value::Array(items) => self.array(node, items),
            Value::Object(members) => self.object(node, members, value),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn array(&mut self, node: &Node, items: &[Value]) -> Result<(), Refused> {
        if items.len() < node.min_items {
            return self.no(format!("must have at least {} items", node.min_items));
        }
        if items.len() > node.max_items {
            return self.no(format!("must have at most {} items", node.max_items));
        }
        if let Some(each) = node.items {
            for (index, item) in items.iter().enumerate() {
                self.below(&index.to_string(), |walk| walk.value(each, item))?;
            }
        }
        if node.unique && has_equal(items) {
            return self.no("must not have equal items");
        }
        Ok(())
    }

    fn object(
        &mut self,
        node: &Node,
        members: &Map<String, Value>,
        whole: &Value,
    ) -> Result<(), Refused> {
        if let Some((tag, branches)) = node.tagged {
            let branch = members
                .get(tag)
                .and_then(Value::as_str)
                .and_then(|value| branches.iter().find(|(name, _)| *name == value));
            return match branch {
                Some((_, branch)) => self.value(branch, whole),
                None => {
                    let names: Vec<&str> = branches.iter().map(|(name, _)| *name).collect();
                    self.below(tag, |walk| {
                        walk.no(format!("must be one of {}", names.join(", ")))
                    })
                }
            };
        }
        if members.len() > node.max_properties {
            return self.no(format!("must have at most {} entries", node.max_properties));
        }
        if matches!(node.extra, Extra::Refuse) {
            self.known(node, members)?;
        }
        if let Some(name) = node
            .required
            .iter()
            .find(|name| !members.contains_key(**name))
        {
            return self.no(format!("`{name}` is missing"));
        }
        for (name, needed) in node.needs {
            if let (true, Some(needed)) = (
                members.contains_key(*name),
                needed.iter().find(|needed| !members.contains_key(**needed)),
            ) {
                return self.no(format!("`{name}` needs `{needed}`"));
            }
        }
        for (key, member) in members {
            match node.properties.iter().find(|(name, _)| name == key) {
                Some((_, property)) => self.below(key, |walk| walk.value(property, member))?,
                None => {
                    if let Extra::Each(each) = node.extra {
                        self.below(key, |walk| walk.value(each, member))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Names every unknown field at once, sorted, so that one correction is enough.
    fn known(&self, node: &Node, members: &Map<String, Value>) -> Result<(), Refused> {
        let mut unknown: Vec<String> = members
            .keys()
            .filter(|key| !node.properties.iter().any(|(name, _)| name == key))
            .map(|key| shown_key(key))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort();
        unknown.dedup();
        let many = if unknown.len() > 1 { "s" } else { "" };
        unknown.truncate(16);
        self.no(format!("unknown field{many} `{}`", unknown.join("`, `")))
    }
}

/// How a key is named: as it is when it looks like a name, else only that it is there, since a key may hold anything.
fn shown_key(key: &str) -> String {
    let plain = key.len() <= 64
        && !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if plain {
        key.to_owned()
    } else {
        let mut shown = String::from("(key of ");
        let _ = write!(shown, "{} units)", text::utf16_len(key));
        shown
    }
}

fn kind_rule(kind: Kind, value: &Value) -> Option<&'static str> {
    let (fits, rule) = match kind {
        Kind::Any => return None,
        Kind::Null => (value.is_null(), "must be null"),
        Kind::Object => (value.is_object(), "must be an object"),
        Kind::Array => (value.is_array(), "must be an array"),
        Kind::String => (value.is_string(), "must be a string"),
        Kind::Boolean => (value.is_boolean(), "must be true or false"),
        Kind::Number => (value.is_number(), "must be a number"),
        Kind::Integer => (is_safe_integer(value), "must be a whole number"),
    };
    (!fits).then_some(rule)
}

/// A whole number that every party reads alike: at most 2^53 - 1 either way.
fn is_safe_integer(value: &Value) -> bool {
    const MAX_SAFE: i64 = (1 << 53) - 1;
    value
        .as_i64()
        .is_some_and(|value| (-MAX_SAFE..=MAX_SAFE).contains(&value))
}

fn text_rule(node: &Node, value: &str) -> Result<(), String> {
    if !node.one_of.is_empty() && !node.one_of.contains(&value) {
        return Err(format!("must be one of {}", node.one_of.join(", ")));
    }
    let (length, unit) = match node.units {
        Units::Characters if node.max_length == usize::MAX && node.min_length < 2 => {
            (value.len(), "characters")
        }
        Units::Characters => (value.chars().count(), "characters"),
        Units::Utf16 => (text::utf16_len(value), "UTF-16 units"),
        Units::Utf8 => (value.len(), "bytes"),
    };
    if length < node.min_length {
        return Err(match node.min_length {
            1 => "must not be empty".to_owned(),
            least => format!("must have at least {least} {unit}"),
        });
    }
    if length > node.max_length {
        return Err(format!("must have at most {} {unit}", node.max_length));
    }
    if node.trim && text::has_outer_white_space(value) {
        return Err("must not begin or end with white space".to_owned());
    }
    if let Some(pattern) = node.pattern
        && !pattern.matches(value)
    {
        return Err(format!("must match {}", pattern.source));
    }
    if node.timestamp && !is_timestamp(value) {
        return Err("must be an RFC 3339 time in UTC with Z".to_owned());
    }
    Ok(())
}

fn is_timestamp(value: &str) -> bool {
    value.ends_with('Z') && value.contains('T') && value.parse::<jiff::Timestamp>().is_ok()
}

fn number_rule(node: &Node, value: f64) -> Result<(), String> {
    if !value.is_finite() {
        return Err("must be a finite number".to_owned());
    }
    if value < node.minimum {
        return Err(format!("must be at least {}", node.minimum));
    }
    if value > node.maximum {
        return Err(format!("must be at most {}", node.maximum));
    }
    Ok(())
}

/// Whether two items are equal; by digest of their canonical text above a handful.
fn has_equal(items: &[Value]) -> bool {
    if items.len() <= 8 {
        return (1..items.len()).any(|index| items[..index].contains(&items[index]));
    }
    let mut seen = std::collections::HashSet::new();
    !items
        .iter()
        .all(|item| seen.insert(super::canonical::to_text(item)))
}

/// The depth that a checked value may have: that of the strict parser.
pub const MAX_DEPTH: usize = limits::MAX_STRICT_DEPTH;
