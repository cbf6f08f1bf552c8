//! Flat spellings (core contracts, 5.1; provider runtime, 7.2).

use serde_json::{Map, Value};

use super::Refusal;
use crate::contract::canonical;
use crate::contract::check::Refused;

/// Fields that may stand on the block itself, and what they are called in its model.
const FLAT: [(&str, &str); 10] = [
    ("modelId", "model"),
    ("provider", "provider"),
    ("apiKey", "apiKey"),
    ("baseUrl", "baseUrl"),
    ("maxThinkingTokens", "maxThinkingTokens"),
    ("mode", "mode"),
    ("apiKeyEnv", "apiKeyEnv"),
    ("cliAuth", "cliAuth"),
    ("authMode", "authMode"),
    ("authFiles", "authFiles"),
];

/// Moves the flat spellings of a block into its `model`; `modelId` is `model.model`. A block without any stays as it is.
///
/// Nothing is checked besides: a value that is no block is left to its check.
///
/// # Errors
///
/// [`Refusal::GivenTwice`] where both spellings say something and not the same; a refusal at `/model` where flat fields stand
/// beside a model that is no object.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::backend;
///
/// let mut block = json!({ "type": "opencode", "modelId": "m", "model": { "provider": "p" } });
/// backend::normalise(&mut block)?;
/// assert_eq!(block, json!({ "type": "opencode", "model": { "model": "m", "provider": "p" } }));
/// # Ok::<(), backend::Refusal>(())
/// ```
pub fn normalise(block: &mut Value) -> Result<(), Refusal> {
    let Some(members) = block.as_object_mut() else {
        return Ok(());
    };
    let flat: Vec<(&'static str, &'static str, Value)> = FLAT
        .into_iter()
        .filter_map(|(flat, own)| Some((flat, own, members.remove(flat)?)))
        .collect();
    if flat.is_empty() {
        return Ok(());
    }
    let model = members
        .entry("model")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(model) = model.as_object_mut() else {
        return Err(Refused::new("/model", "must be an object")
            .by("type")
            .into());
    };
    for (field, own, value) in flat {
        match model.get(own) {
            None => {
                model.insert(own.to_owned(), value);
            }
            Some(given) if canonical::same(given, &value) => {}
            Some(_) => return Err(Refusal::GivenTwice { field }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn core_5_1_every_flat_spelling_goes_into_the_model() {
        let mut block = json!({
            "type": "opencode", "modelId": "m", "provider": "p", "apiKey": "k", "baseUrl": "u",
            "maxThinkingTokens": 1, "mode": "api", "apiKeyEnv": "E", "cliAuth": {}, "authMode": "oauth",
            "authFiles": [],
        });
        normalise(&mut block).unwrap();
        let model = json!({
            "model": "m", "provider": "p", "apiKey": "k", "baseUrl": "u", "maxThinkingTokens": 1, "mode": "api",
            "apiKeyEnv": "E", "cliAuth": {}, "authMode": "oauth", "authFiles": [],
        });
        assert_eq!(block, json!({ "type": "opencode", "model": model }));
    }

    #[test]
    fn core_5_1_one_setting_given_twice_has_to_say_the_same() {
        let mut same = json!({ "modelId": "m", "model": { "model": "m" } });
        normalise(&mut same).unwrap();
        assert_eq!(same, json!({ "model": { "model": "m" } }));
        let mut spelt = json!({ "maxThinkingTokens": 1.0, "model": { "maxThinkingTokens": 1 } });
        normalise(&mut spelt).unwrap();
        assert_eq!(spelt, json!({ "model": { "maxThinkingTokens": 1 } }));
        let mut other = json!({ "modelId": "canary", "model": { "model": "m" } });
        let refusal = normalise(&mut other).unwrap_err();
        assert_eq!(refusal.code(), "conflict");
        assert_eq!(refusal.path(), "/modelId");
        assert!(!format!("{refusal} {refusal:?}").contains("canary"));
    }

    #[test]
    fn a_block_without_flat_fields_is_left_alone() {
        for block in [json!({ "model": 5 }), json!({}), json!([]), json!(null)] {
            let mut after = block.clone();
            normalise(&mut after).unwrap();
            assert_eq!(after, block);
        }
        let refusal = normalise(&mut json!({ "model": 5, "provider": "p" })).unwrap_err();
        assert_eq!(refusal.path(), "/model");
    }
}
