//! How a string is measured and trimmed: UTF-16 code units and the white space of ECMAScript (core contracts, 1.1).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

/// The length of `text` in UTF-16 code units: an emoji outside the first plane counts two.
pub fn utf16_len(text: &str) -> usize {
    // Every lead byte is one unit and every four-byte lead one more; plain sums vectorise.
    let bytes = text.as_bytes();
    let chars = bytes.iter().filter(|&&byte| (byte as i8) >= -64).count();
    let astral = bytes.iter().filter(|&&byte| byte >= 0xF0).count();
    chars + astral
}

/// Whether `text` is longer than `limit` UTF-16 code units.
///
/// A text of at most `limit` bytes needs no count, since no unit takes less than a byte.
pub fn exceeds_utf16(text: &str, limit: usize) -> bool {
    text.len() > limit && utf16_len(text) > limit
}

/// Whether `c` is white space to ECMAScript `trim`.
///
/// Not the set of [`char::is_whitespace`]: U+FEFF is white space here and U+0085 is not.
pub fn is_white_space(c: char) -> bool {
    matches!(
        c,
        '\u{9}'..='\u{D}'
            | ' '
            | '\u{A0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200A}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202F}'
            | '\u{205F}'
            | '\u{3000}'
            | '\u{FEFF}'
    )
}

/// `text` without the white space at its ends, as ECMAScript `trim` gives it.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_white_space)
}

/// Whether `text` begins or ends with white space.
pub fn has_outer_white_space(text: &str) -> bool {
    text.starts_with(is_white_space) || text.ends_with(is_white_space)
}

/// The length in bytes of the longest prefix that JSON text holds unescaped: no quote, backslash or control.
#[inline]
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return at * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let stop = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let at = words.len() * 8;
    at + rest.iter().position(stop).unwrap_or(rest.len())
}

/// Marks, by the high bit of its byte, the first byte of `word` that JSON text must escape.
///
/// Each term finds a byte below a limit by letting the subtraction borrow into its high bit. A borrow may
/// also mark a byte above a true one, never below, so the lowest mark is right.
#[inline]
fn stops(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let control = below(word, 0x20);
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control | quote | backslash) & HIGH
}

/// Reads a string from a self-describing format, with errors that say `expected` and never echo the input.
pub(crate) fn deserialize_quietly<'de, D, T>(
    deserializer: D,
    expected: &'static str,
    read: impl FnOnce(Cow<'_, str>) -> Option<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    // Not `deserialize_str`: asked for a string, serde_json names the value that it has instead.
    deserializer
        .deserialize_any(Quiet { expected, read })?
        .ok_or_else(|| D::Error::custom(format_args!("expected {expected}")))
}

struct Quiet<F> {
    expected: &'static str,
    read: F,
}

/// serde's default for a kind that a visitor does not take names the value; these do not.
macro_rules! refuse {
    ($($visit:ident($kind:ty)),+) => {$(
        fn $visit<E: Error>(self, _: $kind) -> Result<Self::Value, E> {
            Ok(None)
        }
    )+};
}

impl<T, F: FnOnce(Cow<'_, str>) -> Option<T>> Visitor<'_> for Quiet<F> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((self.read)(text.into()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok((self.read)(text.into()))
    }

    refuse!(
        visit_bool(bool),
        visit_i64(i64),
        visit_i128(i128),
        visit_u64(u64),
        visit_u128(u128),
        visit_f64(f64),
        visit_char(char),
        visit_bytes(&[u8])
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn length_counts_utf16_units() {
        assert_eq!(utf16_len(""), 0);
        assert_eq!(utf16_len("a研é"), 3);
        assert_eq!(utf16_len("😀"), 2);
        assert!(!exceeds_utf16(&"😀".repeat(256), 512));
        assert!(exceeds_utf16(&"😀".repeat(257), 512));
    }

    #[test]
    fn a_byte_order_mark_is_white_space_and_next_line_is_not() {
        assert!(has_outer_white_space("\u{FEFF}a"));
        assert!(has_outer_white_space("a\u{FEFF}"));
        assert!(!has_outer_white_space("\u{85}a\u{85}"));
        assert!(!has_outer_white_space("\u{200B}a"));
        assert_eq!(trim("\u{FEFF}\u{3000}\t a b\u{A0}\n"), "a b");
        assert_eq!(trim("\u{85}a"), "\u{85}a");
    }

    #[test]
    fn the_white_space_set_is_exactly_that_of_ecmascript() {
        let ours: Vec<u32> = (0..=0x10_FFFF)
            .filter_map(char::from_u32)
            .filter(|&c| is_white_space(c))
            .map(u32::from)
            .collect();
        let mut theirs: Vec<u32> = (0..=0x10_FFFF)
            .filter_map(char::from_u32)
            .filter(|c| c.is_whitespace() && *c != '\u{85}')
            .map(u32::from)
            .collect();
        theirs.push(0xFEFF);
        assert_eq!(ours, theirs);
    }

    proptest! {
        #[test]
        fn length_agrees_with_encode_utf16(text in any::<String>()) {
            prop_assert_eq!(utf16_len(&text), text.encode_utf16().count());
        }

        #[test]
        fn the_plain_prefix_ends_at_the_first_escape(text in "[ -~\\n]{0,80}") {
            let first = text.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\');
            prop_assert_eq!(plain_prefix(text.as_bytes()), first.unwrap_or(text.len()));
        }
    }
}
