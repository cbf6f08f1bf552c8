//! Canonical JSON (RFC 8785): the one text of a value that every party hashes (core contracts, 2).
//!
//! Members are sorted by the UTF-16 code units of their keys, whatever order the map keeps; numbers are
//! written as ECMAScript writes the nearest double; strings escape only what JSON must escape. The writer
//! keeps its own stack, so depth costs memory and never the thread's stack.

use std::cmp::Ordering;
use std::slice;

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

pub use super::digest::Digest;
use super::strict::{MAX_SAFE_INTEGER, safe_integer};
use super::text::plain_prefix;

/// How much text is gathered before it is hashed: it fits the processor's first cache.
const HASHED_AT_ONCE: usize = 16 * 1024;

/// The canonical text of `value`.
///
/// ```
/// use tangle_sandbox::contract::{canonical, strict};
///
/// let value = strict::parse(br#"{ "b": [1e21, -0, 1e-7, 1.0], "a": "\u00e9" }"#)?;
/// assert_eq!(canonical::to_text(&value), r#"{"a":"é","b":[1e+21,0,1e-7,1]}"#);
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
pub fn to_text(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    // The writer appends whole strings and ASCII only.
    String::from_utf8(out).expect("canonical text is UTF-8")
}

/// Appends the canonical text of `value` to `out`, as UTF-8.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    Writer::new(out, |_| {}).write(value, None);
}

/// The length in bytes of the canonical text of `value`, which is never held as a whole.
pub fn length(value: &Value) -> usize {
    let (mut length, mut text) = (0, Vec::new());
    let spill = |text: &mut Vec<u8>| {
        length += text.len();
        text.clear();
    };
    Writer::new(&mut text, spill).write(value, None);
    length + text.len()
}

/// The digest of the canonical text of `value`, hashed while it is written.
pub fn digest(value: &Value) -> Digest {
    hash(value, None)
}

/// The digest of `value` without its top-level member `member`.
///
/// A record that carries its own digest is hashed this way.
pub fn digest_without(value: &Value, member: &str) -> Digest {
    hash(value, Some(member))
}

fn hash(value: &Value, without: Option<&str>) -> Digest {
    let mut hash = Sha256::new();
    let mut text = Vec::with_capacity(HASHED_AT_ONCE / 8);
    let spill = |text: &mut Vec<u8>| {
        if text.len() >= HASHED_AT_ONCE {
            hash.update(&text);
            text.clear();
        }
    };
    Writer::new(&mut text, spill).write(value, without);
    hash.update(&text);
    Digest::finish(hash)
}

/// A container that is being written.
enum Open<'a> {
    Array(slice::Iter<'a, Value>),
    /// An object, its members standing in [`Writer::members`]: the first of them, and the next one.
    Object {
        first: usize,
        next: usize,
    },
}

struct Writer<'a, 'o, F> {
    out: &'o mut Vec<u8>,
    /// Called after each value with all the text so far; it may take it.
    spill: F,
    open: Vec<Open<'a>>,
    /// The members of every open object in canonical order, the innermost object last.
    members: Vec<(&'a str, &'a Value)>,
}

impl<'a, 'o, F: FnMut(&mut Vec<u8>)> Writer<'a, 'o, F> {
    fn new(out: &'o mut Vec<u8>, spill: F) -> Self {
        Self {
            out,
            spill,
            open: Vec::new(),
            members: Vec::new(),
        }
    }

    fn write(&mut self, value: &'a Value, without: Option<&str>) {
        self.value(value);
        if let Some(member) = without {
            self.members.retain(|(key, _)| *key != member);
        }
        let mut first = true;
        while let Some(container) = self.open.last_mut() {
            let (key, value) = match container {
                Open::Array(items) => match items.next() {
                    Some(item) => (None, item),
                    None => {
                        self.close(b']');
                        first = false;
                        continue;
                    }
                },
                Open::Object { first: start, next } => match self.members.get(*next) {
                    Some(&(key, value)) => {
                        *next += 1;
                        (Some(key), value)
                    }
                    None => {
                        self.members.truncate(*start);
                        self.close(b'}');
                        first = false;
                        continue;
                    }
                },
            };
            if !first {
                self.out.push(b',');
            }
            if let Some(key) = key {
                string(key, self.out);
                self.out.push(b':');
            }
            first = self.value(value);
            (self.spill)(self.out);
        }
    }

    fn close(&mut self, end: u8) {
        self.out.push(end);
        self.open.pop();
    }

    /// Writes a scalar or opens a container; says whether what comes next is the first of a container.
    fn value(&mut self, value: &'a Value) -> bool {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(value) => number(value, self.out),
            Value::String(value) => string(value, self.out),
            Value::Array(items) => {
                self.out.push(b'[');
                self.open.push(Open::Array(items.iter()));
                return true;
            }
            Value::Object(members) => {
                self.out.push(b'{');
                let first = self.members.len();
                self.open.push(Open::Object { first, next: first });
                self.gather(members);
                return true;
            }
        }
        false
    }

    /// Puts the members of an object on the stack in canonical order.
    fn gather(&mut self, members: &'a Map<String, Value>) {
        let first = self.members.len();
        let unsorted = members.iter().map(|(key, value)| (key.as_str(), value));
        self.members.extend(unsorted);
        let gathered = &mut self.members[first..];
        // A map that sorts by bytes is in UTF-16 order already when its keys are ASCII.
        let ascii = gathered.iter().all(|(key, _)| key.is_ascii());
        if !ascii || !gathered.is_sorted_by(|(a, _), (b, _)| a < b) {
            gathered.sort_unstable_by(|(a, _), (b, _)| utf16_order(a, b));
        }
    }
}

/// Whether two values are the same to every digest, however their numbers are spelt.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    left == right || to_text(left) == to_text(right)
}

/// The order of two texts by their UTF-16 code units, decided on their UTF-8 bytes.
///
/// The two orders differ only between U+E000..U+FFFF (lead bytes EE and EF) and the planes above (lead bytes
/// F0 to F4), whose surrogates come first.
pub(super) fn utf16_order(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| match byte {
        0xEE | 0xEF => byte + 0x10,
        byte => byte,
    };
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((&a, &b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, escaped) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = escaped.split_first() else {
            break;
        };
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            let [high, low] = [byte >> 4, byte & 15].map(|nibble| HEX[usize::from(nibble)]);
            out.extend_from_slice(&[b'0', b'0', high, low]);
        }
        rest = behind;
    }
    out.push(b'"');
}

/// Writes a number as ECMAScript writes the nearest double.
pub(super) fn number(number: &Number, out: &mut Vec<u8>) {
    if let Some(value) = number.as_u64() {
        match value {
            0..=MAX_SAFE_INTEGER => integer(value, out),
            _ => double(value as f64, out),
        }
    } else if let Some(value) = number.as_i64() {
        match value.unsigned_abs() {
            magnitude @ 0..=MAX_SAFE_INTEGER => {
                out.push(b'-');
                integer(magnitude, out);
            }
            _ => double(value as f64, out),
        }
    } else if let Some(value) = number.as_f64() {
        match safe_integer(value) {
            Some(value) => {
                if value < 0 {
                    out.push(b'-');
                }
                integer(value.unsigned_abs(), out);
            }
            None => double(value, out),
        }
    } else {
        // Only a number of arbitrary precision, which this crate never makes, is beyond a double.
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

fn double(value: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
}

fn integer(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        // The remainder is below ten.
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests;
