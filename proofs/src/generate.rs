//! Valid documents, made from the schema alone: every bound kept by construction, a rule that occurs once by trial.

use std::collections::{BTreeMap, BTreeSet};

use proptest::strategy::SBoxedStrategy;
use serde_json::{Map, Value, json};
use tangle_sandbox::contract::{checker::Node, checks, strict};

use crate::dice::Dice;
use crate::samples::Samples;
use crate::schemas::{Schemas, referenced, texts};
use crate::text;

/// How deep a document becomes before only what is required is made.
const ROOM: i32 = 5;
/// How often a rule is tried before the samples are asked.
const TRIES: usize = 12;
/// How many values that keep a rule are remembered.
const KEPT: usize = 40;

/// A maker of documents.
#[derive(Debug)]
pub struct Generator<'a> {
    pub(crate) schemas: &'a Schemas,
    samples: &'a Samples,
    /// The choices.
    pub dice: Dice,
    /// Values that keep the rule of a definition.
    kept: BTreeMap<String, Vec<Value>>,
    /// Definitions whose rule chance seldom keeps.
    hard: BTreeSet<String>,
    patterns: BTreeMap<String, Option<SBoxedStrategy<String>>>,
}

/// The generated check of definition `name`.
///
/// # Panics
/// When there is none.
pub fn node(name: &str) -> &'static Node {
    match checks::ALL.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(index) => checks::ALL[index].1,
        Err(_) => panic!("no check of {name}"),
    }
}

/// `value` as the strict path reads its text; `None` when that refuses it.
pub fn as_read(value: &Value) -> Option<Value> {
    strict::parse(value.to_string().as_bytes()).ok()
}

impl<'a> Generator<'a> {
    /// A maker with the choices of `seed` for the purpose `name`.
    pub fn new(schemas: &'a Schemas, samples: &'a Samples, seed: u64, name: &str) -> Self {
        let dice = Dice::new(seed, name);
        Self {
            schemas,
            samples,
            dice,
            kept: BTreeMap::new(),
            hard: BTreeSet::new(),
            patterns: BTreeMap::new(),
        }
    }

    /// A document of definition `name` as the strict path reads it. It keeps the standard part of its schema; a rule that
    /// only trial finds may be broken.
    pub fn document(&mut self, name: &str) -> Value {
        loop {
            let room = self.dice.between(1, ROOM as usize) as i32;
            let value = self.definition(name, room);
            if let Some(value) = as_read(&value) {
                return value;
            }
        }
    }

    /// A document of definition `name` that is accepted; `None` when a hundred tries make none.
    pub fn valid(&mut self, name: &str) -> Option<Value> {
        let node = node(name);
        let mut documents = (0..100).map(|_| self.document(name));
        documents.find(|document| node.check(document).is_ok())
    }

    fn definition(&mut self, name: &str, room: i32) -> Value {
        let schema = self.schemas.get(name);
        if schema.get("x-rule").is_none() {
            return self.value(schema, room);
        }
        if self.hard.contains(name) && !self.dice.once_in(4) {
            return self.remembered(name);
        }
        let mut last = Value::Null;
        for _ in 0..TRIES {
            last = self.value(schema, room);
            if as_read(&last).is_some_and(|value| node(name).check(&value).is_ok()) {
                let kept = self.kept.entry(name.to_owned()).or_default();
                if kept.len() < KEPT {
                    kept.push(last.clone());
                }
                return last;
            }
        }
        if self.kept.get(name).is_none_or(Vec::is_empty) {
            self.ask_samples(name);
        }
        match self.kept[name].is_empty() {
            true => last,
            false => {
                self.hard.insert(name.to_owned());
                self.remembered(name)
            }
        }
    }

    fn remembered(&mut self, name: &str) -> Value {
        let kept = &self.kept[name];
        self.dice.pick(kept).clone()
    }

    fn ask_samples(&mut self, name: &str) {
        let node = node(name);
        let texts = self.samples.texts.iter().cloned().map(Value::String);
        let all = texts.chain(self.samples.values.iter().cloned());
        let fitting = all.filter(|value| node.check(value).is_ok()).take(4 * KEPT);
        self.kept.insert(name.to_owned(), fitting.collect());
    }

