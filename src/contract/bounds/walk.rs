//! The walk over a JSON tree that finds the first bound it passes.
//!
//! It keeps its own stack, at most [`MAX_DEPTH`] high, and looks at nothing below the first violation.

use serde_json::Number;

use super::super::canonical;
use super::super::document::{Node, Tree};
use super::super::limits::{
    MAX_ARRAY, MAX_DEPTH, MAX_FILE_PAYLOAD, MAX_IDENTIFIER, MAX_INLINE_TOTAL, MAX_JSON_BYTES,
    MAX_MAP, MAX_NODES, MAX_PAYLOAD_TOTAL, MAX_STRING,
};
use super::super::text::{exceeds_utf16, plain_prefix, utf16_len};
use super::error::{BoundError, BoundRule, Limit, Violation};
use super::path::{self, Place};
use super::profile::{Payload, Scope};

/// Which strings are bounded one by one.
pub(super) enum Strings {
    Bounded,
    Any,
}

/// What one walk enforces beside the limits that all share.
pub(super) struct Rules<'w> {
    pub(super) strings: Strings,
    /// Two where a container is counted when it is entered and when it is left.
    pub(super) container_nodes: usize,
    /// The most bytes of compact JSON text, where that is bounded.
    pub(super) max_bytes: Option<usize>,
    /// Where the root stands to a profile.
    pub(super) scope: Scope<'w>,
    /// What stands around the root and counts with it.
    pub(super) around: Around,
}

/// What is counted before the root: it is part of a larger value, whose rest is known to keep its bounds.
#[derive(Clone, Copy, Default)]
pub(super) struct Around {
    /// Containers around the root.
    pub(super) levels: usize,
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

impl Rules<'_> {
    /// Plain bounded JSON.
    pub(super) const METADATA: Self = Self {
        strings: Strings::Bounded,
        container_nodes: 2,
        max_bytes: None,
        scope: Scope::Outside,
        around: Around {
            levels: 0,
            nodes: 0,
            bytes: 0,
        },
    };

    /// Event content.
    pub(super) const CONTENT: Self = Self {
        strings: Strings::Any,
        max_bytes: Some(MAX_JSON_BYTES),
        ..Self::METADATA
    };
}

/// Checks `root` and labels the error.
pub(super) fn check<T: Tree>(label: &str, root: &T, rules: &Rules<'_>) -> Result<(), BoundError> {
    run(label, &Start::<T>::Root(root), rules)
}

/// Checks an object whose members are `members`, and labels the error.
pub(super) fn check_object<'a, T: Tree>(
    label: &str,
    members: T::Members<'a>,
    rules: &Rules<'_>,
) -> Result<(), BoundError> {
    run(label, &Start::<T>::Members(members), rules)
}

/// What a walk begins with.
enum Start<'a, T: Tree> {
    Root(&'a T),
    Members(T::Members<'a>),
}

/// Most values are far smaller than their text may be, so that a first walk measures by what a text has at most; where
/// that is too much, a second one measures to the byte.
fn run<T: Tree>(label: &str, start: &Start<'_, T>, rules: &Rules<'_>) -> Result<(), BoundError> {
    let mut walk = Walk::new(rules, Measure::AtMost);
    let mut found = walk.run(start);
    if let (Some(_), Err(violation)) = (rules.max_bytes, &found)
        && violation.rule() == BoundRule::Payload
    {
        walk = Walk::new(rules, Measure::Exact);
        found = walk.run(start);
    }
    found.map_err(|violation| walk.error(label, violation))
}

/// How the JSON text of a value is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// By what it has at most: no byte of a string takes more than six, no number more than [`MAX_NUMBER`].
    AtMost,
    /// To the byte.
    Exact,
}

/// The longest text of a number: sign, 17 digits, point, exponent.
const MAX_NUMBER: usize = 25;

/// How deep most values are: room for as many open containers is made at once.
const USUAL_DEPTH: usize = 6;

