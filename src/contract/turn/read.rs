//! A turn from JSON: its shape, and what each refusal of it means.

use serde_json::Value;

use super::Refusal;
use super::refusal::{BACKEND, OPTIONS};
use crate::contract::attachments;
use crate::contract::backend;
use crate::contract::check::Refused;
use crate::contract::types::{BackendConfig, TurnInput, TurnOptions};
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
    // The turn has its shape before anyone looks into the options.
    let given = turn
        .as_object_mut()
        .and_then(|members| members.remove("providerOptions"));
    let mut turn: TurnInput = from_value(turn).map_err(Refusal::Input)?;
    turn.provider_options = given.map(options).transpose()?;
    Ok(turn)
}

/// The options of the provider: their bounds before a single field of the block is moved, then what else they hold, then the
/// block.
fn options(mut given: Value) -> Result<TurnOptions, Refusal> {
    bounds::json("providerOptions", &given).map_err(|error| {
        let refused = Refused::from(&error).under(OPTIONS);
        Refusal::Input(refused.at_place(OPTIONS))
    })?;
    let block = given
        .as_object_mut()
        .and_then(|members| members.remove("backend"));
    let mut options: TurnOptions = from_value(given).map_err(|refused| {
        let unknown = !refused.unknown_fields().is_empty();
        let refused = refused.under(OPTIONS);
        match unknown {
            true => Refusal::UnknownField(refused),
            false => Refusal::Input(refused),
        }
    })?;
    options.backend = block.map(self::block).transpose()?;
    Ok(options)
}

fn block(mut given: Value) -> Result<BackendConfig, Refusal> {
    backend::normalise(&mut given)?;
    from_value(given).map_err(meaning)
}

/// What a refusal of the schema means for a block.
fn meaning(refused: Refused) -> Refusal {
    if let Some(refused) = refused.clone().within("/profile") {
        return Refusal::BackendProfile(refused);
    }
    if let Some(refused) = refused.clone().within("/runtimeAttachments") {
        return Refusal::Backend(attachments::Refusal::Invalid(refused).into());
    }
    let unknown = !refused.unknown_fields().is_empty();
    let refused = refused.under(BACKEND);
    match unknown {
        true => Refusal::UnknownField(refused),
        false => Refusal::BackendValue(refused),
    }
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
    fn provider_10_a_code_names_a_field_as_the_turn_does() {
        let block = |block: Value| code(json!({ "providerOptions": { "backend": block } }));
        for key in ["a b", "a/b", "a~1b", "", "é", "__proto__", "a.b"] {
            assert_eq!(block(json!({ key: 1 })), format!("unknown-field:{key}"));
            let kinds = json!({ "interactions": { format!(".{key}"): true } });
            assert_eq!(code(kinds), format!("path:interactions..{key}"));
        }
        assert_eq!(
            block(json!({ "\u{e000}": 1, "\u{1f600}": 1, "b": 1, "B": 1 })),
            "unknown-field:B, b, \u{1f600}, \u{e000}"
        );
        let long = "k".repeat(513);
        assert_eq!(
            code(json!({ "interactions": { long: true } })),
            "path:interactions.(key of 513 units)"
        );
    }

    #[test]
    fn provider_10_a_path_leads_to_a_field_that_is_missing() {
        let file = json!({ "resource": { "kind": "inline", "name": "n", "content": "c" } });
        let profile = json!({ "resources": { "files": [file] } });
        let reference = json!({ "runId": "r", "environmentId": "e" });
        for (turn, expected) in [
            (
                json!({ "parts": [{ "type": "text" }] }),
                "path:parts.0.text",
            ),
            (
                json!({ "controlRef": reference }),
                "path:controlRef.provider",
            ),
            (
                json!({ "providerOptions": { "backend": { "profile": profile } } }),
                "path:resources.files.0.path",
            ),
        ] {
            assert_eq!(code(turn), expected);
        }
    }

    #[test]
    fn provider_7_the_shape_of_a_turn_comes_before_its_options_and_they_before_its_block() {
        let twice = json!({ "modelId": "a", "model": { "model": "b" } });
        let turn = |options: Value| json!({ "timeoutMs": 0, "providerOptions": options });
        for options in [
            json!({ "backend": { "sudo": 1 } }),
            json!({ "backend": twice }),
        ] {
            assert_eq!(code(turn(options)), "path:timeoutMs");
        }
        assert_eq!(
            code(json!({ "providerOptions": { "zeta": 1, "backend": twice } })),
            "unknown-field:zeta"
        );
    }

    #[test]
    fn a_key_that_looks_unlike_a_name_is_in_the_code_alone() {
        for turn in [
            json!({ "interactions": { "canary kind": true } }),
            json!({ "providerOptions": { "canary kind": true } }),
            json!({ "providerOptions": { "backend": { "canary kind": true } } }),
        ] {
            let refusal = read(turn).unwrap_err();
            assert!(refusal.code().ends_with("canary kind"));
            let text = format!("{refusal} {refusal:?} {}", refusal.path());
            assert!(!text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn no_refusal_of_a_turn_holds_a_value() {
        for turn in [
            json!({ "sessionId": " canary" }),
            json!({ "context": { "a": "canary".repeat(4_000) } }),
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
