//! Identities that the deployment mints, and the times that it writes.

use jiff::Timestamp;
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// `prefix` and 26 characters of lower-case base32: 122 random bits, so that no id is ever issued twice.
pub(crate) fn mint(prefix: &str) -> String {
    let mut bits = u128::from_be_bytes(*Uuid::new_v4().as_bytes());
    let mut id = String::with_capacity(prefix.len() + 26);
    id.push_str(prefix);
    for _ in 0..26 {
        id.push(char::from(ALPHABET[(bits & 31) as usize]));
        bits >>= 5;
    }
    id
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// RFC 3339 in UTC with milliseconds, for example `2026-01-02T03:04:05.678Z`. A time beyond what can be written is the
/// first or the last that can.
pub(crate) fn rfc3339(milliseconds: i64) -> String {
    let (first, last) = (Timestamp::MIN, Timestamp::MAX);
    let within = milliseconds.clamp(first.as_millisecond(), last.as_millisecond());
    let time = Timestamp::from_millisecond(within).unwrap_or(last);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::{mint, rfc3339};

    #[test]
    fn an_id_is_its_prefix_and_26_characters() {
        let id = mint("sbx_");
        assert_eq!(id.len(), 30);
        assert!(
            id[4..]
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
        );
        assert_ne!(id, mint("sbx_"));
    }

    #[test]
    fn a_time_has_milliseconds_and_z() {
        assert_eq!(rfc3339(1_767_323_045_678), "2026-01-02T03:04:05.678Z");
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_time_out_of_range_is_the_last_one_and_not_the_first() {
        assert!(rfc3339(i64::MAX).starts_with("9999-12-"));
        assert!(rfc3339(i64::MIN).starts_with("-00"));
    }
}
