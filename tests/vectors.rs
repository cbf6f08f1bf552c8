//! The test vectors of the specification, from `TANGLE_VECTORS_DIR` or `tests/vectors`, and the runner itself.

#[path = "support/vectors/mod.rs"]
mod vectors;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tangle_sandbox::contract::strict;
use vectors::{Case, Dialect, NOT_YET_SERVED, Report, SERVED, Topic, Wrong, expand, run};

fn directory() -> PathBuf {
    match std::env::var_os("TANGLE_VECTORS_DIR") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
    }
}

#[test]
fn every_vector_comes_out_as_stated() {
    let report = run(&directory(), SERVED, NOT_YET_SERVED);
    // Past the capture of the test harness, so that a passing run shows what it ran.
    let mut out = std::io::stderr().lock();
    for line in &report.lines {
        writeln!(out, "vectors: {line}").unwrap();
    }
    drop(out);
    assert!(
        report.failures.is_empty(),
        "{} failures:\n{}",
        report.failures.len(),
        report.failures.join("\n")
    );
}

/// Runs one file `name.json` with the text `file` in a directory of its own.
fn run_file(name: &str, file: &str, served: &[Topic], not_yet_served: &[&str]) -> Report {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(format!("{name}.json")), file).unwrap();
    std::fs::create_dir(directory.path().join("fixtures")).unwrap();
    std::fs::write(directory.path().join("fixtures/unknown.json"), "{").unwrap();
    std::fs::write(directory.path().join("README.md"), "not a topic").unwrap();
    run(directory.path(), served, not_yet_served)
}

fn failures(name: &str, file: &str) -> Vec<String> {
    run_file(name, file, SERVED, NOT_YET_SERVED).failures
}

fn fixed(name: &'static str, passes: bool) -> Topic {
    let serve = |_: &Case| Ok(());
    let refuse = |_: &Case| Err(Wrong("no".to_owned()));
    Topic {
        name,
        serve: if passes { serve } else { refuse },
    }
}

#[test]
fn an_unknown_topic_fails() {
    let failures = failures("core-mystery", r#"{"cases":[{"name":"a","accept":true}]}"#);
    assert_eq!(failures, ["core-mystery: unknown topic"]);
}

#[test]
fn a_topic_without_cases_fails() {
    for file in [r#"{"cases":[]}"#, "{}", r#"{"cases":{}}"#] {
        let failures = failures("core-canonical-json", file);
        assert_eq!(failures, ["core-canonical-json: has no cases"]);
    }
    let failures = failures("core-canonical-json", r#"{"cases":1,"cases":2}"#);
    assert_eq!(failures, ["core-canonical-json: /cases: key is repeated"]);
}

#[test]
fn a_case_that_asserts_nothing_fails() {
    let file = r#"{"cases":[{"name":"a","text":"null"},{"name":"b","text":"null","accept":true}]}"#;
    assert_eq!(
        failures("core-canonical-json", file),
        ["core-canonical-json: a: asserts nothing: `accept` is missing"]
    );
    let file = r#"{"cases":[{"name":"a","check":"string","input":"x"}]}"#;
    assert_eq!(
        failures("core-contract-limits", file),
        ["core-contract-limits: a: asserts nothing: `accept` is missing"]
    );
}

#[test]
fn an_unknown_check_fails() {
    let file = r#"{"cases":[{"name":"a","check":"taste","input":"x","accept":true},
        {"name":"b","input":"x","accept":true}]}"#;
    assert_eq!(
        failures("core-contract-limits", file),
        [
            "core-contract-limits: a: unknown check `taste`",
            "core-contract-limits: b: unknown check ``"
        ]
    );
}

#[test]
fn an_unknown_group_or_member_fails() {
    let file = r#"{"cases":[
        {"name":"a","group":"taste","input":{},"accept":true},
        {"name":"b","input":{},"accept":true},
        {"name":"c","group":"status","input":"running","environment":"running","session":"running","accept":true,"colour":1},
        {"name":"d","group":"status","input":"running","environment":"running","accept":true},
        {"name":"e","group":"placement","boxId":"s","input":null,"accept":true},
        {"name":"f","group":"resources","input":{},"output":null,"requested":{},"accept":true}]}"#;
    assert_eq!(
        failures("provider-runtime-control", file),
        [
            "provider-runtime-control: a: unknown group `taste`",
            "provider-runtime-control: b: unknown group ``",
            "provider-runtime-control: c: unknown member `colour`",
            "provider-runtime-control: d: `session` is missing",
            "provider-runtime-control: e: asserts nothing: `output` is missing",
            "provider-runtime-control: f: requested: expected \"{}\", found \"null\"",
        ]
    );
}

