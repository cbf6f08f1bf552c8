//! Takes credentials out of texts that come from outside, before they are stored (wire protocol, 1.2).

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::contract::Secret;
use crate::contract::routes::encode_component;

const MARK: &str = "[redacted]";

/// Shorter keys are not looked for: they would be found in ordinary words.
const SHORTEST_KEY: usize = 6;

/// The text without `Bearer …` runs and without keys that look like `sk-`, `pk-` or `tc-` and 8 or more characters.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let is_word_start = !before.is_some_and(|c: char| c.is_ascii_alphanumeric());
        if let Some((kept, taken)) = is_word_start.then(|| credential(rest)).flatten() {
            out.push_str(&rest[..kept]);
            out.push_str(MARK);
            rest = &rest[taken..];
            before = Some(']');
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
            before = Some(next);
        }
    }
    out
}

/// As [`redact`], and without `key` itself, also where it is written in base64 or percent-encoded.
pub fn redact_key(text: &str, key: &Secret) -> String {
    let key = key.expose();
    if key.len() < SHORTEST_KEY {
        return redact(text);
    }
    let mut encoded = String::new();
    encode_component(&mut encoded, key);
    let forms = [
        key.to_owned(),
        encoded,
        STANDARD.encode(key),
        STANDARD_NO_PAD.encode(key),
        URL_SAFE_NO_PAD.encode(key),
    ];
    let mut text = text.to_owned();
    for form in &forms {
        if text.contains(form.as_str()) {
            text = text.replace(form.as_str(), MARK);
        }
    }
    redact(&text)
}

/// If a credential starts here: how many bytes of it are kept, and how many it takes in all.
fn credential(text: &str) -> Option<(usize, usize)> {
    const BEARER: &str = "bearer";
    const SHORTEST_TAIL: usize = 8;
    if let Some(word) = text.get(..BEARER.len())
        && word.eq_ignore_ascii_case(BEARER)
    {
        let after = &text[BEARER.len()..];
        let token = after.trim_start();
        let kept = text.len() - token.len();
        let length = token.find(ends_token).unwrap_or(token.len());
        let apart = token.len() < after.len();
        return (apart && length > 0).then_some((kept, kept + length));
    }
    let prefixed = ["sk-", "pk-", "tc-"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    let tail = text.get(3..).filter(|_| prefixed)?;
    let length = tail
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .unwrap_or(tail.len());
    (length >= SHORTEST_TAIL).then_some((0, 3 + length))
}

fn ends_token(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_3_9_bearer_runs_are_redacted() {
        for (text, expected) in [
            ("Bearer abc", "Bearer [redacted]"),
            (
                "got bearer  a.b-c/d=, sorry",
                "got bearer  [redacted] sorry",
            ),
            (
                "\"Authorization: Bearer abc\"",
                "\"Authorization: Bearer [redacted]\"",
            ),
            ("Bearer ", "Bearer "),
            ("Bearers abc", "Bearers abc"),
            ("é Bearer é", "é Bearer [redacted]"),
            ("Bearer [redacted]", "Bearer [redacted]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn what_looks_like_a_key_is_redacted() {
        for (text, expected) in [
            ("key sk-12345678.", "key [redacted]."),
            ("sk-1234567", "sk-1234567"),
            ("(pk-abcd_EFG-1)", "([redacted])"),
            ("tc-aaaaaaaa,tc-bbbbbbbb", "[redacted],[redacted]"),
            ("task-management", "task-management"),
            ("sk-é", "sk-é"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn the_own_key_is_redacted_in_each_form() {
        let key = Secret::from("canary/key+1");
        let text = "canary/key+1 canary%2Fkey%2B1 Y2FuYXJ5L2tleSsx";
        assert_eq!(redact_key(text, &key), "[redacted] [redacted] [redacted]");
        assert_eq!(redact_key("a failure", &Secret::from("a")), "a failure");
    }
}
