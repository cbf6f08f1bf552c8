//! The table `must-hold.md` names a test for each rule of the specification that is kept here. A rule without a row, a
//! row without its test, and a row of another rule fail.

use std::collections::BTreeMap;
use std::path::Path;

/// Chapters with the numbers of their rules under "Must hold".
type Chapters = &'static [(u8, &'static [u8])];

/// Of the core contracts, the rules numbered in their order.
const CORE: Chapters = &[
    (1, &[1, 2, 3, 4, 5]),
    (2, &[1, 2, 3, 4]),
    (3, &[1, 2, 3, 4, 5, 6, 7]),
    (4, &[1, 2, 3, 4]),
    (5, &[1, 2, 3, 4, 5, 6, 7]),
    (7, &[1, 2, 3, 4, 5, 6, 7, 8]),
    (8, &[1, 2, 3, 4]),
    (9, &[1, 2, 3, 4, 5, 6, 7]),
    (10, &[1, 2, 3, 4, 5]),
];

/// Of the credentials, the rules numbered in their order.
const CREDENTIALS: Chapters = &[(1, &[1, 2]), (10, &[1, 2]), (12, &[1, 2, 3, 4, 5])];

/// Of the provider runtime, the rules numbered in their order.
const PROVIDER: Chapters = &[
    (1, &[1, 2, 3, 4, 5]),
    (3, &[1, 12, 13, 14, 15, 16, 17]),
    (4, &[1]),
    (5, &[1, 2, 3, 4]),
    (7, &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (8, &[1, 2, 3, 6]),
    (9, &[1, 2, 3]),
];

/// Of the wire protocol.
const WIRE: Chapters = &[
    (1, &[1, 2, 3, 4, 5, 6]),
    (2, &[1, 2, 3, 4]),
    (3, &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (4, &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (6, &[1, 2, 3, 4, 5]),
    (7, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
    (9, &[1, 2, 4, 5]),
    (13, &[1, 2, 8]),
    (14, &[1]),
    (20, &[1, 2, 3, 4]),
];

/// A row: the rule, and the test as `path/to/file.rs::name`.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    rule: String,
    test: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the table; its two header lines are left out.
fn rows(table: &str) -> Vec<Row> {
    let lines = table.lines().filter(|line| line.starts_with('|'));
    lines
        .skip(2)
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [rule, words, test] = cells[..] else {
                panic!("a row has three cells: {line}");
            };
            assert!(!words.is_empty(), "a row says its rule in words: {line}");
            Row {
                rule: rule.to_owned(),
                test: test.trim_matches('`').to_owned(),
            }
        })
        .collect()
}

/// The rules that are kept, as the table names them.
fn kept() -> Vec<String> {
    let documents = [
        ("", WIRE),
        ("core ", CORE),
        ("credentials ", CREDENTIALS),
        ("provider ", PROVIDER),
    ];
    let rules = documents.iter().flat_map(|(document, chapters)| {
        chapters.iter().flat_map(move |(chapter, rules)| {
            rules
                .iter()
                .map(move |rule| format!("{document}{chapter}.{rule}"))
        })
    });
    rules.collect()
}

/// What is wrong with the rows, a line each.
fn faults(rows: &[Row], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let kept = kept();
    let mut faults: Vec<String> = kept
        .iter()
        .filter(|rule| !rows.iter().any(|row| row.rule == **rule))
        .map(|rule| format!("{rule} has no row"))
        .collect();
    let mut files = BTreeMap::new();
    for Row { rule, test } in rows {
        if !kept.contains(rule) {
            faults.push(format!("{rule} is not one of the rules that are kept"));
        }
        let Some((path, name)) = test.split_once("::") else {
            faults.push(format!("{rule}: {test} names no test of a file"));
            continue;
        };
        let text = files.entry(path.to_owned()).or_insert_with(|| read(path));
        match text {
            None => faults.push(format!("{rule}: there is no file {path}")),
            Some(text) if !text.contains(&format!("fn {name}(")) => {
                faults.push(format!("{rule}: {path} has no test {name}"));
            }
            Some(_) => {}
        }
    }
    faults
}

#[test]
fn every_rule_that_is_kept_names_a_test_that_exists() {
    let table = std::fs::read_to_string(root().join("tests/must-hold.md")).unwrap();
    let faults = faults(&rows(&table), |path| {
        std::fs::read_to_string(root().join(path)).ok()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_fault_is_found() {
    let table = "| rule | words | test |\n|---|---|---|\n\
                 | 1.1 | a | `here.rs::there` |\n| 1.2 | b | `here.rs::gone` |\n\
                 | 1.3 | c | `nowhere.rs::there` |\n| 99.1 | d | `here.rs::there` |\n| 1.4 | e | here.rs |\n";
    let read = |path: &str| (path == "here.rs").then(|| "fn there() {}".to_owned());
    let mut found = faults(&rows(table), read);
    let lacking = found.iter().filter(|fault| fault.ends_with("has no row"));
    assert_eq!(lacking.count(), kept().len() - 4);
    found.retain(|fault| !fault.ends_with("has no row"));
    let expected = [
        "1.2: here.rs has no test gone",
        "1.3: there is no file nowhere.rs",
        "99.1 is not one of the rules that are kept",
        "1.4: here.rs names no test of a file",
    ];
    assert_eq!(found, expected);
}
