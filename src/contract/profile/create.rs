//! Whether a create can carry a profile (core contracts, 3.13). Local: no request is made.

use serde_json::Value;

use super::paths::{has_reserved_segment, is_safe_relative_path};
use super::refusal::{Counted, ProfileRefusal};
use super::snapshot::ProfileSnapshot;
use crate::contract::canonical;
use crate::contract::check::Refused;
use crate::contract::limits::{MAX_ARRAY, MAX_FILE_PAYLOAD, MAX_INLINE_TOTAL, MAX_PAYLOAD_TOTAL};
use crate::contract::types::{
    AgentProfile, FileMount, Harness, PositiveCount, ProfileResources, ResourceInstructions,
    ResourceRef,
};

/// Checks whether a create on `harness` can carry `profile`, in the order of the steps; the first failure counts.
///
/// 1. The schema and the rules of the profile, and that the harness is known.
/// 2. The profile's own harness, if it names one, is this one.
/// 3. The harness carries out the system prompts and runs the model.
/// 4. Mounted files, in their order: safe paths, not reserved, not repeated, at most 1,024, at most 4,194,304 bytes of UTF-8
///    each.
/// 5. At most `max_bytes` bytes of canonical JSON (1,040,384 where none is given), contents of inline files not counted, and at
///    most 67,108,864 bytes of payload.
///
/// The bounds that a provider puts on metadata are another check: [`ProfileSnapshot::check_bounds`].
///
/// # Errors
///
/// [`ProfileRefusal`]: `PROFILE_UNSUPPORTED` in the first three steps, a code of file mounts in the fourth, else
/// `PAYLOAD_TOO_LARGE`.
///
/// ```
/// use tangle_sandbox::contract::profile::validate_profile_for_create;
///
/// let profile = serde_json::json!({ "prompt": { "systemPrompt": "You are a pirate." } });
/// assert!(validate_profile_for_create(&profile, "codex", None).is_ok());
/// let refusal = validate_profile_for_create(&profile, "opencode", None).unwrap_err();
/// assert_eq!(refusal.code(), "PROFILE_UNSUPPORTED");
/// assert_eq!(refusal.path(), "/prompt/systemPrompt");
/// ```
pub fn validate_profile_for_create(
    profile: &Value,
    harness: &str,
    max_bytes: Option<PositiveCount>,
) -> Result<ProfileSnapshot, ProfileRefusal> {
    let snapshot =
        ProfileSnapshot::from_value(profile.clone()).map_err(ProfileRefusal::Unsupported)?;
    let known = harness
        .parse()
        .map_err(|_| unsupported("", "the harness is not known".to_owned()))?;
    snapshot.check_for_create(known, max_bytes)?;
    Ok(snapshot)
}

impl ProfileSnapshot {
    /// The steps of [`validate_profile_for_create`] behind the first, for a profile that has passed it.
    ///
    /// # Errors
    ///
    /// As [`validate_profile_for_create`].
    pub fn check_for_create(
        &self,
        harness: Harness,
        max_bytes: Option<PositiveCount>,
    ) -> Result<(), ProfileRefusal> {
        carried_out(self.profile(), harness)?;
        if let Some(resources) = &self.resources {
            mounts(resources.files.as_deref().unwrap_or_default())?;
        }
        let limit = max_bytes.map_or(MAX_INLINE_TOTAL as u64, PositiveCount::get);
        at_most(
            Counted::Profile,
            bytes_without_files(self.document()),
            limit,
        )?;
        let payload = self.resources.as_ref().map_or(0, payload);
        at_most(Counted::Payload, payload, MAX_PAYLOAD_TOTAL as u64)
    }
}

fn unsupported(path: &str, rule: String) -> ProfileRefusal {
    ProfileRefusal::Unsupported(Refused::new(path, rule))
}

