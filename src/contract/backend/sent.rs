//! A caller's block as it goes over the wire (wire protocol, 4.5).

use crate::contract::types::{BackendConfig, SentBackend, SentProfile};

impl From<BackendConfig> for SentBackend {
    /// The block as the caller gave it. Every field is named here, so that one that is added to either shape cannot be
    /// forgotten.
    fn from(block: BackendConfig) -> Self {
        let BackendConfig {
            type_,
            profile,
            model,
            server,
            interactions,
            metadata,
            runtime_attachments,
            runtime_secrets,
        } = block;
        SentBackend {
            type_,
            profile: profile.map(SentProfile::from),
            model,
            server,
            interactions: interactions.map(Into::into),
            metadata,
            runtime_attachments,
            runtime_secrets,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::contract::secret::in_body;
    use crate::contract::types::{BackendConfig, SentBackend};
    use crate::contract::{backend, from_value};

    #[test]
    fn every_field_of_a_block_is_sent_as_it_was_given() {
        let block = json!({
            "type": "opencode", "profile": { "name": "p" },
            "model": { "model": "m", "apiKey": "k", "authFiles": [{ "path": "a", "content": "c" }] },
            "server": { "port": 1 }, "interactions": { "plan": false }, "metadata": { "containerType": "c" },
            "runtimeAttachments": { "mcp": {} }, "runtimeSecrets": { "A": "v" },
        });
        let sent = SentBackend::from(backend::read(block.clone()).unwrap());
        assert_eq!(in_body(|| json!(sent)), block);
        assert_eq!(json!(sent)["model"]["apiKey"], "[redacted]");
        assert_eq!(from_value::<SentBackend>(block).unwrap(), sent);
    }

    #[test]
    fn core_5_a_callers_block_takes_the_well_known_kinds_and_the_sent_one_custom_kinds_too() {
        let block = json!({ "interactions": { "acme.review": true } });
        let refused = from_value::<BackendConfig>(block.clone()).unwrap_err();
        assert_eq!(refused.unknown_fields(), ["acme.review"]);
        assert!(from_value::<SentBackend>(block).is_ok());
        let bare = json!({ "interactions": { "custom": true } });
        assert!(from_value::<SentBackend>(bare).is_err());
    }
}
