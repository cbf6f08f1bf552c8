//! JSON that remembers the order of its members, and the view that bounds take of any JSON tree.

use serde_json::{Map, Number, Value};

/// A JSON value whose members keep the order of the text that they were read from.
///
/// [`Value`] sorts members unless some crate of the build asks it not to. That is right for digests and
/// wrong for "the first violation in document order", so text that is to be bounded is read into this
/// type by [`strict::parse_document`](super::strict::parse_document). Keys are unique.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Document>),
    /// An object, its members in the order of the text.
    Object(Vec<(String, Document)>),
}

impl Document {
    /// The same value without the order of its members.
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(value) => Value::Number(value),
            Self::String(value) => Value::String(value),
            Self::Array(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Object(members) => members
                .into_iter()
                .map(|(key, value)| (key, value.into_value()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// The member `key` of an object.
    pub fn get(&self, key: &str) -> Option<&Document> {
        match self {
            Self::Object(members) => members
                .iter()
                .find_map(|(name, value)| (name == key).then_some(value)),
            _ => None,
        }
    }
}

/// One node of a JSON tree, seen without its kind of storage.
#[derive(Debug)]
pub enum Node<'a, T: Tree> {
    /// `null`, `true` or `false`, by the length of its text in bytes.
    Word(usize),
    /// A number.
    Number(&'a Number),
    /// A string.
    String(&'a str),
    /// An array.
    Array(&'a [T]),
    /// An object.
    Object(T::Members<'a>),
}

/// A JSON tree: [`Value`] or [`Document`].
pub trait Tree: Sized + sealed::Sealed {
    /// The members of an object in the order of the tree.
    type Members<'a>: ExactSizeIterator<Item = (&'a str, &'a Self)> + Clone + std::fmt::Debug
    where
        Self: 'a;

    /// This node.
    fn node(&self) -> Node<'_, Self>;

    /// This node where it is `true` or `false`.
    fn as_bool(&self) -> Option<bool>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for serde_json::Value {}
    impl Sealed for super::Document {}
}

/// The members of a [`Document`] object.
#[derive(Debug, Clone)]
pub struct DocumentMembers<'a>(std::slice::Iter<'a, (String, Document)>);

impl<'a> Iterator for DocumentMembers<'a> {
    type Item = (&'a str, &'a Document);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for DocumentMembers<'_> {}

/// The members of a [`Value`] object.
#[derive(Debug, Clone)]
pub struct ValueMembers<'a>(serde_json::map::Iter<'a>);

impl<'a> ValueMembers<'a> {
    /// The members of `object`.
    pub fn of(object: &'a Map<String, Value>) -> Self {
        Self(object.iter())
    }
}

impl<'a> Iterator for ValueMembers<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ValueMembers<'_> {}

impl Tree for Document {
    type Members<'a> = DocumentMembers<'a>;

    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Null | Self::Bool(true) => Node::Word(4),
            Self::Bool(false) => Node::Word(5),
            Self::Number(number) => Node::Number(number),
            Self::String(text) => Node::String(text),
            Self::Array(items) => Node::Array(items),
            Self::Object(members) => Node::Object(DocumentMembers(members.iter())),
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl Tree for Value {
    type Members<'a> = ValueMembers<'a>;

    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Null | Self::Bool(true) => Node::Word(4),
            Self::Bool(false) => Node::Word(5),
            Self::Number(number) => Node::Number(number),
            Self::String(text) => Node::String(text),
            Self::Array(items) => Node::Array(items),
            Self::Object(members) => Node::Object(ValueMembers::of(members)),
        }
    }

    fn as_bool(&self) -> Option<bool> {
        Value::as_bool(self)
    }
}
