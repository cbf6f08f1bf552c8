//! What strict JSON is read into: a value that sorts its members, or a document that keeps their order.

use std::collections::HashSet;

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::super::document::Document;
use super::super::text::utf16_len;

/// How much of a key a path shows, in UTF-16 code units.
const KEY_IN_PATH: usize = 48;

/// From this many members on, keys are found by their hash.
const FEW_MEMBERS: usize = 16;

pub(super) enum Word {
    Null,
    True,
    False,
}

/// A tree that the parser can make.
pub(super) trait Build: Sized {
    type Members: Default;

    fn word(word: Word) -> Self;
    fn number(number: Number) -> Self;
    fn string(text: String) -> Self;
    fn array(items: Vec<Self>) -> Self;
    fn object(members: Self::Members) -> Self;

    /// Adds a member, or gives the key back when it is there already.
    fn insert(members: &mut Self::Members, key: String, value: Self) -> Result<(), String>;
}

/// A container that is being read. An object holds the key of the member that comes next.
pub(super) enum Open<T: Build> {
    Array(Vec<T>),
    Object(T::Members, String),
}

/// The JSON pointer of the place that is being read. Long keys are cut, controls in them replaced.
pub(super) fn path_of<T: Build>(open: &[Open<T>]) -> String {
    let mut path = String::new();
    for container in open {
        path.push('/');
        match container {
            Open::Array(items) => path.push_str(&items.len().to_string()),
            Open::Object(_, key) => push_key(&mut path, key),
        }
    }
    path
}

fn push_key(path: &mut String, key: &str) {
    let mut units = 0;
    for c in key.chars() {
        units += c.len_utf16();
        if units > KEY_IN_PATH {
            path.push_str("...");
            return;
        }
        match c {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            c if c.is_control() => path.push('?'),
            c => path.push(c),
        }
    }
    debug_assert!(utf16_len(key) <= KEY_IN_PATH);
}

impl Build for Value {
    type Members = Map<String, Value>;

    fn word(word: Word) -> Self {
        match word {
            Word::Null => Self::Null,
            Word::True => Self::Bool(true),
            Word::False => Self::Bool(false),
        }
    }

    fn number(number: Number) -> Self {
        Self::Number(number)
    }

    fn string(text: String) -> Self {
        Self::String(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(members: Self::Members) -> Self {
        Self::Object(members)
    }

    fn insert(members: &mut Self::Members, key: String, value: Self) -> Result<(), String> {
        match members.entry(key) {
            Entry::Occupied(entry) => Err(entry.key().clone()),
            Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
        }
    }
}

/// Members in order, with an index of their keys once they are many.
#[derive(Default)]
pub(super) struct OrderedMembers {
    list: Vec<(String, Document)>,
    keys: HashSet<String>,
}

impl OrderedMembers {
    fn contains(&mut self, key: &str) -> bool {
        if self.list.len() < FEW_MEMBERS {
            return self.list.iter().any(|(name, _)| name == key);
        }
        if self.keys.is_empty() {
            self.keys = self.list.iter().map(|(name, _)| name.clone()).collect();
        }
        !self.keys.insert(key.to_owned())
    }
}

impl Build for Document {
    type Members = OrderedMembers;

    fn word(word: Word) -> Self {
        match word {
            Word::Null => Self::Null,
            Word::True => Self::Bool(true),
            Word::False => Self::Bool(false),
        }
    }

    fn number(number: Number) -> Self {
        Self::Number(number)
    }

    fn string(text: String) -> Self {
        Self::String(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(members: Self::Members) -> Self {
        Self::Object(members.list)
    }

    fn insert(members: &mut Self::Members, key: String, value: Self) -> Result<(), String> {
        if members.contains(&key) {
            return Err(key);
        }
        members.list.push((key, value));
        Ok(())
    }
}
