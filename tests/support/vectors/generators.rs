//! The generators of the vectors: short spellings of large or odd values.
//!
//! An object is a generator when its one key begins with `$`. Arguments are expanded before the generator
//! is, what a generator makes is taken as it is, and a generator that its dialect does not know fails its
//! case. A family of topics shares a dialect: the same word may mean another thing in the next family.

use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::strict;

use super::Wrong;

/// The most items, members, levels or repetitions that one generator makes.
const MAX_COUNT: usize = 64 << 20;

/// Which generators a topic knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `core-*`.
    Core,
    /// `provider-runtime-*`.
    ProviderRuntime,
    /// A topic of another family: the generators that every dialect knows.
    Common,
}

impl Dialect {
    /// The dialect of the topic `name`.
    pub fn of(name: &str) -> Self {
        const PREFIXES: [(&str, Dialect); 2] = [
            ("core-", Dialect::Core),
            ("provider-runtime-", Dialect::ProviderRuntime),
        ];
        PREFIXES
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
            .map_or(Self::Common, |(_, dialect)| *dialect)
    }
}

/// Replaces every generator in `value` by the value that it stands for.
pub fn expand(dialect: Dialect, value: &Document) -> Result<Document, Wrong> {
    match value {
        Document::Array(items) => items
            .iter()
            .map(|item| expand(dialect, item))
            .collect::<Result<_, _>>()
            .map(Document::Array),
        Document::Object(members) => match members.as_slice() {
            [(name, arguments)] if name.starts_with('$') => {
                generate(dialect, name, &expand(dialect, arguments)?)
            }
            members => members
                .iter()
                .map(|(key, value)| Ok((key.clone(), expand(dialect, value)?)))
                .collect::<Result<_, _>>()
                .map(Document::Object),
        },
        scalar => Ok(scalar.clone()),
    }
}

fn generate(dialect: Dialect, name: &str, arguments: &Document) -> Result<Document, Wrong> {
    let family = match dialect {
        Dialect::Core => core(name, arguments)?,
        Dialect::ProviderRuntime => provider_runtime(name, arguments)?,
        Dialect::Common => Made::Unknown,
    };
    let made = match family {
        Made::Unknown => common(name, arguments)?,
        known => known,
    };
    match made {
        Made::Value(value) => Ok(value),
        Made::Malformed => Err(Wrong(format!("`{name}` has other arguments than it takes"))),
        Made::Unknown => Err(Wrong(format!("unknown generator `{name}`"))),
    }
}

/// What a dialect makes of a generator.
enum Made {
    Value(Document),
    /// The dialect knows the generator, but not with these arguments.
    Malformed,
    Unknown,
}

impl From<Option<Document>> for Made {
    fn from(value: Option<Document>) -> Self {
        value.map_or(Self::Malformed, Self::Value)
    }
}

/// The generators that mean the same in every dialect.
fn common(name: &str, arguments: &Document) -> Result<Made, Wrong> {
    use Document::String as Text;
    Ok(match (name, listed(arguments)) {
        ("$repeat", Some([Text(text), n])) => Made::Value(Text(text.repeat(count(n)?))),
        ("$array", Some([item, n])) => Made::Value(Document::Array(vec![item.clone(); count(n)?])),
        ("$concat", Some(_)) => joined(arguments).into(),
        ("$repeat" | "$array" | "$concat", _) => Made::Malformed,
        _ => Made::Unknown,
    })
}

fn core(name: &str, arguments: &Document) -> Result<Made, Wrong> {
    use Document::{Object, String as Text};
    if let ("$json", Text(text)) = (name, arguments) {
        return strict::parse_document(text.as_bytes())
            .map(Made::Value)
            .map_err(|refused| Wrong(format!("`$json` text: {refused}")));
    }
    Ok(match (name, listed(arguments)) {
        ("$seq", Some([Text(prefix), n])) => Made::Value(sequence(prefix, count(n)?)),
        ("$map", Some([Text(prefix), n, value])) => Made::Value(map(prefix, count(n)?, value)),
        ("$longkey", Some([Text(text), n, value])) => {
            Made::Value(Object(vec![(text.repeat(count(n)?), value.clone())]))
        }
        ("$nest", Some([Text(key), n, value])) => {
            Made::Value((0..count(n)?).fold(value.clone(), |inner, _| wrap(key, inner)))
        }
        ("$merge", Some(objects)) => merge(objects).into(),
        ("$cat", Some(_)) => joined(arguments).into(),
        ("$seq" | "$map" | "$longkey" | "$nest" | "$merge" | "$cat" | "$json", _) => {
            Made::Malformed
        }
        _ => Made::Unknown,
    })
}

fn provider_runtime(name: &str, arguments: &Document) -> Result<Made, Wrong> {
    use Document::{Number, String as Text};
    Ok(match (name, arguments, listed(arguments)) {
        ("$map", _, Some([Text(prefix), n, value])) => Made::Value(map(prefix, count(n)?, value)),
        ("$nest", levels @ Number(_), _) => Made::Value(
            (0..count(levels)?).fold(Text("leaf".to_owned()), |inner, _| wrap("", inner)),
        ),
        ("$map" | "$nest", ..) => Made::Malformed,
        _ => Made::Unknown,
    })
}

/// The arguments of a generator that takes a list.
fn listed(arguments: &Document) -> Option<&[Document]> {
    match arguments {
        Document::Array(arguments) => Some(arguments),
        _ => None,
    }
}

fn joined(arguments: &Document) -> Option<Document> {
    let texts = listed(arguments)?.iter().map(|text| match text {
        Document::String(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Option<String>>().map(Document::String)
}

fn sequence(prefix: &str, n: usize) -> Document {
    let texts = (0..n).map(|n| Document::String(format!("{prefix}{n}")));
    Document::Array(texts.collect())
}

fn map(prefix: &str, n: usize, value: &Document) -> Document {
    let members = (0..n).map(|n| (format!("{prefix}{n}"), value.clone()));
    Document::Object(members.collect())
}

fn count(value: &Document) -> Result<usize, Wrong> {
    match value {
        Document::Number(number) => number
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count <= MAX_COUNT)
            .ok_or_else(|| Wrong("a generator counts to 2^26 at most".to_owned())),
        _ => Err(Wrong("a generator counts by a number".to_owned())),
    }
}

fn wrap(key: &str, inner: Document) -> Document {
    match key {
        "" => Document::Array(vec![inner]),
        key => Document::Object(vec![(key.to_owned(), inner)]),
    }
}

/// A shallow merge: a later member takes the place of an earlier one.
fn merge(objects: &[Document]) -> Option<Document> {
    let mut merged: Vec<(String, Document)> = Vec::new();
    for object in objects {
        let Document::Object(members) = object else {
            return None;
        };
        for (key, value) in members {
            match merged.iter_mut().find(|(name, _)| name == key) {
                Some((_, earlier)) => *earlier = value.clone(),
                None => merged.push((key.clone(), value.clone())),
            }
        }
    }
    Some(Document::Object(merged))
}
