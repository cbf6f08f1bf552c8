//! The checker: interprets the tables that the build generates from `schemas/`.
//!
//! One [`Node`] a schema, all of them `static`, so that recursion costs nothing. A refusal names a path and a rule; it
//! never holds a value.

mod scalar;
mod time;
mod walk;

use std::sync::OnceLock;

use serde_json::Value;

use super::check::Refused;
use super::limits;

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
    /// The definition that this place refers to, where it says something of its own besides.
    pub also: Option<&'static Node>,
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
    /// Whether a text is a time, and of which form.
    pub time: Time,
    /// Whether the text is a secret.
    pub secret: bool,
    /// Smallest number.
    pub minimum: f64,
    /// Largest number.
    pub maximum: f64,
    /// What a number must be larger than.
    pub above: f64,
    /// Fewest items.
    pub min_items: usize,
    /// Most items.
    pub max_items: usize,
    /// Whether two equal items are refused.
    pub unique: bool,
    /// What each item must be.
    pub items: Option<&'static Node>,
    /// Known properties, sorted by name.
    pub properties: &'static [Property],
    /// How many of them must be there.
    pub required: usize,
    /// Properties that need others beside them.
    pub needs: &'static [(&'static str, &'static [&'static str])],
    /// Flags that, when true, need others to be true.
    pub implies: &'static [(&'static str, &'static [&'static str])],
    /// Fewest properties.
    pub min_properties: usize,
    /// Most properties.
    pub max_properties: usize,
    /// What the name of each property must be.
    pub names: Option<&'static Node>,
    /// What becomes of a property that is not known.
    pub extra: Extra,
    /// A union: what tells the branch that a value means.
    pub choice: Choice,
    /// How large the whole value may be.
    pub json: Json,
    /// A rule that occurs once.
    pub rule: Rule,
    /// A field that is refused whatever it holds, and why.
    pub refuse: Option<&'static str>,
}

/// A known property of an object.
#[derive(Debug)]
pub struct Property {
    /// Its name on the wire.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it must be.
    pub node: &'static Node,
}

impl Node {
    /// Allows everything.
    pub const ANY: Node = Node {
        kind: Kind::Any,
        also: None,
        constant: None,
        one_of: &[],
        min_length: 0,
        max_length: usize::MAX,
        units: Units::Characters,
        trim: false,
        pattern: None,
        time: Time::Any,
        secret: false,
        minimum: f64::NEG_INFINITY,
        maximum: f64::INFINITY,
        above: f64::NEG_INFINITY,
        min_items: 0,
        max_items: usize::MAX,
        unique: false,
        items: None,
        properties: &[],
        required: 0,
        needs: &[],
        implies: &[],
        min_properties: 0,
        max_properties: usize::MAX,
        names: None,
        extra: Extra::Allow,
        choice: Choice::None,
        json: Json::Any,
        rule: Rule::None,
        refuse: None,
    };

    /// The names of the known properties.
    pub fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.properties.iter().map(|property| property.name)
    }

    /// Checks `value` against this schema.
    ///
    /// # Errors
    ///
    /// The first refusal found, with its path and rule.
    pub fn check(&self, value: &Value) -> Result<(), Refused> {
        walk::value(self, value).map_err(|fault| fault.refused())
    }

    /// Checks a text against this schema.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn check_text(&self, value: &str) -> Result<(), Refused> {
        scalar::text(self, value).map_err(|fault| fault.refused())
    }

    /// Checks a number against this schema.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn check_number(&self, value: f64) -> Result<(), Refused> {
        scalar::number(self, value).map_err(|fault| fault.refused())?;
        match self.rule {
            Rule::Value(rule) => rule(&Value::from(value)).map_err(|refused| refused.by("x-rule")),
            _ => Ok(()),
        }
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

impl Kind {
    /// The kind in words, such as `a string`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Any => "anything",
            Kind::Null => "null",
            Kind::Object => "an object",
            Kind::Array => "an array",
            Kind::String => "a string",
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Boolean => "true or false",
        }
    }
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

/// How the branches of a union are told apart.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// No union.
    None,
    /// By the text of one property.
    Tag(&'static str, &'static [(&'static str, &'static Node)]),
    /// By the first of these properties that is there, with this value where one is given.
    Mark(&'static [(&'static str, Option<Constant>, &'static Node)]),
    /// By JSON type.
    Kind(&'static [(Kind, &'static Node)]),
}

/// How large a whole value may be (core contracts, 1.4, 1.5 and 3.12).
#[derive(Clone, Copy, Debug)]
pub enum Json {
    /// No constraint.
    Any,
    /// Bounded JSON.
    Bounded,
    /// Bounded JSON with a profile under these keys, whose payload is bounded in bytes.
    Profile(&'static [&'static str]),
    /// Event content.
    Content,
}

/// The form of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// No time.
    Any,
    /// RFC 3339 in UTC with `Z`.
    Utc,
    /// RFC 3339 with `Z` or an offset.
    Offset,
}

/// A rule that occurs once: a function beside the document that it belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// No rule.
    None,
    /// Of a text: the rule in words when it is broken.
    Text(fn(&str) -> Result<(), &'static str>),
    /// Of a value that has passed everything else: path below the value, and rule.
    Value(fn(&Value) -> Result<(), Refused>),
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

    /// Whether the pattern is found in `value`.
    pub(super) fn matches(&self, value: &str) -> bool {
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

/// The depth that a checked value may have: that of the strict parser.
pub const MAX_DEPTH: usize = limits::MAX_STRICT_DEPTH;

#[cfg(test)]
mod tests;
