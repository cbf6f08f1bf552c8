//! A profile that passed its check and cannot change (core contracts, 3.11).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use super::intent::{CredentialIntent, CredentialIntentInvalid};
use crate::contract::bounds::{self, BoundError};
use crate::contract::check::Refused;
use crate::contract::checker::Checked as _;
use crate::contract::strict;
use crate::contract::types::{AgentProfile, ProfileDigest};

/// An agent profile that passed its check. It is shared, and nobody can change it: another profile is another snapshot.
///
/// It keeps the document beside the type, so that its digest is that of exactly what was parsed: nothing is left out and
/// nothing is added; a member that is absent and one that is empty make two documents.
///
/// Read its members through the [`AgentProfile`] that it derefs to.
///
/// ```
/// use tangle_sandbox::contract::profile::ProfileSnapshot;
///
/// let one = ProfileSnapshot::read(br#"{"name": "n", "tools": {}}"#)?;
/// let other = ProfileSnapshot::read(br#"{"tools": {}, "name": "n"}"#)?;
/// assert_eq!(one.digest(), other.digest());
/// assert_eq!(one.name.as_deref(), Some("n"));
/// assert_ne!(one.digest(), ProfileSnapshot::read(br#"{"name": "n"}"#)?.digest());
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
///
/// ```compile_fail
/// # use tangle_sandbox::contract::profile::ProfileSnapshot;
/// let mut kept = ProfileSnapshot::read(b"{}").unwrap();
/// kept.name = None;
/// ```
#[derive(Clone)]
pub struct ProfileSnapshot(Arc<Inner>);

struct Inner {
    document: Value,
    profile: AgentProfile,
    digest: ProfileDigest,
}

impl ProfileSnapshot {
    /// Checks a profile that was put together in memory.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the path and the rule (core contracts, 3.1 to 3.7), code `VALIDATION_ERROR`.
    pub fn new(profile: &AgentProfile) -> Result<Self, Refused> {
        let document = serde_json::to_value(profile).map_err(|_| no_profile())?;
        Self::from_value(document)
    }

    /// Reads a profile.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and for text that is no strict JSON: repeated keys, lone surrogates, more than 512 levels.
    pub fn read(bytes: &[u8]) -> Result<Self, Refused> {
        Self::from_value(strict::parse(bytes)?)
    }

    /// The same for a profile that is JSON already.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_value(document: Value) -> Result<Self, Refused> {
        AgentProfile::node().check(&document)?;
        // The check has passed, so that what fails here is a shape that only the type knows.
        let profile = AgentProfile::deserialize(&document).map_err(|_| no_profile())?;
        let digest = ProfileDigest::of(&document);
        Ok(Self(Arc::new(Inner {
            document,
            profile,
            digest,
        })))
    }

    /// The profile.
    pub fn profile(&self) -> &AgentProfile {
        &self.0.profile
    }

    /// The document that was parsed.
    pub fn document(&self) -> &Value {
        &self.0.document
    }

    /// The digest of the document (core contracts, 3.11).
    pub fn digest(&self) -> ProfileDigest {
        self.0.digest
    }

    /// Who pays for the model.
    ///
    /// # Errors
    ///
    /// [`CredentialIntentInvalid`], code `credential_intent_invalid`, where the profile says something else than `managed` or
    /// `subscription`.
    pub fn credential_intent(&self) -> Result<CredentialIntent, CredentialIntentInvalid> {
        CredentialIntent::read(&self.0.document)
    }

    /// Checks the bounds of a provider: contents of files and inline resources in bytes, each and together, everything else as
    /// metadata (core contracts, 3.12). `label` names the field in the error.
    ///
    /// # Errors
    ///
    /// [`BoundError`], code `JSON_BOUND_VIOLATION`, at the first place in the order of the keys.
    pub fn check_bounds(&self, label: &str) -> Result<(), BoundError> {
        bounds::profile(label, &self.0.document)
    }
}

fn no_profile() -> Refused {
    Refused::new("", "is no AgentProfile")
}

impl Deref for ProfileSnapshot {
    type Target = AgentProfile;

    fn deref(&self) -> &AgentProfile {
        &self.0.profile
    }
}

impl PartialEq for ProfileSnapshot {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl Eq for ProfileSnapshot {}

impl fmt::Debug for ProfileSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProfileSnapshot")
            .field(&self.0.digest)
            .finish()
    }
}

