//! Who pays for the model of a profile (credentials, 1; core contracts, 3.4).

use serde_json::{Map, Value};
use thiserror::Error;

use crate::contract::types::{AgentProfile, CredentialSource};

/// What a profile says about who pays for its model.
///
/// A profile that says nothing is managed, and still not the same as one that says `managed`: static references to an API
/// credential apply to the first only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialIntent {
    source: CredentialSource,
    explicit: bool,
}

/// The profile says something about its credential source that is neither `managed` nor `subscription`.
///
/// Usually a misspelt value: letter case and white space count. Nothing is provisioned for such a profile; repeat with a
/// profile that says one of the two, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{path}{}{rule}", if path.is_empty() { "" } else { ": " })]
pub struct CredentialIntentInvalid {
    path: &'static str,
    rule: &'static str,
}

impl CredentialIntentInvalid {
    /// `credential_intent_invalid`.
    pub fn code(&self) -> &'static str {
        "credential_intent_invalid"
    }

    /// Where, as a JSON pointer.
    pub fn path(&self) -> &'static str {
        self.path
    }
}

impl CredentialIntent {
    /// Nothing is said.
    const UNMARKED: Self = Self {
        source: CredentialSource::Managed,
        explicit: false,
    };

    /// Reads the intent of a profile that is JSON, whatever else its schema says of it.
    ///
    /// # Errors
    ///
    /// [`CredentialIntentInvalid`], code `credential_intent_invalid`: the profile, its model or the metadata of its model is no
    /// object, or the value is neither `managed` nor `subscription`.
    ///
    /// ```
    /// use tangle_sandbox::contract::profile::CredentialIntent;
    /// use tangle_sandbox::contract::types::CredentialSource;
    ///
    /// let profile = serde_json::json!({ "model": { "metadata": { "credentialSource": "subscription" } } });
    /// assert_eq!(CredentialIntent::read(&profile)?.source(), CredentialSource::Subscription);
    /// # Ok::<(), tangle_sandbox::contract::profile::CredentialIntentInvalid>(())
    /// ```
    pub fn read(profile: &Value) -> Result<Self, CredentialIntentInvalid> {
        let profile = object(profile, "")?;
        let Some(model) = profile.get("model") else {
            return Ok(Self::UNMARKED);
        };
        let Some(metadata) = object(model, "/model")?.get("metadata") else {
            return Ok(Self::UNMARKED);
        };
        Self::of_metadata(object(metadata, "/model/metadata")?)
    }

    fn of_metadata(metadata: &Map<String, Value>) -> Result<Self, CredentialIntentInvalid> {
        let source = match metadata.get("credentialSource") {
            None => return Ok(Self::UNMARKED),
            Some(Value::String(source)) => source.parse(),
            Some(_) => "".parse(),
        };
        source
            .map(|source| Self {
                source,
                explicit: true,
            })
            .map_err(|_| CredentialIntentInvalid {
                path: "/model/metadata/credentialSource",
                rule: "must be `managed` or `subscription`",
            })
    }

    /// Who pays.
    pub fn source(self) -> CredentialSource {
        self.source
    }

    /// Whether the profile says so itself, even where it says `managed`.
    pub fn is_explicit(self) -> bool {
        self.explicit
    }
}

impl AgentProfile {
    /// What this profile says about who pays for its model.
    ///
    /// # Errors
    ///
    /// [`CredentialIntentInvalid`], code `credential_intent_invalid`, where it says something else than `managed` or
    /// `subscription`.
    pub fn credential_intent(&self) -> Result<CredentialIntent, CredentialIntentInvalid> {
        let metadata = self
            .model
            .as_ref()
            .and_then(|model| model.metadata.as_ref());
        match metadata {
            Some(metadata) => CredentialIntent::of_metadata(metadata),
            None => Ok(CredentialIntent::UNMARKED),
        }
    }

    /// Who pays for the model of this profile; managed where it says nothing.
    ///
    /// # Errors
    ///
    /// As [`credential_intent`](Self::credential_intent).
    pub fn credential_source(&self) -> Result<CredentialSource, CredentialIntentInvalid> {
        self.credential_intent().map(CredentialIntent::source)
    }
}

fn object<'a>(
    value: &'a Value,
    path: &'static str,
) -> Result<&'a Map<String, Value>, CredentialIntentInvalid> {
    value.as_object().ok_or(CredentialIntentInvalid {
        path,
        rule: "must be an object",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::profile::ProfileSnapshot;
    use serde_json::json;

    fn marked(source: Value) -> Value {
        json!({ "model": { "metadata": { "credentialSource": source } } })
    }

    /// By the document and by the type, which must agree.
    fn intent(profile: Value) -> Result<(CredentialSource, bool), CredentialIntentInvalid> {
        let read = CredentialIntent::read(&profile);
        if let Ok(snapshot) = ProfileSnapshot::from_value(profile) {
            assert_eq!(snapshot.profile().credential_intent(), read);
            assert_eq!(snapshot.credential_intent(), read);
            assert_eq!(
                snapshot.credential_source(),
                read.map(CredentialIntent::source)
            );
        }
        read.map(|intent| (intent.source(), intent.is_explicit()))
    }

    #[test]
    fn credentials_1_a_profile_that_says_nothing_is_managed() {
        for profile in [
            json!({}),
            json!({ "model": { "provider": "anthropic" }, "harness": "claude-code" }),
            json!({ "model": { "metadata": {} } }),
            json!({ "metadata": { "credentialSource": "subscription" } }),
        ] {
            assert_eq!(intent(profile), Ok((CredentialSource::Managed, false)));
        }
        assert_eq!(
            intent(marked(json!("managed"))),
            Ok((CredentialSource::Managed, true))
        );
        assert_eq!(
            intent(marked(json!("subscription"))),
            Ok((CredentialSource::Subscription, true))
        );
    }

    #[test]
    fn credentials_1_any_other_value_is_refused_and_never_lowered() {
        for value in [
            json!("Subscription"),
            json!("subscription "),
            json!(null),
            json!(1),
            json!({}),
            json!(""),
            json!(true),
            json!(["managed"]),
        ] {
            let refused = intent(marked(value)).unwrap_err();
            assert_eq!(refused.code(), "credential_intent_invalid");
            assert_eq!(refused.path(), "/model/metadata/credentialSource");
        }
        for profile in [
            json!("p"),
            json!(null),
            json!([]),
            json!({ "model": null }),
            json!({ "model": [] }),
            json!({ "model": { "metadata": null } }),
            json!({ "model": { "metadata": [] } }),
        ] {
            let refused = intent(profile).unwrap_err();
            assert_eq!(refused.code(), "credential_intent_invalid");
            assert!(!refused.to_string().starts_with(':'), "{refused}");
        }
    }

    #[test]
    fn core_3_an_odd_credential_source_parses_and_hashes_and_its_reader_refuses_it() {
        let snapshot = ProfileSnapshot::from_value(marked(json!(null))).unwrap();
        assert_eq!(snapshot.profile().digest(), Ok(snapshot.digest()));
        let refused = snapshot.credential_intent().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "/model/metadata/credentialSource: must be `managed` or `subscription`"
        );
    }
}
