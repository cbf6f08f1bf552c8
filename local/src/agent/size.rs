//! How large JSON is: its bytes as text, its bytes in memory, its depth. Everything that an agent sends is bounded by one
//! of them before it is kept or passed on.

use std::io;

use serde::Serialize;
use serde_json::Value;

/// Containers within containers of a value that is passed on. A reader of frames takes 128 levels; a frame adds a few.
pub(super) const DEPTH_LIMIT: usize = 64;
/// Bytes of text that are left of a value that lies deeper.
const DEEP_TEXT_LIMIT: usize = 256;
/// Bytes of one value in memory beside its text.
const NODE: usize = std::mem::size_of::<Value>();

/// Bytes of the value as JSON text; `usize::MAX` when it has none.
pub(super) fn text_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

/// About how many bytes the value takes in memory, where `[0,0]` is far larger than its text.
pub(super) fn held_bytes(value: &Value) -> usize {
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(held_bytes).sum(),
        Value::Object(entries) => entries
            .iter()
            .map(|(name, value)| NODE + name.len() + held_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Bytes of a character within a JSON text.
fn escaped(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        other => other.len_utf8(),
    }
}

/// Bytes of a text within a JSON text, without its quotes.
pub(super) fn escaped_bytes(text: &str) -> usize {
    text.chars().map(escaped).sum()
}

/// The longest beginning of the text that takes at most `limit` bytes within a JSON text.
pub(super) fn fit(text: &str, limit: usize) -> &str {
    if text.len() <= limit / 6 {
        return text;
    }
    let mut bytes = 0;
    let end = text.char_indices().find(|(_, character)| {
        bytes += escaped(*character);
        bytes > limit
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// The text in pieces that each take at most `limit` bytes within a JSON text; at least one piece.
pub(super) fn pieces(mut text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    loop {
        let piece = fit(text, limit.max(6));
        text = &text[piece.len()..];
        pieces.push(piece);
        if text.is_empty() {
            return pieces;
        }
    }
}

/// Replaces every container below [`DEPTH_LIMIT`] levels by a text that says so and begins with what it held.
pub(super) fn make_shallow(value: &mut Value) {
    flatten(value, DEPTH_LIMIT);
}

fn flatten(value: &mut Value, levels: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => {
            let text = value.to_string();
            *value = format!(
                "[nested deeper than {DEPTH_LIMIT} levels] {}",
                fit(&text, DEEP_TEXT_LIMIT)
            )
            .into();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| flatten(item, levels - 1)),
        Value::Object(entries) => entries
            .values_mut()
            .for_each(|entry| flatten(entry, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DEPTH_LIMIT, escaped_bytes, fit, held_bytes, make_shallow, pieces, text_bytes};

    #[test]
    fn a_text_is_as_long_as_it_is_written() {
        let every: String = ('\0'..'\u{100}').chain(['€', '\u{1f600}']).collect();
        assert_eq!(escaped_bytes(&every) + 2, json!(every).to_string().len());
        assert_eq!(
            text_bytes(&json!({ "a": every })),
            json!({ "a": every }).to_string().len()
        );
    }

    #[test]
    fn pieces_are_bounded_as_they_are_written_and_lose_nothing() {
        for text in [
            "",
            "a",
            "\u{1}\u{1}\u{1}€€\"\"\n\u{1f600}x",
            &"ab€\u{2}".repeat(50),
        ] {
            let pieces = pieces(text, 12);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| escaped_bytes(piece) <= 12));
        }
        assert_eq!(fit("\u{1}\u{1}", 11), "\u{1}");
    }

    #[test]
    fn small_numbers_count_for_what_they_hold() {
        let numbers = Value::from(vec![0; 1000]);
        assert!(held_bytes(&numbers) > 10 * numbers.to_string().len());
    }

    #[test]
    fn what_lies_too_deep_becomes_a_text_that_says_so() {
        let nest = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let mut value = nest(DEPTH_LIMIT);
        make_shallow(&mut value);
        assert_eq!(value, nest(DEPTH_LIMIT));
        let mut value = nest(DEPTH_LIMIT + 2);
        make_shallow(&mut value);
        let text = value.to_string();
        assert!(
            text.contains("[nested deeper than 64 levels] [[1]]"),
            "{text}"
        );
    }
}
