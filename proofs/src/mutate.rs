//! Small damage to documents, aimed at what the schema says of the damaged place.

use serde_json::{Map, Number, Value, json};

use crate::dice::Dice;
use crate::generate::Generator;
use crate::schemas::texts;
use crate::sites::{self, Site};
use crate::text;

/// Names that an object may not know.
const STRANGERS: &[&str] = &[
    "extra",
    "Extra",
    "x-extra",
    "",
    " ",
    "__proto__",
    "toString",
    "é",
    "😀",
    "a/b",
    "a~b",
    "null",
];

/// The longest text, list or map that is made to pass a limit.
const MAX_MADE: u64 = 20_000;

impl<'a> Generator<'a> {
    /// Damages `value` in one place; says how, for the message of a test that fails.
    pub fn damage(&mut self, schema: &'a Value, value: &mut Value) -> &'static str {
        once(self, schema, value)
    }
}

fn once<'a>(maker: &mut Generator<'a>, schema: &'a Value, value: &mut Value) -> &'static str {
    let sites = sites::all(maker.schemas, schema, value);
    let site = maker.dice.pick(&sites).clone();
    let other = maker.dice.pick(&sites).path.clone();
    match maker.dice.below(24) {
        0 => {
            let copy = sites::at(value, &other).clone();
            *sites::at_mut(value, &site.path) = copy;
            "another place's value"
        }
        1 => {
            *sites::at_mut(value, &site.path) = kind(&mut maker.dice);
            "another type"
        }
        2 => {
            *sites::at_mut(value, &site.path) = Value::Null;
            "null"
        }
        3 => {
            *sites::at_mut(value, &site.path) = maker.json(3);
            "any JSON"
        }
        4 => {
            let depth = maker.dice.between(1, 20);
            wrap(sites::at_mut(value, &site.path), depth);
            "deeper"
        }
        _ => aimed(sites::at_mut(value, &site.path), &site, maker),
    }
}

/// Damage that fits what stands in the place.
fn aimed<'a>(value: &mut Value, site: &Site<'a>, maker: &mut Generator<'a>) -> &'static str {
    let schema = site.schema.unwrap_or(&Value::Null);
    let dice = &mut maker.dice;
    match value {
        Value::Null | Value::Bool(_) => {
            *value = (*value != Value::Bool(true)).into();
            "a flag turned"
        }
        Value::Number(number) => {
            *number = edge(schema, dice);
            "a number at an edge"
        }
        Value::String(text) => string(text, schema, dice),
        Value::Array(items) => array(items, schema, maker),
        Value::Object(members) => object(members, schema, maker),
    }
}

fn kind(dice: &mut Dice) -> Value {
    let choices = [
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!("text"),
        json!(""),
        json!("1"),
        json!([]),
        json!({}),
        json!(["text"]),
        json!({"a": 1}),
    ];
    dice.pick(&choices).clone()
}

fn wrap(value: &mut Value, depth: usize) {
    for level in 0..depth {
        let inner = value.take();
        *value = match level % 2 {
            0 => Value::Array(vec![inner]),
            _ => [("in".to_owned(), inner)].into_iter().collect(),
        };
    }
}

/// A number at, just inside or just outside a bound of `schema` or of JSON itself.
fn edge(schema: &Value, dice: &mut Dice) -> Number {
    const SAFE: i64 = (1 << 53) - 1;
    let mut choices: Vec<Number> = [
        0,
        1,
        -1,
        2,
        255,
        256,
        65_536,
        SAFE,
        SAFE + 1,
        SAFE + 2,
        -SAFE,
        -SAFE - 1,
        i64::MAX,
    ]
    .map(Number::from)
    .to_vec();
    choices.push(u64::MAX.into());
    let mut doubles = vec![0.5, -0.5, 1.0, 1e15, 1e300, 1.7e308, 5e-324, 0.1];
    for key in ["minimum", "maximum", "exclusiveMinimum"] {
        let Some(bound) = schema.get(key) else {
            continue;
        };
        if let Some(bound) = bound.as_i64() {
            choices.extend([bound - 1, bound, bound.saturating_add(1)].map(Number::from));
        }
        if let Some(bound) = bound.as_f64() {
            doubles.extend([
                bound,
                bound - 0.5,
                bound + 0.5,
                bound.next_up(),
                bound.next_down(),
            ]);
        }
    }
    choices.extend(doubles.into_iter().filter_map(Number::from_f64));
    dice.pick(&choices).clone()
}

fn string(text: &mut String, schema: &Value, dice: &mut Dice) -> &'static str {
    let units = schema["x-units"].as_str().unwrap_or("characters");
    let choices = texts(&schema["enum"]);
    match dice.below(8) {
        0 => {
            *text = String::new();
            "an empty text"
        }
        1 => {
            let space = *dice.pick(&[
                " ", "\t", "\n", "\u{a0}", "\u{feff}", "\u{3000}", "\u{85}", "\u{200b}",
            ]);
            match dice.below(3) {
                0 => text.insert_str(0, space),
                1 => text.push_str(space),
                _ => *text = space.to_owned(),
            }
            "white space at an end"
        }
        2 if !choices.is_empty() => {
            *text = (*dice.pick(&choices)).to_owned();
            "another word of the list"
        }
        3 => {
            text.push(*dice.pick(&['x', 'X', '0', '\u{0}', '😀', 'é', '/', '.', '@', '{', '%']));
            "a text with an end"
        }
        4 => {
            *text = match dice.below(3) {
                0 => text.to_uppercase(),
                1 => text.chars().rev().collect(),
                _ => text.chars().skip(1).collect(),
            };
            "a text turned"
        }
        _ => {
            let bounds = ["minLength", "maxLength"].map(|key| schema[key].as_u64());
            let bounds: Vec<u64> = bounds
                .into_iter()
                .flatten()
                .filter(|it| *it <= MAX_MADE)
                .collect();
            let bound = if bounds.is_empty() {
                3
            } else {
                *dice.pick(&bounds)
            };
            let length = (bound + dice.below(3) as u64).saturating_sub(1) as usize;
            // The same count in other units, so that the units themselves are tried.
            let counted = *dice.pick(&[units, units, "characters", "utf16", "utf8"]);
            *text = match dice.below(3) {
                0 => "😀".repeat(length / text::measure("😀", counted)),
                1 => "w".repeat(length),
                _ => text::of_length(dice, length, counted),
            };
            "a text of a length at an edge"
        }
    }
}

