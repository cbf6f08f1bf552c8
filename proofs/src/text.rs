//! Texts of a wanted length, keys and times.

use tangle_sandbox::contract::text::{is_white_space, utf16_len};

use crate::dice::Dice;

/// Characters of every length in every unit, some of them awkward.
const CHARACTERS: &[char] = &[
    'a', 'b', 'c', 'd', 'e', 'z', 'A', 'Z', '0', '9', '-', '_', '.', '/', ':', ' ', '"', '\\',
    '\'', '\n', '\t', '\u{1}', '\u{7f}', '\u{85}', 'é', 'ß', '研', '\u{2028}', '\u{feff}',
    '\u{e000}', '😀', '🚀',
];

const NAMES: &[&str] = &[
    "a",
    "b",
    "name",
    "Type",
    "with-dash",
    "dotted.name",
    "A_B",
    "x",
    "0",
    "id",
    "two words",
    "slash/ed",
    "til~de",
    "é",
    "研究",
    "😀",
    "\u{e000}",
    "__proto__",
    "constructor",
    "$ref",
];

/// The length of `text` in `units`: `utf16`, `utf8` or anything else for characters.
pub fn measure(text: &str, units: &str) -> usize {
    match units {
        "utf16" => utf16_len(text),
        "utf8" => text.len(),
        _ => text.chars().count(),
    }
}

/// A text of exactly `length` units.
pub fn of_length(dice: &mut Dice, length: usize, units: &str) -> String {
    // Long texts repeat one stretch, since only their length matters.
    let plain = dice.once_in(2);
    let mut text = String::new();
    let mut left = length;
    while left > 0 {
        let c = if plain {
            CHARACTERS[dice.below(10)]
        } else {
            *dice.pick(CHARACTERS)
        };
        let size = measure(c.encode_utf8(&mut [0; 4]), units);
        if size > left {
            text.push('a');
            left -= 1;
            continue;
        }
        let times = if left > 64 {
            (left / size).min(left / 3)
        } else {
            1
        };
        text.extend(std::iter::repeat_n(c, times));
        left -= times * size;
    }
    text
}

/// `text` with letters in place of its outer white space; the length in `units` stays.
pub fn trimmed(text: &str, units: &str) -> String {
    let middle = text.trim_matches(is_white_space);
    let before = text.len() - text.trim_start_matches(is_white_space).len();
    let before = if middle.is_empty() { 0 } else { before };
    let (start, end) = (&text[..before], &text[before + middle.len()..]);
    let fill = |part: &str| "w".repeat(measure(part, units));
    format!("{}{middle}{}", fill(start), fill(end))
}

/// A name of a member.
pub fn key(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => {
            let length = dice.between(1, 9);
            of_length(dice, length, "utf16")
        }
        _ => (*dice.pick(NAMES)).to_owned(),
    }
}

/// A time of RFC 3339, with an offset when it need not be UTC.
pub fn time(dice: &mut Dice, utc: bool) -> String {
    let day = format!(
        "{:04}-{:02}-{:02}",
        dice.between(1970, 2100),
        dice.between(1, 12),
        dice.between(1, 28)
    );
    let time = format!(
        "{:02}:{:02}:{:02}",
        dice.below(24),
        dice.below(60),
        dice.below(60)
    );
    let fraction = *dice.pick(&["", ".5", ".123", ".123456789"]);
    let zone = if utc {
        "Z"
    } else {
        *dice.pick(&["Z", "+00:00", "-07:30", "+14:00"])
    };
    format!("{day}T{time}{fraction}{zone}")
}
