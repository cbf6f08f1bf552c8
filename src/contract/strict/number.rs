//! Numbers of strict JSON: the grammar of a literal, and the value that every party agrees on.

use serde_json::Number;

/// The largest integer that a double holds without doubt, 2^53 − 1.
pub(crate) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The length of the number literal at the start of `bytes`, or the offset at which it stops being one.
pub(super) fn literal(bytes: &[u8]) -> Result<usize, usize> {
    let digits_from = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            Err(from)
        } else {
            Ok(from + count)
        }
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut at = match bytes.get(start) {
        Some(b'0') => start + 1,
        _ => digits_from(start)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits_from(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits_from(at)?;
    }
    Ok(at)
}

/// The value of a literal, or `None` where it is beyond a double.
pub(super) fn read(literal: &str) -> Option<Number> {
    // `-0` is an integer literal whose double is minus zero, and minus zero is 0.
    if let Ok(integer) = literal.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = literal.parse::<u64>() {
        return Some(integer.into());
    }
    // The standard library rounds correctly; serde_json's default reading may be one unit off.
    let double: f64 = literal.parse().ok()?;
    match safe_integer(double) {
        Some(integer) => Some(integer.into()),
        None => Number::from_f64(double),
    }
}

/// The integer that `double` is, if it is a safe one.
pub(crate) fn safe_integer(double: f64) -> Option<i64> {
    let integer = double as i64;
    (integer as f64 == double && integer.unsigned_abs() <= MAX_SAFE_INTEGER).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integral_doubles_become_integers_while_they_are_safe() {
        for (literal, text) in [
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e10", "0"),
            ("1.0", "1"),
            ("1E+2", "100"),
            ("-2.50e1", "-25"),
            ("9007199254740991.0", "9007199254740991"),
            ("9007199254740992.0", "9007199254740992.0"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("1e-400", "0"),
            ("1.5", "1.5"),
        ] {
            assert_eq!(read(literal).unwrap().to_string(), text, "{literal}");
        }
        assert_eq!(read("1e400"), None);
        assert_eq!(read("-1e309"), None);
    }

    #[test]
    fn a_literal_ends_where_the_grammar_says() {
        for (text, end) in [
            ("0", Ok(1)),
            ("01", Ok(1)),
            ("-12.5e-7,", Ok(8)),
            ("-", Err(1)),
            ("1.", Err(2)),
            ("1e", Err(2)),
            ("1e+", Err(3)),
            ("-.5", Err(1)),
        ] {
            assert_eq!(literal(text.as_bytes()), end, "{text}");
        }
    }
}
