//! Programs that must not compile, on any toolchain: code, line and first line of the first message.
//!
//! Each program ends with `//~ CODE LINE MESSAGE`. All of them are checked in one run of cargo, as the binaries of a scratch
//! package, since the first line of a message changes far more rarely than the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

type Header = (String, u64, String);

#[test]
fn refused_programs_show_the_expected_header() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().unwrap();
    let expected = expected(here);
    assert!(expected.len() >= 14, "only {} programs", expected.len());
    let found = compile(root, &expected);
    let wrong: Vec<String> = expected
        .iter()
        .filter(|(name, header)| found.get(*name) != Some(header))
        .map(|(name, header)| {
            format!(
                "{name}:\n  expected {header:?}\n  found    {:?}",
                found.get(name)
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Name of each program and its expected header.
fn expected(folder: &Path) -> BTreeMap<String, Header> {
    let mut programs = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("//~ "))
                .unwrap_or_else(|| panic!("{name} has no line `//~ CODE LINE MESSAGE`"));
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap().to_owned();
            programs.insert(name, (word(), word().parse().unwrap(), word()));
        }
    }
    programs
}

/// Checks every program and gives the header of its first error.
fn compile(root: &Path, programs: &BTreeMap<String, Header>) -> BTreeMap<String, Header> {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ui-headers");
    std::fs::create_dir_all(&scratch).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"ui-headers\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\ntangle-sandbox = {{ path = {root:?} }}\nserde_json = \"1\"\n"
    );
    for name in programs.keys() {
        let path = root.join("ui-tests").join(format!("{name}.rs"));
        manifest.push_str(&format!(
            "\n[[bin]]\nname = \"{name}\"\npath = {path:?}\ntest = false\n"
        ));
    }
    std::fs::write(scratch.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root.join("Cargo.lock"), scratch.join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["check", "--bins", "--keep-going", "--offline", "--quiet"])
        .arg("--message-format=json")
        .current_dir(&scratch)
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(report) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let message = &report["message"];
        if message["level"] != "error" || !message["code"].is_object() {
            continue;
        }
        let name = report["target"]["name"].as_str().unwrap().to_owned();
        let span = message["spans"].as_array().unwrap();
        let primary = span.iter().find(|span| span["is_primary"] == true).unwrap();
        let header = (
            message["code"]["code"].as_str().unwrap().to_owned(),
            primary["line_start"].as_u64().unwrap(),
            message["message"].as_str().unwrap().to_owned(),
        );
        found.entry(name).or_insert(header);
    }
    assert!(
        !found.is_empty(),
        "cargo reported nothing: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    found
}