/// Whether `harness` does what the profile asks of it.
fn carried_out(profile: &AgentProfile, harness: Harness) -> Result<(), ProfileRefusal> {
    if profile.harness.is_some_and(|own| own != harness) {
        return Err(unsupported(
            "/harness",
            format!("must be `{harness}`, the harness of the create"),
        ));
    }
    let prompt = profile.prompt.as_ref();
    let support = harness.system_prompt();
    if !support.replace && prompt.is_some_and(|prompt| prompt.system_prompt.is_some()) {
        let rule = format!("`{harness}` cannot replace its system prompt");
        return Err(unsupported("/prompt/systemPrompt", rule));
    }
    if !support.append && prompt.is_some_and(|prompt| prompt.append_system_prompt.is_some()) {
        let rule = format!("`{harness}` cannot add to its system prompt");
        return Err(unsupported("/prompt/appendSystemPrompt", rule));
    }
    let model = profile
        .model
        .as_ref()
        .and_then(|model| model.default.as_deref());
    if let (Some(model), Some(provider)) = (model, harness.provider())
        && !harness.runs(model)
    {
        let rule = format!("`{harness}` runs models of `{provider}` only");
        return Err(unsupported("/model/default", rule));
    }
    Ok(())
}

fn mounts(files: &[FileMount]) -> Result<(), ProfileRefusal> {
    let mut paths = std::collections::HashMap::new();
    for (mount, file) in files.iter().enumerate() {
        // Reserved segments are safe as such; they have a code of their own.
        if !is_safe_relative_path(&file.path) {
            return Err(ProfileRefusal::MountPathInvalid { mount });
        }
        if has_reserved_segment(&file.path) {
            return Err(ProfileRefusal::MountPathReserved { mount });
        }
        if let Some(first) = paths.insert(file.path.as_str(), mount) {
            return Err(ProfileRefusal::MountDuplicatePath { mount, first });
        }
        if mount >= MAX_ARRAY {
            return Err(ProfileRefusal::MountTooMany {
                mounts: files.len(),
            });
        }
        let bytes = inline(&file.resource);
        if bytes > MAX_FILE_PAYLOAD {
            return Err(ProfileRefusal::MountTooLarge { mount, bytes });
        }
    }
    Ok(())
}

fn at_most(what: Counted, bytes: usize, limit: u64) -> Result<(), ProfileRefusal> {
    if bytes as u64 <= limit {
        return Ok(());
    }
    Err(ProfileRefusal::TooLarge { what, bytes, limit })
}

/// The bytes of the canonical text, the contents of inline files as if they were empty.
fn bytes_without_files(document: &Value) -> usize {
    let files = document
        .pointer("/resources/files")
        .and_then(Value::as_array);
    let contents = files
        .into_iter()
        .flatten()
        .filter_map(|file| file.pointer("/resource/content"));
    // The quotes of an empty text stay.
    let apart: usize = contents.map(|content| canonical::length(content) - 2).sum();
    canonical::length(document) - apart
}

/// The bytes of all payload.
fn payload(resources: &ProfileResources) -> usize {
    let files = resources.files.iter().flatten().map(|file| &file.resource);
    let lists = [
        &resources.tools,
        &resources.skills,
        &resources.agents,
        &resources.commands,
    ];
    let references = files.chain(lists.into_iter().flatten().flatten());
    let instructions = match &resources.instructions {
        Some(ResourceInstructions::Text(text)) => text.len(),
        Some(ResourceInstructions::ResourceRef(resource)) => inline(resource),
        None => 0,
    };
    references.map(inline).sum::<usize>() + instructions
}