/// The children of a container that were not visited yet.
enum Children<'a, T: Tree> {
    Items(std::iter::Enumerate<std::slice::Iter<'a, T>>),
    Members(std::iter::Enumerate<T::Members<'a>>),
}

/// A container on the way to the node that is visited.
struct Open<'a, 'w, T: Tree> {
    children: Children<'a, T>,
    /// Which child is visited; none while the container itself is.
    at: Option<Place<'a>>,
    scope: Scope<'w>,
}

impl<'a, T: Tree> Open<'a, '_, T> {
    /// The next child: how many were before it, and where it is.
    fn next(&mut self) -> Option<(usize, Place<'a>, &'a T)> {
        match &mut self.children {
            Children::Items(items) => items
                .next()
                .map(|(index, item)| (index, Place::Index(index), item)),
            Children::Members(members) => members
                .next()
                .map(|(position, (key, value))| (position, Place::Key(key), value)),
        }
    }
}

struct Walk<'a, 'w, T: Tree> {
    rules: &'w Rules<'w>,
    measure: Measure,
    open: Vec<Open<'a, 'w, T>>,
    nodes: usize,
    bytes: usize,
    inline: usize,
    payload: usize,
}

impl<'a, 'w, T: Tree> Walk<'a, 'w, T> {
    fn new(rules: &'w Rules<'w>, measure: Measure) -> Self {
        Self {
            rules,
            measure,
            open: Vec::with_capacity(USUAL_DEPTH),
            nodes: rules.around.nodes,
            bytes: rules.around.bytes,
            inline: 0,
            payload: 0,
        }
    }

    fn error(&self, label: &str, violation: Violation) -> BoundError {
        let places = || self.open.iter().filter_map(|open| open.at);
        let violation = violation.at(path::spell(places()), path::pointer(places()));
        BoundError::new(label, violation)
    }