    fn value(&mut self, schema: &'a Value, room: i32) -> Value {
        if let Some(name) = referenced(schema) {
            return self.definition(name, room);
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(branches) = schema["oneOf"].as_array() {
            // A type that holds itself ends with its first branch that does not.
            let branches = if room < -4 {
                &branches[..1]
            } else {
                &branches[..]
            };
            let branch = &branches[self.dice.below(branches.len())];
            return self.value(branch, room - 1);
        }
        match schema["type"].as_str() {
            None => self.json(room.min(3)),
            Some("null") => Value::Null,
            Some("boolean") => self.dice.once_in(2).into(),
            Some("integer") => self.integer(schema),
            Some("number") => self.number(schema),
            Some("string") => Value::String(self.text(schema)),
            Some("array") => self.array(schema, room),
            Some(_) if schema.get("properties").is_some() => self.object(schema, room),
            Some(_) => self.map(schema, room),
        }
    }

    /// Any JSON, small.
    pub fn json(&mut self, room: i32) -> Value {
        match self.dice.below(if room > 0 { 9 } else { 6 }) {
            0 => Value::Null,
            1 => self.dice.once_in(2).into(),
            2 => self.integer(&Value::Null),
            3 => self.number(&Value::Null),
            4 | 5 => {
                let length = self.dice.below(8);
                Value::String(text::of_length(&mut self.dice, length, "utf16"))
            }
            6 => (0..self.dice.below(4))
                .map(|_| self.json(room - 1))
                .collect(),
            _ => {
                let names = (0..self.dice.below(4)).map(|_| text::key(&mut self.dice));
                let names: Vec<String> = names.collect();
                names
                    .into_iter()
                    .map(|name| (name, self.json(room - 1)))
                    .collect()
            }
        }
    }

    fn integer(&mut self, schema: &Value) -> Value {
        const SAFE: i64 = (1 << 53) - 1;
        let low = schema["minimum"].as_i64().unwrap_or(-SAFE).max(-SAFE);
        let high = schema["maximum"].as_i64().unwrap_or(SAFE).min(SAFE);
        let span = high.abs_diff(low);
        let any = low.wrapping_add_unsigned(self.dice.bits() % span.saturating_add(1).max(1));
        let near = low
            .max(0)
            .saturating_add(self.dice.below(40) as i64)
            .min(high);
        (*self.dice.pick(&[any, near, near, near, low, high])).into()
    }

    fn number(&mut self, schema: &Value) -> Value {
        let low = schema["minimum"].as_f64().unwrap_or(-1e300);
        let above = schema["exclusiveMinimum"]
            .as_f64()
            .unwrap_or(f64::NEG_INFINITY);
        let high = schema["maximum"].as_f64().unwrap_or(1e300);
        let base = low.max(above).max(0.0).min(high);
        let part = self.dice.below(1000) as f64 / 8.0;
        let tiny = base + self.dice.below(9) as f64 / 1e7;
        let fits = |value: &f64| *value >= low && *value <= high && *value > above;
        let all = [
            base + part,
            base + part.trunc(),
            tiny,
            base,
            low,
            high,
            -part,
            0.1,
        ];
        let fitting: Vec<f64> = all.into_iter().filter(fits).collect();
        let value = match fitting.is_empty() {
            true => high,
            false => *self.dice.pick(&fitting),
        };
        json!(value)
    }

    fn text(&mut self, schema: &'a Value) -> String {
        let choices = texts(&schema["enum"]);
        if !choices.is_empty() {
            return (*self.dice.pick(&choices)).to_owned();
        }
        if let Some(form) = schema["x-format"].as_str() {
            return text::time(&mut self.dice, form == "timestamp");
        }
        let units = schema["x-units"].as_str().unwrap_or("characters");
        let low = schema["minLength"].as_u64().unwrap_or(0) as usize;
        let high = schema["maxLength"]
            .as_u64()
            .map_or(usize::MAX, |it| it as usize);
        let trim = schema["x-trim"] == true;
        let fits = |text: &str| (low..=high).contains(&text::measure(text, units));
        if let Some(pattern) = schema["pattern"].as_str() {
            let mut last = String::new();
            for _ in 0..TRIES {
                last = self.matching(pattern);
                if fits(&last) && (!trim || last.trim() == last) {
                    break;
                }
            }
            return last;
        }
        let length = match self.dice.below(40) {
            0 if high <= 20_000 => high,
            1 | 2 => low,
            _ => low + self.dice.below(14),
        };
        let mut text = text::of_length(&mut self.dice, length.min(high), units);
        if trim {
            text = text::trimmed(&text, units);
        }
        text
    }

    /// A text that matches `pattern`; empty when no strategy reads the pattern.
    fn matching(&mut self, pattern: &str) -> String {
        let strategy = self.patterns.entry(pattern.to_owned()).or_insert_with(|| {
            let body = pattern.trim_start_matches('^').trim_end_matches('$');
            let read = proptest::string::string_regex(body).ok()?;
            Some(proptest::strategy::Strategy::sboxed(read))
        });
        let made = strategy
            .as_ref()
            .and_then(|strategy| self.dice.of(strategy));
        made.unwrap_or_default()
    }

    fn array(&mut self, schema: &'a Value, room: i32) -> Value {
        let low = schema["minItems"].as_u64().unwrap_or(0) as usize;
        let high = schema["maxItems"]
            .as_u64()
            .map_or(usize::MAX, |it| it as usize);
        let more = if room > 0 { self.dice.below(4) } else { 0 };
        let count = match self.dice.below(30) {
            0 if high <= 1024 => high,
            _ => (low + more).min(high),
        };
        let mut items = Vec::new();
        self.extend(&mut items, schema, count, room - 1);
        Value::Array(items)
    }

    /// Adds items of the list `schema` until there are `count`.
    pub fn fill(&mut self, items: &mut Vec<Value>, schema: &'a Value, count: usize) {
        self.extend(items, schema, count, 0);
    }

    fn extend(&mut self, items: &mut Vec<Value>, schema: &'a Value, count: usize, room: i32) {
        let unique = schema["uniqueItems"] == true;
        // Equal items are made again, but an enumeration may have no more of them.
        for _ in 0..4 * count {
            if items.len() >= count {
                break;
            }
            let item = self.value(&schema["items"], room);
            if !unique || !items.contains(&item) {
                items.push(item);
            }
        }
    }

    fn map(&mut self, schema: &'a Value, room: i32) -> Value {
        let low = schema["minProperties"].as_u64().unwrap_or(0) as usize;
        let high = schema["maxProperties"]
            .as_u64()
            .map_or(usize::MAX, |it| it as usize);
        let more = if room > 0 { self.dice.below(4) } else { 0 };
        let mut members = Map::new();
        for _ in 0..4 * (low + more) {
            if members.len() == (low + more).min(high) {
                break;
            }
            let name = match schema.get("propertyNames") {
                Some(names) => match self.value(names, 0) {
                    Value::String(name) => name,
                    _ => continue,
                },
                None => text::key(&mut self.dice),
            };
            let value = match schema.get("additionalProperties") {
                Some(values) => self.value(values, room - 1),
                None => self.json(room - 1),
            };
            members.insert(name, value);
        }
        Value::Object(members)
    }

    fn object(&mut self, schema: &'a Value, room: i32) -> Value {
        let names = self.chosen(schema, room);
        let properties = &schema["properties"];
        let mut members = Map::new();
        for name in names {
            members.insert(name.to_owned(), self.value(&properties[name], room - 1));
        }
        let mut set: Vec<&str> = names_set(&members, schema);
        while let Some(name) = set.pop() {
            for needed in texts(&schema["x-implies"][name]) {
                if members.insert(needed.to_owned(), true.into()) != Some(true.into()) {
                    set.push(needed);
                }
            }
        }
        if schema["x-mode"] != "strict" && room > 0 && self.dice.once_in(3) {
            let name = format!("new{}", text::key(&mut self.dice));
            if properties.get(&name).is_none() {
                members.insert(name, self.json(1));
            }
        }
        Value::Object(members)
    }

    /// The properties of an object: all required ones, some others, and what those need.
    fn chosen(&mut self, schema: &'a Value, room: i32) -> Vec<&'a str> {
        let required = texts(&schema["required"]);
        let among = *self.dice.pick(&[1, 2, 2, 4, 1000]);
        let mut chosen: Vec<&str> = Vec::new();
        let all = schema["properties"].as_object().into_iter().flatten();
        let allowed: Vec<&str> = all
            .filter(|(_, property)| property.get("x-refuse").is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        for name in &allowed {
            if required.contains(name) || room > 0 && self.dice.once_in(among) {
                chosen.push(name);
            }
        }
        let low = schema["minProperties"].as_u64().unwrap_or(0) as usize;
        while chosen.len() < low {
            let name = self.dice.pick(&allowed);
            if !chosen.contains(name) {
                chosen.push(name);
            }
        }
        let mut index = 0;
        while index < chosen.len() {
            for key in ["dependentRequired", "x-implies"] {
                for name in texts(&schema[key][chosen[index]]) {
                    if !chosen.contains(&name) {
                        chosen.push(name);
                    }
                }
            }
            index += 1;
        }
        chosen
    }
}

/// The flags of `x-implies` that are true.
fn names_set<'a>(members: &Map<String, Value>, schema: &'a Value) -> Vec<&'a str> {
    let implying = schema["x-implies"].as_object().into_iter().flatten();
    implying
        .map(|(name, _)| name.as_str())
        .filter(|name| members.get(*name) == Some(&Value::Bool(true)))
        .collect()
}