#[test]
fn an_unknown_or_malformed_generator_fails_its_case() {
    let file = r#"{"cases":[
        {"name":"a","accept":true,"value":{"$magic":[1]}},
        {"name":"b","accept":true,"value":{"$magic":1}},
        {"name":"c","accept":true,"value":{"$repeat":["a"]}},
        {"name":"d","accept":true,"value":{"$repeat":["a",-1]}},
        {"name":"e","accept":true,"value":{"$json":"{\"a\":1,\"a\":2}"}}]}"#;
    assert_eq!(
        failures("core-canonical-json", file),
        [
            "core-canonical-json: a: unknown generator `$magic`",
            "core-canonical-json: b: unknown generator `$magic`",
            "core-canonical-json: c: `$repeat` has other arguments than it takes",
            "core-canonical-json: d: a generator counts to 2^26 at most",
            "core-canonical-json: e: `$json` text: /a: key is repeated",
        ]
    );
}

#[test]
fn a_wrong_outcome_is_named_with_both_values() {
    let file = r#"{"cases":[
        {"name":"a","accept":true,"text":"1","canonical":"2"},
        {"name":"b","accept":false,"text":"1"},
        {"name":"c","accept":true,"text":"1","digest":"sha256:0"}]}"#;
    let failures = failures("core-canonical-json", file);
    assert_eq!(
        failures[..2],
        [
            "core-canonical-json: a: canonical: expected \"2\", found \"1\"",
            "core-canonical-json: b: accept: expected false, found true"
        ]
    );
    assert!(failures[2].starts_with("core-canonical-json: c: digest: expected \"sha256:0\""));
    let file = r#"{"cases":[
        {"name":"a","check":"metadata","accept":false,"path":"b","input":{"a":{"$repeat":["x",16385]}}},
        {"name":"b","check":"metadata","accept":false,"input":{"a":{"$repeat":["x",16385]}},
         "violation":{"rule":"string","colour":1}},
        {"name":"c","check":"metadata","accept":false,"input":{"a":{"$repeat":["x",16385]}},
         "path":"a.deeper","violation":{"rule":"string","observed":16385}}]}"#;
    assert_eq!(
        self::failures("core-contract-limits", file),
        [
            "core-contract-limits: a: first step of the path: expected \"b\", found \"a\"",
            "core-contract-limits: b: unknown member `colour` of `violation`",
        ]
    );
}

#[test]
fn a_turn_or_a_create_that_comes_out_otherwise_is_named_without_its_secrets() {
    let file = r#"{"cases":[
        {"name":"a","accept":true,"input":{"providerOptions":{"backend":{"apiKey":"canary"}}},
         "backend":{"model":{"apiKey":"other"}}},
        {"name":"b","accept":false,"input":{"model":"a","providerOptions":{"backend":{"modelId":"b"}}},
         "refusal":"profile conflict"},
        {"name":"c","accept":true,"input":{"interactions":{}},"path":"interactions"},
        {"name":"d","accept":true,"input":{},"colour":1}]}"#;
    assert_eq!(
        failures("core-turn-input", file),
        [
            "core-turn-input: a: backend: differs in [\"model\"]",
            "core-turn-input: b: conflict: expected \"profile\", found \"model\"",
            "core-turn-input: c: a turn that is taken has no refusal",
            "core-turn-input: d: unknown member `colour`",
        ]
    );
    let file = r#"{"cases":[
        {"name":"a","group":"refused","accept":false,"input":{},"reason":"name"},
        {"name":"b","group":"refused","accept":false,"input":{}},
        {"name":"c","group":"shape","accept":true,"input":{}}]}"#;
    assert_eq!(
        failures("provider-runtime-create", file),
        [
            "provider-runtime-create: a: reason: expected Some(\"name\"), found Some(\"profile\")",
            "provider-runtime-create: b: reason: expected None, found Some(\"profile\")",
            "provider-runtime-create: c: unknown group `shape`",
        ]
    );
}

#[test]
fn the_list_of_topics_not_yet_served_is_strict_both_ways() {
    let file = r#"{"cases":[{"name":"a"},{"name":"b"}]}"#;
    let unserved = run_file("later", file, &[], &["later"]);
    assert_eq!(unserved.lines, ["later: not yet served"]);
    assert_eq!(unserved.failures, [""; 0]);

    let failing = run_file("later", file, &[fixed("later", false)], &["later"]);
    assert_eq!(failing.lines, ["later: 2 cases, 0 passed, not yet served"]);
    assert_eq!(failing.failures, [""; 0]);

    let passing = run_file("later", file, &[fixed("later", true)], &["later"]);
    assert_eq!(
        passing.failures,
        ["later: is listed as not yet served, and all its cases pass"]
    );

    let served = run_file("later", file, &[fixed("later", false)], &[]);
    assert_eq!(served.lines, ["later: 2 cases, 0 passed"]);
    assert_eq!(served.failures, ["later: a: no", "later: b: no"]);
}

