//! Runtime attachments: MCP servers that the running system binds to an agent beside its profile (core contracts, 5.3;
//! credentials, 10).
//!
//! They are never merged into the profile and never change its digest; they do count in the identity of a create and of a
//! turn.

use serde_json::Value;

use super::canonical;
use super::check::{Key, Refused};
use super::from_value;
use super::types::{AgentProfile, BackendCatalog, BackendEntry, McpServer, RuntimeAttachments};

/// Attachments that are refused. A repeat cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The shape is wrong: `mcp` is missing, a server is malformed, a value is no public text and no stored secret.
    #[error(transparent)]
    Invalid(#[from] Refused),
    /// A server is switched off. Leave it out instead.
    #[error("the attached server `{alias}` is switched off")]
    Disabled {
        /// Its alias.
        alias: Key,
    },
    /// The profile has a server of this alias too, perhaps one that is switched off. Choose another alias.
    #[error("the profile has a server `{alias}` too")]
    Conflict {
        /// The alias.
        alias: Key,
    },
    /// The backend takes no attachments, or the catalogue does not have it.
    #[error("this backend takes no runtime attachments")]
    Unsupported,
    /// A mapping changed or dropped the attachments of the input.
    #[error("the mapping does not keep the runtime attachments")]
    NotPreserved,
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(refused) => match refused.keyword() {
                Some("x-json") => refused.code(),
                _ => "attachment_invalid",
            },
            Self::Disabled { .. } => "attachment_disabled",
            Self::Conflict { .. } => "attachment_conflict",
            Self::Unsupported => "attachments_unsupported",
            Self::NotPreserved => "attachments_not_preserved",
        }
    }

    /// Where below the attachments: a JSON pointer, empty for the attachments themselves.
    pub fn path(&self) -> String {
        match self {
            Self::Invalid(refused) => refused.path().to_owned(),
            Self::Disabled { alias } | Self::Conflict { alias } => format!("/mcp/{alias}"),
            Self::Unsupported | Self::NotPreserved => String::new(),
        }
    }
}

/// Reads attachments and checks them beside `profile`.
///
/// # Errors
///
/// [`Refusal`], codes `attachment_invalid`, `JSON_BOUND_VIOLATION`, `attachment_disabled`, `attachment_conflict`.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::attachments;
/// use tangle_sandbox::contract::types::AgentProfile;
///
/// let profile: AgentProfile = serde_json::from_value(json!({ "mcp": { "co": { "enabled": false } } }))?;
/// let attached = json!({ "mcp": { "co": { "url": "https://co.example/mcp" } } });
/// assert!(attachments::read(attached.clone(), None).is_ok());
/// let refusal = attachments::read(attached, Some(&profile)).unwrap_err();
/// assert_eq!(refusal.code(), "attachment_conflict");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn read(value: Value, profile: Option<&AgentProfile>) -> Result<RuntimeAttachments, Refusal> {
    let attachments: RuntimeAttachments = from_value(value)?;
    attachments.beside(profile)?;
    Ok(attachments)
}

impl RuntimeAttachments {
    /// Checks each alias: its server is on, and `profile` has none of the same alias.
    ///
    /// # Errors
    ///
    /// `attachment_disabled` or `attachment_conflict` with the first alias that is refused.
    pub fn beside(&self, profile: Option<&AgentProfile>) -> Result<(), Refusal> {
        let own = profile.and_then(|profile| profile.mcp.as_ref());
        for (alias, server) in self.mcp.iter() {
            if matches!(server, McpServer::Disabled { .. }) {
                return Err(Refusal::Disabled {
                    alias: Key::new(alias),
                });
            }
            if own.is_some_and(|own| own.contains_key(alias)) {
                return Err(Refusal::Conflict {
                    alias: Key::new(alias),
                });
            }
        }
        Ok(())
    }

    /// Checks that the backend `name` of a catalogue that was read takes attachments; an empty map needs it too.
    ///
    /// A catalogue that cannot be read is an error of its own and never comes here.
    ///
    /// # Errors
    ///
    /// `attachments_unsupported`, also for a backend that the catalogue does not have.
    pub fn taken_by(&self, catalog: &BackendCatalog, name: &str) -> Result<(), Refusal> {
        match catalog.entry(name) {
            Some(entry) if entry.takes_attachments() => Ok(()),
            _ => Err(Refusal::Unsupported),
        }
    }
}

