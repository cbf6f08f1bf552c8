//! A turn from JSON: its shape, and what each refusal of it means.

use serde_json::Value;

use super::Refusal;
use super::refusal::BACKEND;
use crate::contract::attachments;
use crate::contract::backend;
use crate::contract::check::Refused;
use crate::contract::types::TurnInput;
use crate::contract::{bounds, from_value};

/// Reads a turn. What this provider never does is refused first, by name; then the shape is checked. Whether its parts agree is
/// asked by [`TurnInput::resolve`].
///
/// # Errors
///
/// [`Refusal`]: `context-transfer-unsupported`, `native-continuation-unsupported`, `path:<path>`, `unknown-field:<names>`,
/// `backend-value`, `conflict`, `attachment_invalid`, `JSON_BOUND_VIOLATION`.
///
/// ```
/// use serde_json::json;
/// use tangle_sandbox::contract::turn;
///
/// let turn = turn::read(json!({ "prompt": "go", "turnId": "t-1" }))?.resolve()?;
/// assert!(turn.backend().is_none());
/// # Ok::<(), turn::Refusal>(())
/// ```
pub fn read(mut turn: Value) -> Result<TurnInput, Refusal> {
    if turn.get("contextTransfer").is_some() {
        return Err(Refusal::ContextTransferUnsupported);
    }
    if turn.get("nativeContinuation").is_some() {
        return Err(Refusal::NativeContinuationUnsupported);
    }
    if let Some(profile @ Value::Object(_)) = turn.get("profile") {
        bounds::profile("profile", profile).map_err(Refusal::Bound)?;
    }
    if let Some(options) = turn.get("providerOptions") {
        // Before a single field of the block is moved.
        bounds::json("providerOptions", options).map_err(|error| {
            let place = "/providerOptions";
            Refusal::Input(Refused::from(&error).under(place).of_whole(place.len()))
        })?;
    }
    if let Some(block) = turn.pointer_mut(BACKEND) {
        backend::normalise(block)?;
    }
    from_value(turn).map_err(meaning)
}

/// What a refusal of the schema means for a turn.
fn meaning(refused: Refused) -> Refusal {
    if let Some(refused) = refused.clone().within("/providerOptions/backend/profile") {
        return Refusal::BackendProfile(refused);
    }
    if let Some(refused) = refused
        .clone()
        .within("/providerOptions/backend/runtimeAttachments")
    {
        return Refusal::Backend(attachments::Refusal::Invalid(refused).into());
    }
    let in_options = refused.path() == "/providerOptions" || refused.path().starts_with(BACKEND);
    if in_options && !refused.unknown_fields().is_empty() {
        return Refusal::UnknownField(refused);
    }
    if refused.path().starts_with(BACKEND) {
        return Refusal::BackendValue(refused);
    }
    Refusal::Input(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(turn: Value) -> String {
        read(turn).map_or_else(|refusal| refusal.code().into_owned(), |_| "taken".into())
    }

    #[test]
    fn core_8_an_image_with_content_and_a_wait_of_nothing_are_refused() {
        assert_eq!(
            code(json!({ "parts": [{ "type": "image", "content": "x" }] })),
            "path:parts.0"
        );
        assert_eq!(
            code(json!({ "parts": [{ "type": "audio" }] })),
            "path:parts.0.type"
        );
        assert_eq!(code(json!({ "timeoutMs": 0 })), "path:timeoutMs");
    }

    #[test]
    fn core_8_a_prompt_of_1_mib_is_taken_and_one_more_character_is_not() {
        assert_eq!(code(json!({ "prompt": "p".repeat(1_048_574) })), "taken");
        assert_eq!(
            code(json!({ "prompt": "p".repeat(1_048_575) })),
            "path:prompt"
        );
    }

    #[test]
    fn core_8_a_large_file_fits_the_profile_of_the_turn_and_not_its_options() {
        let profile = json!({ "resources": { "files": [{ "path": "a",
            "resource": { "kind": "inline", "name": "n", "content": "a".repeat(4 << 20) } }] } });
        assert_eq!(code(json!({ "profile": profile })), "taken");
        let options = json!({ "backend": { "profile": profile } });
        assert_eq!(
            code(json!({ "providerOptions": options })),
            "path:providerOptions"
        );
        let prompt = json!({ "prompt": { "systemPrompt": "a".repeat(16_385) } });
        assert_eq!(code(json!({ "profile": prompt })), "JSON_BOUND_VIOLATION");
    }

    #[test]
    fn provider_7_1_a_context_or_a_native_session_is_refused_before_anything_else() {
        let turn = |field: &str| json!({ field: null, "temperature": 1 });
        assert_eq!(
            code(turn("contextTransfer")),
            "context-transfer-unsupported"
        );
        assert_eq!(
            code(turn("nativeContinuation")),
            "native-continuation-unsupported"
        );
    }

    #[test]
    fn provider_7_2_each_level_of_the_options_has_its_code() {
        let block = |block: Value| code(json!({ "providerOptions": { "backend": block } }));
        for (found, expected) in [
            (
                code(json!({ "providerOptions": [] })),
                "path:providerOptions",
            ),
            (
                code(json!({ "providerOptions": { "other": 1 } })),
                "unknown-field:other",
            ),
            (block(json!(null)), "backend-value"),
            (block(json!([])), "backend-value"),
            (
                block(json!({ "sudo": 1, "api": 2 })),
                "unknown-field:api, sudo",
            ),
            (block(json!({ "provider": "" })), "backend-value"),
            (
                block(json!({ "provider": "a", "model": { "provider": "b" } })),
                "conflict",
            ),
            (
                block(json!({ "profile": { "mcp": { "a": { "url": 1 } } } })),
                "path:mcp.a.url",
            ),
            (block(json!({ "profile": { "nickname": "n" } })), "path:"),
            (block(json!({ "profile": "p" })), "path:"),
            (
                block(json!({ "runtimeAttachments": {} })),
                "attachment_invalid",
            ),
            (
                block(json!({ "runtimeSecrets": { "A": 1 } })),
                "backend-value",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_refusal_of_a_turn_holds_a_value() {
        for turn in [
            json!({ "sessionId": " canary" }),
            json!({ "context": { "a": "canary".repeat(4_000) } }),
            json!({ "interactions": { "canary kind": true } }),
            json!({ "providerOptions": { "backend": { "apiKey": "canary", "model": { "apiKey": "x" } } } }),
            json!({ "profile": { "name": "canary".repeat(4_000) } }),
            json!({ "parts": [{ "type": "canary" }] }),
        ] {
            let refusal = read(turn).unwrap_err();
            let text = format!(
                "{refusal} {refusal:?} {} {}",
                refusal.code(),
                refusal.path()
            );
            assert!(!text.contains("canary"), "{text}");
        }
    }
}
