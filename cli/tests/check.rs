//! `tangle-sandbox check` against the test vectors of the specification, and as a person uses it.

#[allow(
    dead_code,
    unused_imports,
    reason = "the runner of the vectors is more than what is used here"
)]
#[path = "../../tests/support/vectors/mod.rs"]
mod vectors;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tangle_sandbox::contract::bounds;
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::strict;
use vectors::{Dialect, expand};

fn check(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tangle-sandbox"))
        .arg("check")
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The verdict of the command on one document, which its exit code repeats.
fn verdict(contract: &str, document: &[u8]) -> Value {
    let output = check(&[contract], document);
    let text = String::from_utf8(output.stdout).unwrap();
    let verdict = strict::parse(text.as_bytes()).unwrap_or_else(|_| {
        panic!(
            "{contract}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    assert_eq!(verdict["contract"], contract);
    let code = i32::from(verdict["accepted"] != true);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "one JSON object");
    verdict
}

/// The cases of a topic, their generators expanded.
fn cases(topic: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let bytes = std::fs::read(root.join(format!("{topic}.json"))).unwrap();
    let file = strict::parse_document(&bytes).unwrap();
    let Some(Document::Array(cases)) = file.get("cases") else {
        panic!("{topic} has no cases");
    };
    let dialect = Dialect::of(topic);
    let expanded = cases.iter().map(|case| expand(dialect, case).unwrap());
    expanded.map(Document::into_value).collect()
}

/// Gives every case that `pick` takes a document from to the command and compares what the case says.
fn agrees(contract: &str, topic: &str, pick: impl Fn(&Value) -> Option<&Value>) -> usize {
    let mut compared = 0;
    for case in &cases(topic) {
        let Some(document) = pick(case) else {
            continue;
        };
        compared += 1;
        let name = format!("{contract}: {topic}: {}", case["name"]);
        let verdict = verdict(contract, document.to_string().as_bytes());
        assert_eq!(verdict["accepted"], case["accept"], "{name}: {verdict}");
        if case["accept"] == true {
            assert!(verdict.get("document").is_some(), "{name}");
            if let (Some(expected), Some(found)) = (case.get("digest"), verdict.get("digest")) {
                assert_eq!(found, expected, "{name}");
            }
            continue;
        }
        for member in ["path", "rule", "code"] {
            assert!(verdict[member].is_string(), "{name}: {member}");
        }
        if let Some(reason) = case.get("reason") {
            assert_eq!(&verdict["code"], reason, "{name}");
        }
    }
    compared
}

fn input(case: &Value) -> Option<&Value> {
    case.get("input")
}

#[test]
fn profiles_are_taken_and_refused_as_the_vectors_say() {
    assert_eq!(agrees("profile", "core-profile", input), 208);
}

#[test]
fn backend_blocks_are_taken_and_refused_as_the_vectors_say() {
    // The turns that say nothing but a block, so that nothing else can refuse them.
    let block = |case: &'_ Value| -> bool {
        let turn = case["input"].as_object();
        turn.is_some_and(|turn| {
            turn.keys()
                .all(|key| ["prompt", "providerOptions"].contains(&key.as_str()))
                && turn.get("providerOptions").is_some_and(|options| {
                    options["backend"].is_object()
                        && options.as_object().unwrap().len() == 1
                        // As options of a turn the whole is bounded besides.
                        && bounds::json("options", options).is_ok()
                })
        })
    };
    let compared = agrees("backend-config", "core-turn-input", |case| {
        block(case).then(|| &case["input"]["providerOptions"]["backend"])
    });
    assert!(compared >= 60, "{compared}");
    for case in cases("core-turn-input") {
        if let (true, Some(identity)) = (block(&case), case.get("identity")) {
            let document = case["input"]["providerOptions"]["backend"].to_string();
            let verdict = verdict("backend-config", document.as_bytes());
            let expected = Digest::of(identity).to_string();
            assert_eq!(verdict["digest"], expected, "{}", case["name"]);
        }
    }
}

#[test]
fn create_inputs_are_taken_and_refused_as_the_vectors_say() {
    assert_eq!(agrees("create-input", "core-create-input", input), 73);
    let mapped =
        |case: &'_ Value| case["group"] != "create-digest" || case["input"]["profile"].is_object();
    let compared = agrees("create-input", "provider-runtime-create", |case| {
        mapped(case).then(|| &case["input"])
    });
    assert!(compared >= 42, "{compared}");
}

#[test]
fn turn_inputs_are_taken_and_refused_as_the_vectors_say() {
    assert_eq!(agrees("turn-input", "core-turn-input", input), 147);
    let compared = agrees("turn-input", "provider-runtime-request-digest", |case| {
        (case["group"] == "refused").then(|| &case["input"])
    });
    assert_eq!(compared, 41);
}

#[test]
fn capability_documents_are_taken_and_refused_as_the_vectors_say() {
    assert_eq!(
        agrees("capabilities-environment", "core-capabilities", input),
        80
    );
    assert_eq!(
        agrees("capabilities-provider", "core-capabilities", input),
        80
    );
    let compared = agrees(
        "capabilities-deployment",
        "provider-runtime-capabilities",
        |case| {
            let disclosed = ["document", "nothing"]
                .iter()
                .any(|group| case["group"] == *group);
            disclosed.then(|| &case["document"])
        },
    );
    assert!(compared >= 37, "{compared}");
}

#[test]
fn what_a_deployment_proves_is_named() {
    let document = br#"{"dispatch": {"runControlRef": true, "executionIdOnAdmission": true}, "runs": {"eventReplay": 1}}"#;
    let verdict = verdict("capabilities-deployment", document);
    assert_eq!(
        verdict["document"]["claims"],
        serde_json::json!(["Detach", "TurnIdempotency"])
    );
}

#[test]
fn references_and_requests_are_taken_and_refused_as_the_vectors_say() {
    for (contract, group) in [
        ("loose-run-ref", "ref"),
        ("run-control-ref", "exact-ref"),
        ("cancel-request", "cancel-request"),
        ("cancel-acknowledgement", "cancel-ack"),
        ("control-request", "control-request"),
        ("control-acknowledgement", "control-ack"),
        ("exec-result", "exec-result"),
    ] {
        let compared = agrees(contract, "provider-runtime-control", |case| {
            (case["group"] == group).then(|| &case["input"])
        });
        assert!(compared >= 6, "{contract}: {compared}");
    }
}

#[test]
fn events_are_taken_and_refused_as_the_vectors_say() {
    for (contract, kind, least) in [
        ("event", "environment-event", 8),
        ("stream-event", "stream-event", 41),
        ("turn-result", "turn-result", 5),
        ("usage-record", "usage-from-data", 17),
    ] {
        let compared = agrees(contract, "core-usage-and-events", |case| {
            (case["check"] == kind).then(|| &case["input"])
        });
        assert_eq!(compared, least, "{contract}");
    }
    let compared = agrees("frame", "provider-runtime-events", |case| {
        let alone = case.get("expected").is_none();
        case.get("frame").filter(|_| alone)
    });
    assert!(compared >= 60, "{compared}");
}

#[test]
fn the_list_names_at_least_twenty_contracts() {
    let output = check(&["--list"], b"");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.len() >= 20, "{text}");
    for name in names {
        // Each answers a document with a verdict of its own.
        verdict(name, b"[1e400]");
    }
}

#[test]
fn a_document_comes_from_a_file_or_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("profile.json");
    std::fs::write(&file, r#"{"name": "w", "tags": []}"#).unwrap();
    let from_file = check(&["profile", file.to_str().unwrap()], b"");
    let from_input = check(&["profile", "-"], br#"{"tags": [], "name": "w"}"#);
    assert_eq!(from_file.stdout, from_input.stdout);
    let verdict: Value = serde_json::from_slice(&from_file.stdout).unwrap();
    assert_eq!(
        verdict["document"],
        serde_json::json!({ "name": "w", "tags": [] })
    );
}

#[test]
fn a_secret_is_neither_printed_nor_part_of_the_digest() {
    let block = |key: &str| format!(r#"{{"model": {{"apiKey": "{key}", "model": "m"}}}}"#);
    let first = verdict("backend-config", block("canary-1").as_bytes());
    let second = verdict("backend-config", block("canary-2").as_bytes());
    assert_eq!(first, second);
    assert!(!first.to_string().contains("canary"));
    assert!(first["digest"].is_string());
}

#[test]
fn what_cannot_be_checked_ends_with_two_and_says_why() {
    for (arguments, words) in [
        (&["nothing"][..], "there is no contract \"nothing\""),
        (&["profile", "/nowhere/at/all"], "/nowhere/at/all"),
        (&[], "required"),
    ] {
        let output = check(arguments, b"{}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(output.stdout, b"");
    }
}
