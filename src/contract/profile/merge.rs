//! Two profiles made one (core contracts, 3.9).

use crate::contract::check::Refused;
use crate::contract::types::{AgentProfile, ProfileConnection, ProfilePrompt, ProfileResources};

impl AgentProfile {
    /// This profile with `overlay` laid over it.
    ///
    /// The overlay wins field by field, where it has a value. Lists of instructions, connections and resources are joined, this
    /// profile's first; an addition to the system prompt is joined by a blank line; maps are merged entry by entry, one level
    /// deep; everything else is replaced whole. What neither has stays absent.
    ///
    /// # Errors
    ///
    /// [`Refused`] at the second of two connections that come to have one alias.
    ///
    /// ```
    /// use tangle_sandbox::contract::profile::ProfileSnapshot;
    ///
    /// let base = ProfileSnapshot::read(br#"{"name": "a", "tools": {"Read": true, "Bash": true}}"#)?;
    /// let overlay = ProfileSnapshot::read(br#"{"name": "b", "tools": {"Bash": false}}"#)?;
    /// let merged = ProfileSnapshot::new(&base.merged_with(&overlay)?)?;
    /// let expected = br#"{"name": "b", "tools": {"Read": true, "Bash": false}}"#;
    /// assert_eq!(merged, ProfileSnapshot::read(expected)?);
    /// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
    /// ```
    pub fn merged_with(&self, overlay: &Self) -> Result<Self, Refused> {
        let connections = joined(&self.connections, &overlay.connections);
        unique_aliases(connections.as_deref().unwrap_or_default())?;
        Ok(Self {
            name: later(&self.name, &overlay.name),
            description: later(&self.description, &overlay.description),
            version: later(&self.version, &overlay.version),
            tags: later(&self.tags, &overlay.tags),
            prompt: both(&self.prompt, &overlay.prompt, prompts),
            model: later(&self.model, &overlay.model),
            harness: later(&self.harness, &overlay.harness),
            permissions: entries(&self.permissions, &overlay.permissions),
            tools: entries(&self.tools, &overlay.tools),
            mcp: entries(&self.mcp, &overlay.mcp),
            connections,
            subagents: entries(&self.subagents, &overlay.subagents),
            resources: both(&self.resources, &overlay.resources, resources),
            hooks: entries(&self.hooks, &overlay.hooks),
            modes: entries(&self.modes, &overlay.modes),
            confidential: later(&self.confidential, &overlay.confidential),
            metadata: entries(&self.metadata, &overlay.metadata),
            extensions: entries(&self.extensions, &overlay.extensions),
        })
    }
}

fn prompts(base: &ProfilePrompt, overlay: &ProfilePrompt) -> ProfilePrompt {
    let paragraphs = |base: &String, overlay: &String| match (base.as_str(), overlay.as_str()) {
        ("", only) | (only, "") => only.to_owned(),
        (base, overlay) => format!("{base}\n\n{overlay}"),
    };
    ProfilePrompt {
        system_prompt: later(&base.system_prompt, &overlay.system_prompt),
        append_system_prompt: both(
            &base.append_system_prompt,
            &overlay.append_system_prompt,
            paragraphs,
        ),
        instructions: joined(&base.instructions, &overlay.instructions),
    }
}

fn resources(base: &ProfileResources, overlay: &ProfileResources) -> ProfileResources {
    ProfileResources {
        files: joined(&base.files, &overlay.files),
        tools: joined(&base.tools, &overlay.tools),
        skills: joined(&base.skills, &overlay.skills),
        agents: joined(&base.agents, &overlay.agents),
        commands: joined(&base.commands, &overlay.commands),
        instructions: later(&base.instructions, &overlay.instructions),
        fail_on_error: later(&base.fail_on_error, &overlay.fail_on_error),
    }
}

fn unique_aliases(connections: &[ProfileConnection]) -> Result<(), Refused> {
    let mut seen = std::collections::HashSet::new();
    let repeated = connections.iter().position(|connection| {
        connection
            .alias
            .as_ref()
            .is_some_and(|alias| !seen.insert(alias))
    });
    match repeated {
        Some(index) => Err(Refused::new(
            format!("/connections/{index}/alias"),
            "must not be the alias of another connection",
        )),
        None => Ok(()),
    }
}

/// What the overlay has, else what the base has.
fn later<T: Clone>(base: &Option<T>, overlay: &Option<T>) -> Option<T> {
    overlay.as_ref().or(base.as_ref()).cloned()
}

/// What both have made one, or what one of them has.
fn both<T: Clone>(
    base: &Option<T>,
    overlay: &Option<T>,
    merge: impl FnOnce(&T, &T) -> T,
) -> Option<T> {
    match (base, overlay) {
        (Some(base), Some(overlay)) => Some(merge(base, overlay)),
        _ => later(base, overlay),
    }
}

fn joined<T: Clone>(base: &Option<Vec<T>>, overlay: &Option<Vec<T>>) -> Option<Vec<T>> {
    both(base, overlay, |base, overlay| {
        [base.as_slice(), overlay].concat()
    })
}

/// The entries of both; that of the overlay where both have one.
fn entries<M, V>(base: &Option<M>, overlay: &Option<M>) -> Option<M>
where
    M: Clone + IntoIterator<Item = (String, V)> + Extend<(String, V)>,
{
    both(base, overlay, |base, overlay| {
        let mut merged = base.clone();
        merged.extend(overlay.clone());
        merged
    })
}

