//! What `schemas/README.md` promises to a newcomer: one edit of a schema, and the type, its check, its documentation and
//! the reviewed list of the API follow.
//!
//! The test makes that edit on a copy of the crate and builds a program against it.

#[path = "support/generated_api.rs"]
mod generated_api;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tangle_sandbox_codegen::{Options, generate};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The one edit: an optional bounded field of a hook's command.
fn edit(schemas: &Path) {
    let file = schemas.join("profile.json");
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    schema["$defs"]["HookCommand"]["properties"]["label"] = json!({
        "$ref": "common.json#/$defs/NonEmptyText",
        "description": "What the command is called, for people.",
    });
    std::fs::write(&file, schema.to_string()).unwrap();
}

#[test]
fn a_new_field_is_documented_and_is_all_that_changes_in_the_list_of_the_api() {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("schemas"), folder.path());
    let before = generate(folder.path(), &Options::default()).unwrap();
    edit(folder.path());
    let after = generate(folder.path(), &Options::default()).unwrap();
    let (old, new) = (generated_api::list(&before), generated_api::list(&after));
    let added: Vec<&str> = difference(&new, &old);
    assert_eq!(added, ["  label: Option < NonEmptyText >"]);
    assert_eq!(difference(&old, &new), [""; 0]);
    assert!(
        after
            .types
            .contains("///What the command is called, for people.")
    );
}

/// The lines of `left` that `right` has fewer of.
fn difference<'a>(left: &'a str, right: &str) -> Vec<&'a str> {
    let count = |text: &str, line: &str| text.lines().filter(|other| *other == line).count();
    let more = |line: &&str| count(left, line) > count(right, line);
    left.lines().filter(more).collect()
}

#[test]
fn a_new_field_has_a_type_and_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["schemas", "src", "codegen/src"] {
        copy(&root().join(name), &at.join(name));
    }
    for name in ["build.rs", "codegen/Cargo.toml"] {
        std::fs::copy(root().join(name), at.join(name)).unwrap();
    }
    std::fs::copy(root().join("Cargo.lock"), at.join("Cargo.lock")).unwrap();
    std::fs::write(at.join("Cargo.toml"), manifest()).unwrap();
    edit(&at.join("schemas"));
    std::fs::create_dir(at.join("examples")).unwrap();
    std::fs::write(at.join("examples/newcomer.rs"), PROGRAM).unwrap();

    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--no-default-features"])
        .args(["--example", "newcomer"])
        .current_dir(at)
        .env("CARGO_TARGET_DIR", target())
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}");
    assert_eq!(
        said.trim(),
        "Some(\"tests\")\n/hooks/Stop/0/label: must not be empty"
    );
}

/// A target of its own, kept between runs so that only the first builds the dependencies.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer")
}

/// The manifest of the copy: the crate without what only tests, benches and examples need.
fn manifest() -> String {
    let own = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut kept = String::new();
    let mut keep = true;
    for line in own.lines() {
        if line.starts_with('[') {
            keep = !["[dev-dependencies]", "[[test]]", "[[bench]]"].contains(&line);
        }
        if keep && !line.starts_with("readme") {
            let members = line.starts_with("members = ");
            kept.push_str(if members {
                r#"members = ["codegen"]"#
            } else {
                line
            });
            kept.push('\n');
        }
    }
    kept
}

const PROGRAM: &str = r##"//! What a newcomer writes.

use tangle_sandbox::contract::read;
use tangle_sandbox::contract::types::AgentProfile;

fn main() {
    let text = |label: &str| format!(r#"{{"hooks": {{"Stop": [{{"command": "cargo test", "label": "{label}"}}]}}}}"#);
    let profile: AgentProfile = read(text("tests").as_bytes()).unwrap();
    let label = &profile.hooks.unwrap()["Stop"][0].label;
    println!("{:?}", label.as_ref().map(|label| label.as_str()));
    println!("{}", read::<AgentProfile>(text("").as_bytes()).unwrap_err());
}
"##;
