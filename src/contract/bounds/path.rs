//! How a bound error spells a place: short, on one line, and without surprises in a terminal or a log.

use serde_json::Value;

use super::super::canonical;
use super::super::check::step;
use super::super::text::utf16_len;

/// How much of one key is shown, in UTF-16 code units.
const MAX_KEY: usize = 48;
/// How much of a path is shown, in UTF-16 code units.
const MAX_PATH: usize = 256;
const CUT: &str = "...";

/// One step from a container to its child.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    Key(&'a str),
    Index(usize),
}

/// Spells the way from the root: `a.b[2]["odd key"]`, empty for the root itself.
pub(super) fn spell<'a>(places: impl Iterator<Item = Place<'a>>) -> String {
    let mut path = String::new();
    for place in places {
        match place {
            Place::Index(index) => path.push_str(&format!("[{index}]")),
            Place::Key(key) => push_key(&mut path, &shown(key)),
        }
    }
    tail(path)
}

/// The same way as a JSON pointer: `/a/b/2`.
pub(super) fn pointer<'a>(places: impl Iterator<Item = Place<'a>>) -> String {
    let mut pointer = String::new();
    for place in places {
        pointer.push('/');
        match place {
            Place::Index(index) => pointer.push_str(&index.to_string()),
            Place::Key(key) => pointer.push_str(&step(key)),
        }
    }
    pointer
}

fn push_key(path: &mut String, key: &str) {
    if !is_plain(key) {
        let quoted = canonical::to_text(&Value::from(key));
        path.push_str(&format!("[{quoted}]"));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

fn is_plain(key: &str) -> bool {
    let word = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    key.starts_with(word) && key.chars().all(|c| word(c) || c.is_ascii_digit())
}

/// A key cut to its length, with a question mark for what a reader cannot see or a terminal would obey.
fn shown(key: &str) -> String {
    let mut out = String::new();
    let mut units = 0;
    for c in key.chars() {
        if units == MAX_KEY {
            out.push_str(CUT);
            break;
        }
        // A pair that the cut would split leaves its first half, which is no character.
        let split = units + c.len_utf16() > MAX_KEY;
        out.push(if split || is_hidden(c) { '?' } else { c });
        units = (units + c.len_utf16()).min(MAX_KEY);
        if split {
            out.push_str(CUT);
            break;
        }
    }
    out
}

/// The last [`MAX_PATH`] units of a longer path, behind `...`: the leaf is what a reader looks for.
fn tail(path: String) -> String {
    let mut excess = utf16_len(&path).saturating_sub(MAX_PATH);
    if excess == 0 {
        return path;
    }
    let kept = path.trim_start_matches(|c: char| {
        let dropped = excess > 0;
        excess = excess.saturating_sub(c.len_utf16());
        dropped
    });
    format!("{CUT}{kept}")
}

/// Whether `c` is a control or a format character (Unicode categories Cc and Cf).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{AD}'
                | '\u{600}'..='\u{605}'
                | '\u{61C}'
                | '\u{6DD}'
                | '\u{70F}'
                | '\u{890}'..='\u{891}'
                | '\u{8E2}'
                | '\u{180E}'
                | '\u{200B}'..='\u{200F}'
                | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{2064}'
                | '\u{2066}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{110BD}'
                | '\u{110CD}'
                | '\u{13430}'..='\u{1343F}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0001}'
                | '\u{E0020}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::Place::{Index, Key};
    use super::*;

    fn path(places: &[Place<'_>]) -> String {
        spell(places.iter().copied())
    }

    #[test]
    fn plain_keys_take_dots_and_others_take_quotes() {
        assert_eq!(path(&[]), "");
        assert_eq!(path(&[Key("a"), Key("_$9"), Index(3)]), "a._$9[3]");
        assert_eq!(
            path(&[Index(0), Key("a b"), Key(""), Key("9"), Key("é\"")]),
            r#"[0]["a b"][""]["9"]["é\""]"#
        );
    }

    #[test]
    fn a_long_key_is_cut_and_hidden_characters_are_replaced() {
        assert_eq!(path(&[Key(&"k".repeat(48))]), "k".repeat(48));
        assert_eq!(
            path(&[Key(&"k".repeat(49))]),
            format!("[\"{}...\"]", "k".repeat(48))
        );
        let split = format!("{}😀", "k".repeat(47));
        assert_eq!(
            path(&[Key(&split)]),
            format!("[\"{}?...\"]", "k".repeat(47))
        );
        assert_eq!(path(&[Key("a\n\u{1b}\u{202e}\u{feff}b")]), r#"["a????b"]"#);
    }

    #[test]
    fn a_long_path_keeps_its_tail() {
        let key = "k".repeat(48);
        let long = path(&[Key(&key); 16]);
        assert_eq!(utf16_len(&long), 3 + 256);
        assert!(long.starts_with("...k") && long.ends_with(&format!(".{key}")));
    }
}