#[test]
fn every_topic_is_named_once() {
    let mut names: Vec<&str> = SERVED.iter().map(|topic| topic.name).collect();
    names.extend(NOT_YET_SERVED);
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert_eq!(all, 25);
}

#[test]
fn a_missing_directory_fails() {
    let report = run(Path::new("/nowhere/at/all"), SERVED, NOT_YET_SERVED);
    assert_eq!(report.failures.len(), 1);
}

fn make(dialect: Dialect, generator: &str) -> Result<String, Wrong> {
    let value = strict::parse_document(generator.as_bytes()).unwrap();
    expand(dialect, &value).map(|made| made.into_value().to_string())
}

#[test]
fn generators_make_what_they_name() {
    const CORE: &[(&str, &str)] = &[
        (r#"{"$seq":["p",3]}"#, r#"["p0","p1","p2"]"#),
        (r#"{"$map":["k",2,true]}"#, r#"{"k0":true,"k1":true}"#),
        (r#"{"$longkey":["ab",2,1]}"#, r#"{"abab":1}"#),
        (r#"{"$nest":["n",2,1]}"#, r#"{"n":{"n":1}}"#),
        (r#"{"$nest":["",2,{"a":1}]}"#, r#"[[{"a":1}]]"#),
        (
            r#"{"$merge":[{"a":1,"b":1},{"b":{"$map":["k",1,2]}}]}"#,
            r#"{"a":1,"b":{"k0":2}}"#,
        ),
        (r#"{"$cat":["sk","-",{"$repeat":["a",2]}]}"#, r#""sk-aa""#),
        (r#"{"$cat":[]}"#, r#""""#),
        (r#"{"$json":"{\"__proto__\":1.0}"}"#, r#"{"__proto__":1}"#),
    ];
    const PROVIDER_RUNTIME: &[(&str, &str)] = &[
        (r#"{"$map":["k",2,true]}"#, r#"{"k0":true,"k1":true}"#),
        (r#"{"$nest":0}"#, r#""leaf""#),
        (r#"{"$nest":3}"#, r#"[[["leaf"]]]"#),
    ];
    const COMMON: &[(&str, &str)] = &[
        (r#"{"$repeat":["ab",3]}"#, r#""ababab""#),
        (r#"{"$array":[{"$repeat":["a",2]},2]}"#, r#"["aa","aa"]"#),
        (r#"{"$concat":["a",{"$repeat":["b",2]}]}"#, r#""abb""#),
        (r#"{"$a":1,"b":2}"#, r#"{"$a":1,"b":2}"#),
    ];
    let families = [
        (Dialect::Core, CORE),
        (Dialect::ProviderRuntime, PROVIDER_RUNTIME),
        (Dialect::Common, COMMON),
    ];
    for (dialect, own) in families {
        for (generator, value) in own.iter().chain(COMMON) {
            assert_eq!(
                make(dialect, generator),
                Ok((*value).to_owned()),
                "{dialect:?}: {generator}"
            );
        }
    }
}

#[test]
fn a_dialect_knows_its_own_generators_alone() {
    for (topic, generator, why) in [
        ("core-profile", r#"{"$nest":2}"#, "other arguments"),
        (
            "provider-runtime-events",
            r#"{"$nest":["n",2,1]}"#,
            "other arguments",
        ),
        (
            "provider-runtime-events",
            r#"{"$map":["k",2]}"#,
            "other arguments",
        ),
        (
            "provider-runtime-events",
            r#"{"$cat":["a","b"]}"#,
            "unknown",
        ),
        ("provider-runtime-events", r#"{"$seq":["p",3]}"#, "unknown"),
        ("workspace-markers", r#"{"$map":["k",2,1]}"#, "unknown"),
        ("core-profile", r#"{"$concat":["a",1]}"#, "other arguments"),
    ] {
        let refused = make(Dialect::of(topic), generator).unwrap_err();
        assert!(refused.0.contains(why), "{topic}: {generator}: {refused}");
    }
}

#[test]
fn a_value_of_512_levels_is_built_hashed_and_dropped() {
    let file = r#"{"cases":[
        {"name":"object","accept":true,"value":{"$nest":["n",512,true]}},
        {"name":"array","accept":true,"value":{"$nest":["",512,true]}}]}"#;
    assert_eq!(failures("core-canonical-json", file), [""; 0]);
}
