//! The one error of a bound that was passed: which rule, where, and what was counted; never a value.

use std::fmt;

use super::super::text::utf16_len;

/// The longest message, in UTF-16 code units.
const MAX_MESSAGE: usize = 512;

/// Which bound was passed.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundRule {
    /// A string is too long.
    String,
    /// One payload, or the text of a whole value, is too large.
    Payload,
    /// The inline resources of a profile are too large together.
    InlinePayload,
    /// The payloads of a profile are too large together.
    TotalPayload,
    /// An array has too many items.
    Array,
    /// An object has too many members.
    Entries,
    /// Containers are nested too deep.
    Depth,
    /// A value has too many nodes.
    Nodes,
    /// A key is too long.
    Key,
    /// A number is not finite.
    Number,
    /// A value is of the wrong type.
    Type,
}

impl BoundRule {
    /// The name of the rule in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Payload => "payload",
            Self::InlinePayload => "inlinePayload",
            Self::TotalPayload => "totalPayload",
            Self::Array => "array",
            Self::Entries => "entries",
            Self::Depth => "depth",
            Self::Nodes => "nodes",
            Self::Key => "key",
            Self::Number => "number",
            Self::Type => "type",
        }
    }

    /// What is counted, and in what unit.
    fn unit(self) -> &'static str {
        match self {
            Self::String => "UTF-16 units of a string",
            Self::Payload => "bytes of a payload",
            Self::InlinePayload => "bytes of inline resources",
            Self::TotalPayload => "bytes of all payloads",
            Self::Array => "items of an array",
            Self::Entries => "members of an object",
            Self::Depth => "containers around it",
            Self::Nodes => "nodes so far",
            Self::Key => "UTF-16 units of a key",
            Self::Number => "must be a finite number",
            Self::Type => "must be an object",
        }
    }
}

impl fmt::Display for BoundRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A limit by its name in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    name: &'static str,
    value: usize,
}

impl Limit {
    pub(super) const fn new(name: &'static str, value: usize) -> Self {
        Self { name, value }
    }

    /// The name of the limit, such as `MAX_STRING`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The largest count that is taken.
    pub fn value(&self) -> usize {
        self.value
    }
}

/// The first place of a value, in document order, where a bound is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    rule: BoundRule,
    path: String,
    pointer: String,
    entry: Option<usize>,
    counted: Option<(usize, Limit)>,
}

impl Violation {
    pub(super) fn counted(rule: BoundRule, observed: usize, limit: Limit) -> Self {
        Self {
            rule,
            path: String::new(),
            pointer: String::new(),
            entry: None,
            counted: Some((observed, limit)),
        }
    }

    pub(super) fn of_type() -> Self {
        Self::uncounted(BoundRule::Type)
    }

    pub(super) fn of_number() -> Self {
        Self::uncounted(BoundRule::Number)
    }

    fn uncounted(rule: BoundRule) -> Self {
        Self {
            rule,
            path: String::new(),
            pointer: String::new(),
            entry: None,
            counted: None,
        }
    }

    /// Names the member whose key is at fault by its position, so that the key is not shown.
    pub(super) fn of_entry(mut self, position: usize) -> Self {
        self.entry = Some(position);
        self
    }

    pub(super) fn at(mut self, path: String, pointer: String) -> Self {
        self.path = path;
        self.pointer = pointer;
        self
    }

    /// Where, as a JSON pointer such as `/resources/files/0/resource/content`.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The violation in words, without its place.
    pub fn words(&self) -> String {
        let unit = self.rule.unit();
        let mut words = match self.counted {
            Some((observed, Limit { name, value })) => {
                format!("{observed} {unit}, limit {value} ({name})")
            }
            None => unit.to_owned(),
        };
        if let Some(entry) = self.entry {
            words.push_str(&format!(", key {entry}"));
        }
        words
    }

    /// Which bound was passed.
    pub fn rule(&self) -> BoundRule {
        self.rule
    }

    /// Where, such as `resources.files[0].resource.content`; empty for the root. For an over-long key it is
    /// the object that holds the key.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The position of an over-long key among its siblings, from 0.
    pub fn entry(&self) -> Option<usize> {
        self.entry
    }

    /// What was counted, in the unit of the rule, where something was counted.
    pub fn observed(&self) -> Option<usize> {
        self.counted.map(|(observed, _)| observed)
    }

    /// The limit that was passed, where something was counted.
    pub fn limit(&self) -> Option<Limit> {
        self.counted.map(|(_, limit)| limit)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())?;
        match self.path.as_str() {
            "" => f.write_str(", at the root"),
            path => write!(f, ", at {path}"),
        }
    }
}

/// A value that passes a bound of the contract: code `JSON_BOUND_VIOLATION`.
///
/// It holds a label, a rule, a path and counts, and never any part of a value. A repeat of the call cannot
/// help: make the value smaller, or move large text to where payloads belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundError {
    label: Box<str>,
    violation: Box<Violation>,
}

impl BoundError {
    /// The code of every bound error.
    pub const CODE: &'static str = "JSON_BOUND_VIOLATION";

    pub(super) fn new(label: &str, violation: Violation) -> Self {
        Self {
            label: label.into(),
            violation: violation.into(),
        }
    }

    /// [`BoundError::CODE`].
    pub fn code(&self) -> &'static str {
        Self::CODE
    }

    /// Which field was refused.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What was passed, and where.
    pub fn violation(&self) -> &Violation {
        &self.violation
    }
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.violation.counted {
            Some(_) => "exceeds",
            None => "violates",
        };
        let why = format!(" {verdict} its bound: {}", self.violation);
        // The path is short already; only a label may be of any length.
        let room = MAX_MESSAGE - utf16_len(&why);
        f.write_str(&cut(&self.label, room))?;
        f.write_str(&why)
    }
}

impl std::error::Error for BoundError {}

/// `text` within `room` UTF-16 code units, its end replaced by `...` where it is longer.
fn cut(text: &str, room: usize) -> String {
    if utf16_len(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(3);
    let kept = text.chars().take_while(|c| {
        let fits = c.len_utf16() <= left;
        left = left.saturating_sub(c.len_utf16());
        fits
    });
    kept.chain("...".chars()).collect()
}