fn array<'a>(items: &mut Vec<Value>, schema: &'a Value, maker: &mut Generator<'a>) -> &'static str {
    let max = schema["maxItems"].as_u64().filter(|max| *max <= MAX_MADE);
    match maker.dice.below(6) {
        0 => {
            items.clear();
            "an empty list"
        }
        1 if !items.is_empty() => {
            let copy = maker.dice.pick(items).clone();
            items.push(copy);
            "an item twice"
        }
        2 if !items.is_empty() => {
            let at = maker.dice.below(items.len());
            items.remove(at);
            "an item less"
        }
        3 if max.is_some() => {
            let most = max.unwrap_or_default() as usize + maker.dice.below(2);
            maker.fill(items, schema, most);
            "a list at its longest"
        }
        4 => {
            items.reverse();
            "a list turned"
        }
        _ => {
            items.push(maker.json(2));
            "an item more"
        }
    }
}

fn object(
    members: &mut Map<String, Value>,
    schema: &Value,
    maker: &mut Generator<'_>,
) -> &'static str {
    let names: Vec<String> = members.keys().cloned().collect();
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    match maker.dice.below(6) {
        0 | 1 if !names.is_empty() => {
            members.remove(maker.dice.pick(&names));
            "a member less"
        }
        2 if !names.is_empty() => {
            let old = maker.dice.pick(&names).clone();
            let new = match maker.dice.below(3) {
                0 => old.to_uppercase(),
                1 => (*maker.dice.pick(STRANGERS)).to_owned(),
                _ => format!("{old}s"),
            };
            let value = members.remove(&old).unwrap_or_default();
            members.insert(new, value);
            "a member renamed"
        }
        3 if !known.is_empty() => {
            let name = (*maker.dice.pick(&known)).to_owned();
            let value = maker.json(2);
            members.insert(name, value);
            "a known member with any JSON"
        }
        4 if schema.get("maxProperties").is_some() => {
            let max = schema["maxProperties"].as_u64().unwrap_or(0).min(MAX_MADE) as usize;
            let value = members.values().next().cloned().unwrap_or_default();
            for index in 0..=max {
                members.insert(format!("K{index}"), value.clone());
            }
            "a map at its largest"
        }
        _ => {
            let name = match maker.dice.below(3) {
                0 => text::key(&mut maker.dice),
                1 => "k".repeat(maker.dice.between(510, 514)),
                _ => (*maker.dice.pick(STRANGERS)).to_owned(),
            };
            let value = maker.json(2);
            members.insert(name, value);
            "a member more"
        }
    }
}