/// Checks that a mapping kept the attachments: both are absent, or both have the same canonical text.
///
/// # Errors
///
/// `attachments_not_preserved`.
pub fn preserved(
    asked: Option<&RuntimeAttachments>,
    mapped: Option<&RuntimeAttachments>,
) -> Result<(), Refusal> {
    let text = |attachments: Option<&RuntimeAttachments>| {
        attachments.map(|attachments| canonical::to_text(&serde_json::json!(attachments)))
    };
    if text(asked) == text(mapped) {
        Ok(())
    } else {
        Err(Refusal::NotPreserved)
    }
}

impl BackendCatalog {
    /// The entry of the backend `name`.
    pub fn entry(&self, name: &str) -> Option<&BackendEntry> {
        self.backends.iter().find(|entry| entry.type_ == name)
    }
}

impl BackendEntry {
    /// Whether this backend takes runtime MCP attachments: `capabilities.runtimeAttachments.mcp` is exactly true.
    pub fn takes_attachments(&self) -> bool {
        let capabilities = self.capabilities.as_ref();
        capabilities
            .and_then(|capabilities| capabilities.runtime_attachments.as_ref())
            .is_some_and(|attachments| attachments["mcp"] == true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(value: Value, profile: Value) -> &'static str {
        let profile: AgentProfile = from_value(profile).unwrap();
        read(value, Some(&profile)).map_or_else(|refusal| refusal.code(), |_| "taken")
    }

    #[test]
    fn credentials_10_the_map_of_servers_is_needed_and_stands_alone() {
        let none = || json!({});
        assert_eq!(code(json!({ "mcp": {} }), none()), "taken");
        for value in [
            json!({}),
            json!({ "mcp": {}, "profile": {} }),
            json!({ "mcp": [] }),
            json!({ "mcp": { "": { "url": "https://h.example" } } }),
            json!({ "mcp": { "a ": { "url": "https://h.example" } } }),
            json!({ "mcp": { "a": { "url": "https://h.example", "headers": { "Authorization": "Bearer x" } } } }),
            json!(null),
        ] {
            assert_eq!(code(value.clone(), none()), "attachment_invalid", "{value}");
        }
        let long = json!({ "mcp": { "a": { "url": "https://h.example", "metadata": { "a": "x".repeat(16_385) } } } });
        assert_eq!(code(long, none()), "JSON_BOUND_VIOLATION");
    }

    #[test]
    fn credentials_10_an_alias_of_the_profile_is_refused_also_where_it_is_off() {
        let attached = |alias: &str| json!({ "mcp": { alias: { "url": "https://h.example", "enabled": true } } });
        let profile = json!({ "mcp": { "c": { "enabled": false } } });
        assert_eq!(code(attached("c"), profile.clone()), "attachment_conflict");
        assert_eq!(code(attached("C"), profile.clone()), "taken");
        assert_eq!(code(attached("__proto__"), profile.clone()), "taken");
        let off = json!({ "mcp": { "d": { "enabled": false } } });
        assert_eq!(code(off, profile), "attachment_disabled");
    }

    #[test]
    fn credentials_10_a_backend_that_the_catalogue_lacks_takes_none() {
        let catalog: BackendCatalog = from_value(json!({ "backends": [
            { "type": "a", "capabilities": { "runtimeAttachments": { "mcp": true } } },
            { "type": "b", "capabilities": { "runtimeAttachments": { "mcp": "true" } } },
            { "type": "c", "capabilities": {} },
            { "type": "d" },
        ] }))
        .unwrap();
        let attachments = read(json!({ "mcp": {} }), None).unwrap();
        assert_eq!(attachments.taken_by(&catalog, "a"), Ok(()));
        for name in ["b", "c", "d", "e"] {
            let refused = attachments.taken_by(&catalog, name);
            assert_eq!(refused, Err(Refusal::Unsupported), "{name}");
        }
    }

    #[test]
    fn credentials_10_a_mapping_keeps_them_canonically_equal() {
        let one = |url: &str| read(json!({ "mcp": { "a": { "url": url } } }), None).unwrap();
        let (first, other) = (one("https://a.example"), one("https://b.example"));
        assert_eq!(preserved(None, None), Ok(()));
        assert_eq!(preserved(Some(&first), Some(&first.clone())), Ok(()));
        for (asked, mapped) in [
            (Some(&first), Some(&other)),
            (Some(&first), None),
            (None, Some(&first)),
        ] {
            assert_eq!(preserved(asked, mapped), Err(Refusal::NotPreserved));
        }
    }

    #[test]
    fn an_alias_that_looks_unlike_a_name_is_not_shown() {
        let value = json!({ "mcp": { "canary one": { "enabled": false } } });
        let refusal = read(value, None).unwrap_err();
        assert!(!format!("{refusal} {refusal:?} {}", refusal.path()).contains("canary"));
    }
}
