//! The hash that stands for a profile on a sandbox that was primed with it (core contracts, 3.14).

use crate::contract::types::{PrimedHash, ProfileDigest};

impl PrimedHash {
    /// The 64 hexadecimal digits without `sha256:`, as they are sent.
    ///
    /// ```
    /// use tangle_sandbox::contract::types::PrimedHash;
    ///
    /// let digits = "0f".repeat(32);
    /// let answer: PrimedHash = format!("sha256:{digits}").parse()?;
    /// assert_eq!(answer.hex(), digits);
    /// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
    /// ```
    pub fn hex(&self) -> &str {
        self.strip_prefix("sha256:").unwrap_or(self)
    }

    /// Whether this is the digest of the profile itself, as the embedded deployment answers. Another deployment may hash
    /// other bytes, so that a difference says nothing.
    pub fn is_digest(&self, profile: &ProfileDigest) -> bool {
        profile.to_string().strip_prefix("sha256:") == Some(self.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn core_3_14_a_primed_hash_is_64_digits_with_or_without_its_mark() {
        let digest = ProfileDigest::of(&json!({}));
        let marked = digest.to_string();
        for text in [&marked[..], &marked[7..]] {
            let hash: PrimedHash = text.parse().unwrap();
            assert_eq!(hash.hex(), &marked[7..]);
            assert!(hash.is_digest(&digest));
            assert!(!hash.is_digest(&ProfileDigest::of(&json!({ "name": "" }))));
        }
        for text in [
            "",
            "sha256:",
            &marked[8..],
            &format!("{marked}0"),
            &marked.to_uppercase(),
            &format!(" {marked}"),
            &format!("sha512:{}", &marked[7..]),
            &format!("sha256:{marked}"),
            &format!("{marked}\n"),
        ] {
            assert!(text.parse::<PrimedHash>().is_err(), "{text:?}");
        }
    }
}