impl AgentProfile {
    /// The digest of this profile (core contracts, 3.11).
    ///
    /// # Errors
    ///
    /// [`Refused`] where the profile breaks a rule that its type cannot hold, such as a number that is not finite.
    pub fn digest(&self) -> Result<ProfileDigest, Refused> {
        ProfileSnapshot::new(self).map(|snapshot| snapshot.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{canonical, limits};
    use serde_json::json;

    fn digest(text: &str) -> ProfileDigest {
        ProfileSnapshot::read(text.as_bytes()).unwrap().digest()
    }

    #[test]
    fn core_3_the_order_of_keys_is_not_part_of_the_digest_and_emptiness_is() {
        let plain = digest(r#"{"name": "n", "version": "1"}"#);
        assert_eq!(plain, digest(r#"{"version": "\u0031", "name": "n"}"#));
        let mut all = vec![plain];
        for empty in [
            r#""tools": {}"#,
            r#""tags": []"#,
            r#""model": {}"#,
            r#""description": """#,
        ] {
            let text = format!(r#"{{"name": "n", "version": "1", {empty}}}"#);
            let snapshot = ProfileSnapshot::read(text.as_bytes()).unwrap();
            // What the type writes is the document again: an empty member is not lost.
            assert_eq!(snapshot.profile().digest(), Ok(snapshot.digest()));
            assert!(!all.contains(&snapshot.digest()));
            all.push(snapshot.digest());
        }
    }

    #[test]
    fn core_3_a_mounted_file_may_hold_4_mib_and_a_prompt_16384_units() {
        let rule = |document: Value| {
            let snapshot = ProfileSnapshot::from_value(document).unwrap();
            snapshot
                .check_bounds("profile")
                .err()
                .map(|error| error.violation().rule().as_str())
        };
        let file = |bytes: usize| {
            json!({ "resources": { "files": [{ "path": "a", "resource":
                { "kind": "inline", "name": "a", "content": "x".repeat(bytes) } }] } })
        };
        assert_eq!(rule(file(limits::MAX_FILE_PAYLOAD)), None);
        assert_eq!(rule(file(limits::MAX_FILE_PAYLOAD + 1)), Some("payload"));
        let prompt = |units: usize| json!({ "prompt": { "systemPrompt": "x".repeat(units) } });
        assert_eq!(rule(prompt(limits::MAX_STRING)), None);
        assert_eq!(rule(prompt(limits::MAX_STRING + 1)), Some("string"));
    }

    #[test]
    fn a_profile_of_500_levels_survives_type_and_json() {
        let deep = (0..500).fold(json!(1), |inner, _| json!({ "n": inner }));
        let server = json!({ "enabled": false, "metadata": { "deep": deep } });
        let document = json!({ "metadata": { "deep": deep }, "mcp": { "a": server } });
        let snapshot = ProfileSnapshot::from_value(document.clone()).unwrap();
        let again = serde_json::to_value(snapshot.profile()).unwrap();
        assert_eq!(canonical::to_text(&again), canonical::to_text(&document));
        assert_eq!(snapshot.profile().digest(), Ok(snapshot.digest()));
    }

    #[test]
    fn a_profile_put_together_in_memory_is_checked() {
        let steps = crate::contract::types::Subagent {
            description: Some(String::new()),
            ..Default::default()
        };
        let mut profile = AgentProfile {
            subagents: Some([("a".to_owned(), steps)].into()),
            ..Default::default()
        };
        assert_eq!(
            profile.digest(),
            Ok(digest(r#"{"subagents": {"a": {"description": ""}}}"#))
        );
        let connection = crate::contract::types::ProfileConnection {
            alias: None,
            capabilities: Vec::new(),
            connection_id: "c".parse().unwrap(),
        };
        profile.connections = Some(vec![connection]);
        assert_eq!(
            profile.digest().unwrap_err().path(),
            "/connections/0/capabilities"
        );
    }

    #[test]
    fn a_snapshot_shows_its_digest_and_not_the_profile() {
        let snapshot = ProfileSnapshot::read(br#"{"name": "hunter2"}"#).unwrap();
        assert_eq!(
            format!("{snapshot:?}"),
            format!("ProfileSnapshot({:?})", snapshot.digest())
        );
        assert_eq!(snapshot, snapshot.clone());
    }
}
