//! The rules inside a profile that no keyword says (core contracts, 3.3, 3.5 and 3.7). Called by the generated check.

use serde_json::Value;
use url::Url;

use super::credential::{looks_like_credential, names_credential};
use super::paths::{has_reserved_segment, is_control, is_safe_executable, is_safe_relative_path};
use crate::contract::check::{Key, Refused, step};
use crate::contract::text;

const CREDENTIAL: &str = "must not look like a credential; name a stored secret instead";
const CONTROL: &str = "must not hold control characters";

/// The program of a local MCP server.
pub fn mcp_command(text: &str) -> Result<(), &'static str> {
    demand(
        is_safe_executable(text),
        "must be a program by its name or path: letters, digits and `._+-` in each segment, no `.` or `..`, no shell",
    )
}

/// The directory of a local MCP server.
pub fn mcp_directory(text: &str) -> Result<(), &'static str> {
    demand(
        text == "." || (is_safe_relative_path(text) && !has_reserved_segment(text)),
        "must be `.` or a relative path that cannot leave the workspace, without `.git` and `.sidecar`",
    )
}

/// The address of a remote MCP server.
pub fn mcp_url(text: &str) -> Result<(), &'static str> {
    let fits = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    demand(fits, "must be an http or https URL")?;
    demand(!looks_like_credential(text), CREDENTIAL)
}

/// A public configuration value.
pub fn public_text(text: &str) -> Result<(), &'static str> {
    demand(!text.chars().any(is_control), CONTROL)?;
    demand(!looks_like_credential(text), CREDENTIAL)
}

/// The name of a stored secret in a configuration value.
pub fn secret_key(text: &str) -> Result<(), &'static str> {
    demand(!text::trim(text).is_empty(), "must not be blank")?;
    public_text(text)
}

/// Variables or headers: one whose name is that of a credential has no public value.
pub fn credential_names(values: &Value) -> Result<(), Refused> {
    let public = |value: &Value| value.get("kind").is_some_and(|kind| kind == "public");
    let mut members = values.as_object().into_iter().flatten();
    match members.find(|(name, value)| public(value) && names_credential(name)) {
        Some((name, _)) => {
            let rule = "a name of a credential needs `secret-ref`, not a public value";
            let refused = Refused::new(format!("/{}", step(name)), rule);
            Err(refused.at_place(format!("/{}", Key::new(name).pointer_step())))
        }
        None => Ok(()),
    }
}

/// The ceilings of a model: no part exceeds the total.
pub fn token_ceilings(model: &Value) -> Result<(), Refused> {
    let ceiling = |name: &str| model.get(name).and_then(Value::as_u64);
    let Some(total) = ceiling("maxTotalOutputTokens") else {
        return Ok(());
    };
    for name in ["maxVisibleOutputTokens", "maxReasoningTokens"] {
        if ceiling(name).is_some_and(|part| part > total) {
            return Err(Refused::new(
                format!("/{name}"),
                "must not exceed `maxTotalOutputTokens`",
            ));
        }
    }
    Ok(())
}

