//! A SHA-256 digest as the contract writes it: `sha256:` and 64 lower-case hexadecimal digits (core contracts, 2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::canonical;
use super::check::Refused;
use super::text;

const PREFIX: &str = "sha256:";
const HEX: &[u8; 16] = b"0123456789abcdef";
const RULE: &str = "must be `sha256:` and 64 lower-case hexadecimal digits";

/// A SHA-256 digest. Its text is `sha256:` and 64 lower-case hexadecimal digits, and nothing else is read as one.
///
/// ```
/// use tangle_sandbox::contract::digest::Digest;
///
/// let digest = Digest::of(&serde_json::json!({}));
/// assert_eq!(
///     digest.to_string(),
///     "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
/// );
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of the canonical text of `value`.
    pub fn of(value: &Value) -> Self {
        canonical::digest(value)
    }

    /// The digest of `bytes` as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Reads the exact text form.
    ///
    /// # Errors
    /// [`Refused`] at the root for anything else: upper case, a missing prefix, white space around it.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        Self::read(text).ok_or_else(|| Refused::new("", RULE))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits without the prefix.
    pub fn hex(&self) -> String {
        self.to_string().split_off(PREFIX.len())
    }

    pub(super) fn finish(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }

    fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(PREFIX.len() + 64);
        text.push_str(PREFIX);
        for byte in self.0 {
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 15)]));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        Self::parse(text)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize_quietly(
            deserializer,
            "`sha256:` and 64 lower-case hexadecimal digits",
            |text| Self::read(&text),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;
    use serde_json::json;

    const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn only_the_exact_spelling_is_read() {
        assert_eq!(EMPTY.parse::<Digest>().unwrap().to_string(), EMPTY);
        for text in [
            "",
            "sha256:",
            &EMPTY[7..],
            &EMPTY.to_uppercase(),
            &EMPTY.replace("44", "4A"),
            &format!("{EMPTY}\n"),
            &format!(" {EMPTY}"),
            &format!("{EMPTY}0"),
            &EMPTY[..70],
            &EMPTY.replace('a', "g"),
            &EMPTY.replace("sha256", "sha512"),
            &format!("sha256:{}", "é".repeat(32)),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_refused_digest_is_not_echoed() {
        for value in [
            json!("hunter2"),
            json!(7_777),
            json!(true),
            json!(77.5),
            json!({"hunter2": 1}),
            json!(["hunter2"]),
            json!(null),
        ] {
            let error = serde_json::from_value::<Digest>(value.clone())
                .unwrap_err()
                .to_string();
            for leak in ["hunter2", "7777", "77.5", "true"] {
                assert!(!error.contains(leak), "{value}: {error}");
            }
        }
        let error = "sha256:hunter2".parse::<Digest>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn text_and_bytes_order_alike() {
        let mut digests: Vec<Digest> = (0..64).map(|n| Digest::of(&json!(n))).collect();
        let mut texts: Vec<String> = digests.iter().map(Digest::to_string).collect();
        digests.sort();
        texts.sort();
        assert_eq!(
            digests.iter().map(Digest::to_string).collect::<Vec<_>>(),
            texts
        );
    }

    #[test]
    fn a_digest_survives_json() {
        let digest = Digest::of_bytes(b"{}");
        assert_eq!(digest, Digest::of(&json!({})));
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(text, format!("\"{EMPTY}\""));
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
        assert_eq!(digest.hex(), &EMPTY[7..]);
        assert_eq!(format!("{digest:?}"), format!("Digest({EMPTY})"));
    }
}