    /// Visits every node in order. Where it stops, `open` leads to the node at fault.
    fn run(&mut self, start: &Start<'a, T>) -> Result<(), Violation> {
        match start {
            Start::Root(root) => self.visit(root, self.rules.scope)?,
            Start::Members(members) => {
                self.count_nodes(1)?;
                self.object(members.clone(), self.rules.scope)?;
            }
        }
        while let Some(container) = self.open.last_mut() {
            match container.next() {
                Some((position, place, child)) => {
                    let scope = container.scope.child(place);
                    // An over-long key is not shown: until it has passed, the place is the object.
                    container.at = None;
                    key_length(place, position)?;
                    container.at = Some(place);
                    if let Place::Key(key) = place {
                        self.count_bytes(most(key) + COLON, || json_length(key) + COLON)?;
                    }
                    self.visit(child, scope)?;
                }
                None => {
                    self.open.pop();
                    self.count_nodes(self.rules.container_nodes - 1)?;
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, value: &'a T, scope: Scope<'w>) -> Result<(), Violation> {
        self.count_nodes(1)?;
        match value.node() {
            Node::Word(length) => self.count_bytes(length, || length),
            Node::Number(number) => self.number(number),
            Node::String(text) => {
                match scope.payload() {
                    Some(payload) => self.payload(payload, text.len())?,
                    None => self.string(text)?,
                }
                self.count_bytes(most(text), || json_length(text))
            }
            Node::Array(items) => {
                self.deeper()?;
                limit(BoundRule::Array, items.len(), ("MAX_ARRAY", MAX_ARRAY))?;
                let punctuation = punctuation(items.len());
                self.count_bytes(punctuation, || punctuation)?;
                self.enter(Children::Items(items.iter().enumerate()), scope);
                Ok(())
            }
            Node::Object(members) => self.object(members, scope),
        }
    }

    fn object(&mut self, members: T::Members<'a>, scope: Scope<'w>) -> Result<(), Violation> {
        self.deeper()?;
        limit(BoundRule::Entries, members.len(), ("MAX_MAP", MAX_MAP))?;
        let punctuation = punctuation(members.len());
        self.count_bytes(punctuation, || punctuation)?;
        self.enter(Children::Members(members.enumerate()), scope);
        Ok(())
    }

    fn enter(&mut self, children: Children<'a, T>, scope: Scope<'w>) {
        self.open.push(Open {
            children,
            at: None,
            scope,
        });
    }

    fn deeper(&self) -> Result<(), Violation> {
        let depth = self.rules.around.levels + self.open.len();
        if depth < MAX_DEPTH {
            return Ok(());
        }
        // The depth of a container is the number of those around it, so the limit itself is one too many.
        Err(Violation::counted(
            BoundRule::Depth,
            depth,
            Limit::new("MAX_DEPTH", MAX_DEPTH),
        ))
    }

    fn string(&self, text: &str) -> Result<(), Violation> {
        match self.rules.strings {
            Strings::Bounded if exceeds_utf16(text, MAX_STRING) => limit(
                BoundRule::String,
                utf16_len(text),
                ("MAX_STRING", MAX_STRING),
            ),
            _ => Ok(()),
        }
    }

    fn number(&mut self, number: &Number) -> Result<(), Violation> {
        if number.as_f64().is_none_or(|value| !value.is_finite()) {
            return Err(Violation::of_number());
        }
        self.count_bytes(MAX_NUMBER, || {
            let mut text = Vec::new();
            canonical::number(number, &mut text);
            text.len()
        })
    }

    /// Counts a payload of `bytes`; sums are refused at the payload that crosses them.
    fn payload(&mut self, payload: Payload, bytes: usize) -> Result<(), Violation> {
        limit(
            BoundRule::Payload,
            bytes,
            ("MAX_FILE_PAYLOAD", MAX_FILE_PAYLOAD),
        )?;
        if payload == Payload::Inline {
            self.inline += bytes;
            limit(
                BoundRule::InlinePayload,
                self.inline,
                ("MAX_INLINE_TOTAL", MAX_INLINE_TOTAL),
            )?;
        }
        self.payload += bytes;
        limit(
            BoundRule::TotalPayload,
            self.payload,
            ("MAX_PAYLOAD_TOTAL", MAX_PAYLOAD_TOTAL),
        )
    }

    fn count_nodes(&mut self, nodes: usize) -> Result<(), Violation> {
        self.nodes += nodes;
        limit(BoundRule::Nodes, self.nodes, ("MAX_NODES", MAX_NODES))
    }

    /// Adds to the size of the JSON text, measured only where that is bounded.
    fn count_bytes(&mut self, most: usize, exact: impl FnOnce() -> usize) -> Result<(), Violation> {
        let Some(max_bytes) = self.rules.max_bytes else {
            return Ok(());
        };
        self.bytes += match self.measure {
            Measure::AtMost => most,
            Measure::Exact => exact(),
        };
        limit(
            BoundRule::Payload,
            self.bytes,
            ("MAX_JSON_BYTES", max_bytes),
        )
    }
}

/// Checks the key of the member at `position`.
fn key_length(place: Place<'_>, position: usize) -> Result<(), Violation> {
    match place {
        Place::Key(key) if exceeds_utf16(key, MAX_IDENTIFIER) => {
            let limit = ("MAX_IDENTIFIER", MAX_IDENTIFIER);
            self::limit(BoundRule::Key, utf16_len(key), limit)
                .map_err(|violation| violation.of_entry(position))
        }
        _ => Ok(()),
    }
}

fn limit(rule: BoundRule, observed: usize, limit: (&'static str, usize)) -> Result<(), Violation> {
    let limit = Limit::new(limit.0, limit.1);
    if observed <= limit.value() {
        return Ok(());
    }
    Err(Violation::counted(rule, observed, limit))
}

/// The colon behind a key.
const COLON: usize = 1;

/// The brackets of a container and the commas between its children.
fn punctuation(children: usize) -> usize {
    2 + children.saturating_sub(1)
}

/// What the JSON text of `text` has at most: each byte as `\u00xx`.
pub(super) fn most(text: &str) -> usize {
    2 + 6 * text.len()
}

/// The length in bytes of `text` as JSON text, its quotes included.
pub(super) fn json_length(text: &str) -> usize {
    let mut length = 2 + text.len();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest[plain_prefix(rest)..].split_first() {
        length += match byte {
            b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 1,
            _ => 5,
        };
        rest = behind;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn json_length_is_that_of_the_text(text in "[\\x00-\\x7fé研😀]{0,60}") {
            prop_assert_eq!(json_length(&text), serde_json::to_string(&text).unwrap().len());
        }
    }
}
