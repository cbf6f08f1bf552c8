//! What of a block is part of a request's identity (core contracts, 5.4; provider runtime, 7.3).
//!
//! A rotated key or token is the same request; another model, profile, account, seat or stored secret is another one.

use serde_json::{Value, json};

use crate::contract::canonical::utf16_order;
use crate::contract::types::{BackendConfig, RuntimeSecrets, SentBackend};

impl BackendConfig {
    /// The block without the values of its secrets: no API key, of each credential file its path and mode, of the secrets of
    /// the turn their sorted names.
    ///
    /// ```
    /// use serde_json::json;
    /// use tangle_sandbox::contract::backend;
    ///
    /// let block = backend::read(json!({ "modelId": "m", "apiKey": "k" }))?;
    /// assert_eq!(block.identity(), json!({ "model": { "model": "m" } }));
    /// # Ok::<(), backend::Refusal>(())
    /// ```
    pub fn identity(&self) -> Value {
        without_secrets(json!(self), self.runtime_secrets.as_ref())
    }
}

impl SentBackend {
    /// The block without the values of its secrets, as [`BackendConfig::identity`] gives it.
    pub fn identity(&self) -> Value {
        without_secrets(json!(self), self.runtime_secrets.as_ref())
    }
}

/// Outside of a request body secrets are written as a mark; what is left of them is taken out here.
fn without_secrets(mut block: Value, secrets: Option<&RuntimeSecrets>) -> Value {
    if let Some(model) = block.get_mut("model").and_then(Value::as_object_mut) {
        model.remove("apiKey");
        let files = model.get_mut("authFiles").and_then(Value::as_array_mut);
        for file in files.into_iter().flatten() {
            if let Some(file) = file.as_object_mut() {
                file.remove("content");
            }
        }
    }
    if let Some(secrets) = secrets {
        let mut names: Vec<&String> = secrets.keys().collect();
        names.sort_by(|left, right| utf16_order(left, right));
        block["runtimeSecrets"] = json!(names);
    }
    block
}

#[cfg(test)]
mod tests {
    use crate::contract::backend::read;
    use serde_json::{Value, json};

    fn identity(block: Value) -> Value {
        read(block).unwrap().identity()
    }

    #[test]
    fn core_5_4_blocks_that_differ_in_a_key_alone_share_an_identity() {
        let block =
            |key: &str| json!({ "type": "opencode", "model": { "model": "m", "apiKey": key } });
        assert_eq!(identity(block("one")), identity(block("two")));
        assert_eq!(
            identity(json!({ "model": { "apiKey": "k" } })),
            json!({ "model": {} })
        );
    }

    #[test]
    fn core_5_4_a_credential_file_is_its_path_and_mode() {
        let files =
            json!([{ "path": "b", "content": "x", "mode": 384 }, { "path": "a", "content": "" }]);
        assert_eq!(
            identity(json!({ "model": { "authFiles": files } })),
            json!({ "model": { "authFiles": [{ "path": "b", "mode": 384 }, { "path": "a" }] } })
        );
        assert_eq!(
            identity(json!({ "authFiles": [] })),
            json!({ "model": { "authFiles": [] } })
        );
    }

    #[test]
    fn core_5_4_secrets_of_a_turn_are_their_sorted_names() {
        let secrets = json!({ "b": "x", "A": "y", "\u{e000}": "z", "\u{1f600}": "w" });
        assert_eq!(
            identity(json!({ "runtimeSecrets": secrets })),
            json!({ "runtimeSecrets": ["A", "b", "\u{1f600}", "\u{e000}"] })
        );
    }
}