fn demand(holds: bool, rule: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(rule) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::contract::check::Refused;
    use crate::contract::from_value;
    use crate::contract::types::AgentProfile;

    fn parse(profile: Value) -> Result<AgentProfile, Refused> {
        from_value(profile)
    }

    fn path(profile: Value) -> String {
        parse(profile).unwrap_err().path().to_owned()
    }

    fn server(server: Value) -> Value {
        json!({ "mcp": { "a": server } })
    }

    fn env(name: &str, value: Value) -> Value {
        server(json!({ "command": "node", "env": { name: value } }))
    }

    #[test]
    fn core_3_an_unknown_field_is_refused_and_an_empty_profile_taken() {
        let refused = parse(json!({ "name": "x", "nickname": "y" })).unwrap_err();
        assert_eq!(refused.to_string(), "unknown field `nickname`");
        assert_eq!(parse(json!({})), Ok(AgentProfile::default()));
    }

    #[test]
    fn core_3_null_is_not_absence() {
        for field in [
            "name",
            "tags",
            "prompt",
            "model",
            "harness",
            "permissions",
            "tools",
            "mcp",
            "connections",
            "subagents",
            "resources",
            "hooks",
            "modes",
            "confidential",
            "metadata",
            "extensions",
        ] {
            assert_eq!(path(json!({ field: null })), format!("/{field}"));
        }
        assert_eq!(
            path(json!({ "extensions": { "a": null } })),
            "/extensions/a"
        );
        assert!(parse(json!({ "metadata": { "a": null } })).is_ok());
    }

    #[test]
    fn core_3_a_disabled_server_has_nothing_else() {
        let disabled = json!({ "enabled": false, "url": "https://h.example" });
        assert_eq!(path(server(disabled)), "/mcp/a");
        assert!(parse(server(json!({ "enabled": false }))).is_ok());
        assert!(parse(server(json!({ "enabled": false, "metadata": { "a": 1 } }))).is_ok());
        assert!(parse(server(json!({ "enabled": true }))).is_err());
    }

    #[test]
    fn core_3_a_name_of_a_credential_needs_a_stored_secret() {
        let public = json!({ "kind": "public", "value": "1" });
        let secret = json!({ "kind": "secret-ref", "key": "K" });
        assert_eq!(path(env("API_KEY", public.clone())), "/mcp/a/env/API_KEY");
        assert!(parse(env("API_KEY", secret)).is_ok());
        assert!(parse(env("TOKENS", public.clone())).is_ok());
        let headers = json!({ "url": "https://h", "headers": { "Authorization": public } });
        assert_eq!(path(server(headers)), "/mcp/a/headers/Authorization");
    }

    #[test]
    fn core_3_an_old_name_of_a_harness_is_refused() {
        assert_eq!(path(json!({ "harness": "claude" })), "/harness");
        assert!(parse(json!({ "harness": "claude-code" })).is_ok());
    }

    #[test]
    fn core_3_3_a_part_of_the_tokens_does_not_exceed_the_total() {
        let model = |visible: u64, reasoning: u64| {
            json!({ "model": { "maxVisibleOutputTokens": visible, "maxReasoningTokens": reasoning,
                "maxTotalOutputTokens": 10 } })
        };
        assert!(parse(model(10, 10)).is_ok());
        assert_eq!(path(model(11, 11)), "/model/maxVisibleOutputTokens");
        assert_eq!(path(model(1, 11)), "/model/maxReasoningTokens");
    }

    #[test]
    fn core_3_5_a_refusal_shows_no_value() {
        let marker = "CANARY";
        for profile in [
            server(json!({ "command": format!("{marker} x") })),
            server(json!({ "command": "node", "cwd": format!("/{marker}") })),
            server(json!({ "url": format!("ftp://{marker}") })),
            server(json!({ "url": format!("https://{marker}@h") })),
            env(
                "A",
                json!({ "kind": "public", "value": format!("{marker}\n") }),
            ),
            env(
                "A",
                json!({ "kind": "public", "value": format!("Bearer {marker}") }),
            ),
            env(
                "A",
                json!({ "kind": "secret-ref", "key": format!("{marker}\u{7f}") }),
            ),
            env("A", json!({ "kind": marker, "key": "K" })),
        ] {
            let refused = parse(profile).unwrap_err();
            assert!(
                !format!("{refused} {refused:?}").contains(marker),
                "{refused}"
            );
        }
    }

    #[test]
    fn core_3_5_a_key_of_a_secret_is_measured_and_not_blank() {
        let key = |key: &str| parse(env("A", json!({ "kind": "secret-ref", "key": key })));
        assert!(key(&"k".repeat(500)).is_ok());
        assert!(key(&"😀".repeat(250)).is_ok());
        for refused in [
            "",
            " ",
            "\u{FEFF}\u{3000}",
            "a\u{0}",
            &"k".repeat(501),
            &"😀".repeat(251),
        ] {
            assert!(key(refused).is_err(), "{refused:?}");
        }
    }
}
