//! The vector runner: every topic file of a directory against the function that serves it.
//!
//! A topic is the name of a file without `.json`. A run fails on an unknown topic, an empty list of cases, a
//! case that asserts nothing or that its topic cannot read, and on any case that does not come out as stated.

mod capabilities;
mod control;
mod core;
mod create;
pub mod events;
mod generators;
mod harness;
mod profile;
mod topics;
mod turn;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::strict;

pub use generators::{Dialect, expand};
pub use topics::{NOT_YET_SERVED, SERVED};

/// How deep a value of a case may be without troubling the thread that builds and drops it.
const STACK_BYTES: usize = 64 << 20;

/// A topic that this repository serves.
#[derive(Clone, Copy)]
pub struct Topic {
    /// The name of its file without `.json`.
    pub name: &'static str,
    /// Runs one case, its generators expanded.
    pub serve: fn(&Case) -> Result<(), Wrong>,
}

/// Why a case fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails the case with both values unless they are equal.
pub fn same<T: PartialEq + fmt::Debug>(what: &str, expected: T, found: T) -> Result<(), Wrong> {
    if expected == found {
        return Ok(());
    }
    Err(Wrong(format!(
        "{what}: expected {expected:?}, found {found:?}"
    )))
}

/// Fails the case unless `refused` is at the place that `expected` names: the first step must agree, and a member that is
/// missing or unknown is named in the rule.
pub fn same_place(expected: &str, refused: &Refused) -> Result<(), Wrong> {
    let end = expected.find(['.', '[']).unwrap_or(expected.len());
    let step = &expected[..end];
    if step.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = match refused.path().split('/').nth(1) {
        Some(step) => vec![step],
        None => refused.rule().split('`').skip(1).step_by(2).collect(),
    };
    if named.contains(&step) {
        return Ok(());
    }
    Err(Wrong(format!(
        "first step of the path: expected {step:?}, found `{refused}`"
    )))
}

/// Compares a refusal with what its case states of it: no `outputs`, a place, the name of a rule.
pub fn same_refusal(
    case: &Case,
    outputs: &[&str],
    place: impl FnOnce(&str) -> Result<(), Wrong>,
    named: impl FnOnce(&str) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    if let Some(output) = outputs.iter().find(|output| case.get(output).is_some()) {
        return Err(Wrong(format!("`{output}` of what is refused")));
    }
    case.text("path")?.map_or(Ok(()), place)?;
    case.text("refusal")?.map_or(Ok(()), named)
}

/// One case of a topic.
pub struct Case(Document);

impl Case {
    /// The member `key`, if the case has it.
    pub fn get(&self, key: &str) -> Option<&Document> {
        self.0.get(key)
    }

    /// The text of the member `key`, if the case has it.
    pub fn text(&self, key: &str) -> Result<Option<&str>, Wrong> {
        match self.get(key) {
            None => Ok(None),
            Some(Document::String(text)) => Ok(Some(text)),
            Some(_) => Err(Wrong(format!("`{key}` must be a string"))),
        }
    }

    /// Fails the case when it has a member that its topic does not know, which might be an assertion.
    pub fn only(&self, known: &[&str]) -> Result<(), Wrong> {
        let Document::Object(members) = &self.0 else {
            return Err(Wrong("a case must be an object".to_owned()));
        };
        match members
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            Some((key, _)) => Err(Wrong(format!("unknown member `{key}`"))),
            None => Ok(()),
        }
    }

    /// The value that the case is about.
    pub fn input(&self) -> Result<&Document, Wrong> {
        self.get("input")
            .ok_or_else(|| Wrong("`input` is missing".to_owned()))
    }

    /// The assertion that every core case makes: whether its input is taken.
    pub fn accept(&self) -> Result<bool, Wrong> {
        match self.get("accept") {
            Some(Document::Bool(accept)) => Ok(*accept),
            _ => Err(Wrong("asserts nothing: `accept` is missing".to_owned())),
        }
    }
}

/// What a run found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// One line a topic.
    pub lines: Vec<String>,
    /// `topic: name: why`, in the order of the files and of their cases.
    pub failures: Vec<String>,
}

/// Runs every topic file in `directory`.
///
/// `not_yet_served` is strict both ways: such a topic may fail, and fails the run once all its cases pass.
pub fn run(directory: &Path, served: &[Topic], not_yet_served: &[&str]) -> Report {
    let mut report = Report::default();
    let names = match topic_names(directory) {
        Ok(names) => names,
        Err(error) => {
            report
                .failures
                .push(format!("{}: {error}", directory.display()));
            return report;
        }
    };
    for name in names {
        let topic = served.iter().find(|topic| topic.name == name);
        let listed = not_yet_served.contains(&name.as_str());
        let Some(topic) = topic else {
            if listed {
                report.lines.push(format!("{name}: not yet served"));
            } else {
                report.failures.push(format!("{name}: unknown topic"));
            }
            continue;
        };
        match cases(&directory.join(format!("{name}.json"))) {
            Ok(cases) => run_topic(*topic, listed, &cases, &mut report),
            Err(error) => report.failures.push(format!("{name}: {error}")),
        }
    }
    report
}

/// The topics of a directory; what lies deeper, such as `fixtures/`, is not a topic.
fn topic_names(directory: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_file() && path.extension().is_some_and(|ending| ending == "json") {
            let stem = path.file_stem().unwrap_or_default();
            names.insert(stem.to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn cases(path: &Path) -> Result<Vec<Document>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let file = strict::parse_document(&bytes).map_err(|refused| refused.to_string())?;
    match file.get("cases") {
        Some(Document::Array(cases)) if !cases.is_empty() => Ok(cases.clone()),
        _ => Err("has no cases".to_owned()),
    }
}

fn run_topic(topic: Topic, listed: bool, cases: &[Document], report: &mut Report) {
    let failures = failures_of(topic, cases);
    let (name, total) = (topic.name, cases.len());
    let passed = total - failures.len();
    if !listed {
        report
            .lines
            .push(format!("{name}: {total} cases, {passed} passed"));
        report.failures.extend(failures);
        return;
    }
    report.lines.push(format!(
        "{name}: {total} cases, {passed} passed, not yet served"
    ));
    if failures.is_empty() {
        report.failures.push(format!(
            "{name}: is listed as not yet served, and all its cases pass"
        ));
    }
}

/// Runs the cases on a thread of their own, since a case may hold a value as deep as it likes.
fn failures_of(topic: Topic, cases: &[Document]) -> Vec<String> {
    let run = || -> Vec<String> {
        let results = cases
            .iter()
            .map(|case| (name_of(case), run_case(topic, case)));
        results
            .filter_map(|(case, result)| {
                let wrong = result.err()?;
                Some(format!("{}: {case}: {wrong}", topic.name))
            })
            .collect()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, run)
            .unwrap();
        match thread.join() {
            Ok(failures) => failures,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run_case(topic: Topic, case: &Document) -> Result<(), Wrong> {
    (topic.serve)(&Case(expand(Dialect::of(topic.name), case)?))
}

fn name_of(case: &Document) -> &str {
    match case.get("name") {
        Some(Document::String(name)) => name,
        _ => "(no name)",
    }
}