/// The bytes of content that a resource brings along.
fn inline(resource: &ResourceRef) -> usize {
    match resource {
        ResourceRef::Inline { content, .. } => content.len(),
        ResourceRef::Github { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::from_value;
    use serde_json::json;

    fn code(profile: Value, harness: &str) -> &'static str {
        with_limit(profile, harness, None)
    }

    fn with_limit(profile: Value, harness: &str, limit: Option<u64>) -> &'static str {
        let limit = limit.map(|limit| PositiveCount::try_from(limit).unwrap());
        validate_profile_for_create(&profile, harness, limit)
            .map_or_else(|refusal| refusal.code(), |_| "ok")
    }

    fn file(path: &str, content: &str) -> Value {
        json!({ "path": path, "resource": { "kind": "inline", "name": "n", "content": content } })
    }

    fn files(files: &[Value]) -> Value {
        json!({ "resources": { "files": files, "failOnError": false } })
    }

    #[test]
    fn core_3_13_the_schema_and_the_harness_come_first() {
        assert_eq!(code(json!({}), "codex"), "ok");
        assert_eq!(
            code(json!({ "nickname": "n" }), "codex"),
            "PROFILE_UNSUPPORTED"
        );
        assert_eq!(code(json!("reference"), "codex"), "PROFILE_UNSUPPORTED");
        assert_eq!(code(json!({}), "claude"), "PROFILE_UNSUPPORTED");
        let refusal =
            validate_profile_for_create(&json!({ "harness": "codex" }), "pi", None).unwrap_err();
        assert_eq!(
            (refusal.code(), &*refusal.path()),
            ("PROFILE_UNSUPPORTED", "/harness")
        );
        assert_eq!(code(json!({ "harness": "codex" }), "codex"), "ok");
    }

    #[test]
    fn core_4_opencode_refuses_a_system_prompt_and_codex_a_model_of_another_provider() {
        let replace = json!({ "prompt": { "systemPrompt": "" } });
        let append = json!({ "prompt": { "appendSystemPrompt": "" } });
        for (harness, replaced, appended) in [
            ("opencode", "PROFILE_UNSUPPORTED", "ok"),
            ("codex", "ok", "PROFILE_UNSUPPORTED"),
            ("claude-code", "ok", "ok"),
            ("acp", "PROFILE_UNSUPPORTED", "PROFILE_UNSUPPORTED"),
        ] {
            assert_eq!(code(replace.clone(), harness), replaced, "{harness}");
            assert_eq!(code(append.clone(), harness), appended, "{harness}");
        }
        let model = |id: &str| json!({ "model": { "default": id } });
        assert_eq!(code(model("anthropic/x"), "codex"), "PROFILE_UNSUPPORTED");
        assert_eq!(code(model("default"), "codex"), "ok");
        assert_eq!(code(model("anthropic/x"), "opencode"), "ok");
    }

    #[test]
    fn core_3_13_mounts_are_checked_in_the_order_of_the_list() {
        for (path, expected) in [
            ("a/b", "ok"),
            ("../x", "FILE_MOUNT_PATH_INVALID"),
            (".", "FILE_MOUNT_PATH_INVALID"),
            ("", "FILE_MOUNT_PATH_INVALID"),
            ("../.git", "FILE_MOUNT_PATH_INVALID"),
            ("a/.git/hooks", "FILE_MOUNT_PATH_RESERVED"),
            (".sidecar", "FILE_MOUNT_PATH_RESERVED"),
        ] {
            assert_eq!(
                code(files(&[file(path, "")]), "codex"),
                expected,
                "{path:?}"
            );
        }
        let large = "x".repeat(MAX_FILE_PAYLOAD + 1);
        let profile = files(&[
            file("a", ""),
            file("b", &large),
            file("a", ""),
            file("/", ""),
        ]);
        let refusal = validate_profile_for_create(&profile, "codex", None).unwrap_err();
        assert_eq!(
            refusal,
            ProfileRefusal::MountTooLarge {
                mount: 1,
                bytes: large.len()
            }
        );
        let profile = files(&[file("a", ""), file("a", &large), file("/", "")]);
        let refusal = validate_profile_for_create(&profile, "codex", None).unwrap_err();
        assert_eq!(
            refusal,
            ProfileRefusal::MountDuplicatePath { mount: 1, first: 0 }
        );
        assert_eq!(refusal.path(), "/resources/files/1/path");
    }

    #[test]
    fn core_3_13_at_most_1024_mounts_of_at_most_4_mib() {
        let many = |count: usize| {
            let all: Vec<Value> = (0..count)
                .map(|index| file(&format!("f{index}"), ""))
                .collect();
            code(files(&all), "codex")
        };
        assert_eq!((many(1024), many(1025)), ("ok", "FILE_MOUNT_TOO_MANY"));
        let large = |bytes: usize| code(files(&[file("a", &"x".repeat(bytes))]), "codex");
        assert_eq!(
            (large(MAX_FILE_PAYLOAD), large(MAX_FILE_PAYLOAD + 1)),
            ("ok", "FILE_MOUNT_TOO_LARGE")
        );
    }

    #[test]
    fn core_3_13_contents_of_files_are_not_part_of_the_size() {
        let profile = |content: &str| files(&[file("é", content)]);
        let size = canonical::to_text(&profile("")).len() as u64;
        for content in ["", "x", "\"\n\u{1}é😀"] {
            assert_eq!(with_limit(profile(content), "codex", Some(size)), "ok");
            assert_eq!(
                with_limit(profile(content), "codex", Some(size - 1)),
                "PAYLOAD_TOO_LARGE"
            );
        }
        let instructions =
            |bytes: usize| json!({ "resources": { "instructions": "x".repeat(bytes) } });
        let around = canonical::to_text(&instructions(0)).len();
        assert_eq!(code(instructions(MAX_INLINE_TOTAL - around), "codex"), "ok");
        assert_eq!(
            code(instructions(MAX_INLINE_TOTAL - around + 1), "codex"),
            "PAYLOAD_TOO_LARGE"
        );
    }

    #[test]
    fn core_3_13_all_payload_together_is_bounded() {
        let content = "x".repeat(MAX_FILE_PAYLOAD);
        let mut all: Vec<Value> = (0..16)
            .map(|index| file(&format!("f{index}"), &content))
            .collect();
        let exact: AgentProfile = from_value(files(&all)).unwrap();
        assert_eq!(payload(&exact.resources.unwrap()), MAX_PAYLOAD_TOTAL);
        all.push(file("more", "x"));
        let refusal = validate_profile_for_create(&files(&all), "codex", None).unwrap_err();
        assert_eq!(refusal.code(), "PAYLOAD_TOO_LARGE");
        assert_eq!(
            refusal.to_string(),
            "has 67108865 bytes of payload, limit 67108864"
        );
    }

    #[test]
    fn all_payload_is_counted_once() {
        let resource = |content: &str| json!({ "kind": "inline", "name": "n", "content": content });
        let resources = json!({ "files": [file("f", "a")], "tools": [resource("é"), resource("")], "skills": [resource("bcd")],
            "agents": [resource("efghi")], "commands": [resource("0123456")], "instructions": resource("0123456789"),
            "failOnError": true });
        assert_eq!(
            payload(&from_value(resources).unwrap()),
            1 + 2 + 3 + 5 + 7 + 10
        );
        assert_eq!(
            payload(&from_value(json!({ "instructions": "é" })).unwrap()),
            2
        );
    }

    #[test]
    fn a_refusal_names_sizes_and_never_contents() {
        let content = "hunter2".repeat(MAX_FILE_PAYLOAD / 7 + 1);
        for profile in [
            files(&[file("/hunter2", "")]),
            files(&[file("hunter2/.git", "")]),
            files(&[file("hunter2", ""), file("hunter2", "")]),
            files(&[file("a", &content)]),
            json!({ "model": { "default": "hunter2/x" } }),
            json!({ "prompt": { "appendSystemPrompt": "hunter2" } }),
            json!({ "harness": "hunter2" }),
        ] {
            let refusal = validate_profile_for_create(&profile, "codex", None).unwrap_err();
            assert!(
                !format!("{refusal} {refusal:?} {}", refusal.path()).contains("hunter2"),
                "{refusal}"
            );
        }
    }
}
