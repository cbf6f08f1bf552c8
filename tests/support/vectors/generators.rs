//! The generators of the core dialect: short spellings of large or odd values.
//!
//! An object is a generator when its one key begins with `$`. Arguments are expanded before the generator
//! is, what a generator makes is taken as it is, and a generator without a meaning fails its case.

use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::strict;

use super::Wrong;

/// The most items, members, levels or repetitions that one generator makes.
const MAX_COUNT: usize = 64 << 20;

/// Replaces every generator in `value` by the value that it stands for.
pub fn expand(value: &Document) -> Result<Document, Wrong> {
    match value {
        Document::Array(items) => items
            .iter()
            .map(expand)
            .collect::<Result<_, _>>()
            .map(Document::Array),
        Document::Object(members) => match members.as_slice() {
            [(name, arguments)] if name.starts_with('$') => generate(name, &expand(arguments)?),
            members => members
                .iter()
                .map(|(key, value)| Ok((key.clone(), expand(value)?)))
                .collect::<Result<_, _>>()
                .map(Document::Object),
        },
        scalar => Ok(scalar.clone()),
    }
}

fn generate(name: &str, arguments: &Document) -> Result<Document, Wrong> {
    use Document::{Array, Object, String as Text};
    let malformed = || Wrong(format!("`{name}` has other arguments than it takes"));
    if let ("$json", Text(text)) = (name, arguments) {
        return strict::parse_document(text.as_bytes())
            .map_err(|refused| Wrong(format!("`$json` text: {refused}")));
    }
    let Array(arguments) = arguments else {
        return Err(if is_known(name) {
            malformed()
        } else {
            unknown(name)
        });
    };
    match (name, arguments.as_slice()) {
        ("$repeat", [Text(text), n]) => Ok(Text(text.repeat(count(n)?))),
        ("$array", [item, n]) => Ok(Array(vec![item.clone(); count(n)?])),
        ("$seq", [Text(prefix), n]) => Ok(Array(
            (0..count(n)?)
                .map(|n| Text(format!("{prefix}{n}")))
                .collect(),
        )),
        ("$map", [Text(prefix), n, value]) => Ok(Object(
            (0..count(n)?)
                .map(|n| (format!("{prefix}{n}"), value.clone()))
                .collect(),
        )),
        ("$longkey", [Text(text), n, value]) => {
            Ok(Object(vec![(text.repeat(count(n)?), value.clone())]))
        }
        ("$nest", [Text(key), n, value]) => {
            Ok((0..count(n)?).fold(value.clone(), |inner, _| wrap(key, inner)))
        }
        ("$merge", objects) => merge(objects).ok_or_else(malformed),
        ("$cat", texts) => texts
            .iter()
            .map(|text| match text {
                Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect::<Option<String>>()
            .map(Text)
            .ok_or_else(malformed),
        (name, _) if is_known(name) => Err(malformed()),
        (name, _) => Err(unknown(name)),
    }
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "$repeat" | "$array" | "$seq" | "$map" | "$longkey" | "$nest" | "$merge" | "$cat" | "$json"
    )
}

fn unknown(name: &str) -> Wrong {
    Wrong(format!("unknown generator `{name}`"))
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