#[cfg(test)]
mod tests {
    use crate::contract::check::Refused;
    use crate::contract::from_value;
    use crate::contract::types::AgentProfile;
    use serde_json::{Value, json};

    fn merged(base: Value, overlay: Value) -> Result<Value, Refused> {
        let (base, overlay): (AgentProfile, AgentProfile) =
            (from_value(base).unwrap(), from_value(overlay).unwrap());
        base.merged_with(&overlay).map(|merged| json!(merged))
    }

    #[test]
    fn core_3_9_the_overlay_wins_where_it_has_a_value() {
        let base = json!({ "name": "a", "version": "1", "tags": ["a"], "harness": "codex",
            "model": { "default": "m", "small": "s" }, "confidential": { "tee": "tdx" } });
        let overlay =
            json!({ "name": "", "tags": [], "model": { "small": "t" }, "confidential": {} });
        let expected = json!({ "name": "", "version": "1", "tags": [], "harness": "codex", "model": { "small": "t" },
            "confidential": {} });
        assert_eq!(merged(base.clone(), overlay), Ok(expected));
        assert_eq!(merged(base.clone(), json!({})), Ok(base.clone()));
        assert_eq!(merged(json!({}), base.clone()), Ok(base));
        assert_eq!(merged(json!({}), json!({})), Ok(json!({})));
    }

    #[test]
    fn core_3_9_additions_to_the_system_prompt_are_joined_by_a_blank_line() {
        let prompt = |append: &str, instruction: &str| json!({ "prompt": { "systemPrompt": append, "appendSystemPrompt": append, "instructions": [instruction] } });
        let both = merged(prompt("a", "i"), prompt("b", "j")).unwrap();
        let expected = json!({ "systemPrompt": "b", "appendSystemPrompt": "a\n\nb", "instructions": ["i", "j"] });
        assert_eq!(both["prompt"], expected);
        for (base, overlay, joined) in [("", "b", "b"), ("a", "", "a"), ("", "", "")] {
            let prompt = merged(prompt(base, ""), prompt(overlay, "")).unwrap();
            assert_eq!(prompt["prompt"]["appendSystemPrompt"], joined);
        }
        assert_eq!(
            merged(json!({ "prompt": {} }), json!({ "prompt": {} })),
            Ok(json!({ "prompt": {} }))
        );
    }

    #[test]
    fn core_3_9_maps_are_merged_one_level_deep() {
        for field in ["metadata", "extensions"] {
            let base = json!({ field: { "a": { "x": 1 }, "b": { "x": 1 } } });
            let overlay = json!({ field: { "b": { "y": 2 }, "c": {} } });
            let expected = json!({ field: { "a": { "x": 1 }, "b": { "y": 2 }, "c": {} } });
            assert_eq!(merged(base, overlay), Ok(expected));
        }
        let base = json!({ "permissions": { "a": { "x": "ask" } }, "tools": { "t": true }, "mcp": { "m": { "command": "node" } },
            "subagents": { "s": { "model": "m" } }, "hooks": { "h": [{ "command": "a" }] }, "modes": { "p": { "model": "m" } } });
        let overlay = json!({ "permissions": { "a": { "y": "deny" } }, "tools": { "t": false }, "mcp": { "m": { "enabled": false } },
            "subagents": { "s": {} }, "hooks": { "h": [] }, "modes": { "p": {} } });
        assert_eq!(merged(base, overlay.clone()), Ok(overlay));
    }

    #[test]
    fn core_3_9_lists_of_resources_are_joined_and_instructions_replaced() {
        let resources = |name: &str| {
            let resource = json!({ "kind": "github", "path": name });
            json!({ "resources": { "files": [{ "path": name, "resource": resource }], "tools": [resource],
                "skills": [resource], "agents": [resource], "commands": [resource], "instructions": name, "failOnError": true } })
        };
        let both = merged(resources("a"), resources("b")).unwrap();
        for list in ["files", "tools", "skills", "agents", "commands"] {
            let paths: Vec<&Value> = both["resources"][list]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| &item["path"])
                .collect();
            assert_eq!(paths, ["a", "b"], "{list}");
        }
        assert_eq!(both["resources"]["instructions"], "b");
        let kept = merged(
            resources("a"),
            json!({ "resources": { "failOnError": false } }),
        )
        .unwrap();
        assert_eq!(kept["resources"]["instructions"], "a");
        assert_eq!(kept["resources"]["failOnError"], false);
    }

    #[test]
    fn core_3_9_two_connections_do_not_share_an_alias() {
        let connection = |alias: Value| {
            let mut connection = json!({ "connectionId": "c", "capabilities": ["a"] });
            if !alias.is_null() {
                connection["alias"] = alias;
            }
            json!({ "connections": [connection] })
        };
        let refused = merged(connection(json!("m")), connection(json!("m"))).unwrap_err();
        assert_eq!(refused.path(), "/connections/1/alias");
        for (base, overlay) in [(json!("m"), json!("n")), (Value::Null, Value::Null)] {
            let both = merged(connection(base), connection(overlay)).unwrap();
            assert_eq!(both["connections"].as_array().unwrap().len(), 2);
        }
    }
}
