//! The topics of the core contracts that are served: canonical JSON and contract limits.

use serde_json::Value;
use tangle_sandbox::contract::bounds::{self, BoundError, Identifier, Violation};
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::document::Document;
use tangle_sandbox::contract::{canonical, strict};

use super::{Case, Wrong, same};

/// `core-canonical-json`: text or value to canonical text and digest.
pub fn canonical_json(case: &Case) -> Result<(), Wrong> {
    let accept = case.accept()?;
    let read = match (case.text("text")?, case.get("value")) {
        (Some(text), None) => strict::parse(text.as_bytes()),
        (None, Some(value)) => Ok(value.clone().into_value()),
        _ => return Err(Wrong("needs one of `text` and `value`".to_owned())),
    };
    same("accept", accept, read.is_ok())?;
    let Ok(value) = read else {
        return Ok(());
    };
    let text = canonical::to_text(&value);
    if let Some(expected) = case.text("canonical")? {
        same("canonical", expected, &text)?;
    }
    if let Some(Document::Number(bytes)) = case.get("canonicalBytes") {
        same("canonicalBytes", bytes.as_u64(), Some(text.len() as u64))?;
    }
    if let Some(expected) = case.text("digest")? {
        same("digest", expected, &canonical::digest(&value).to_string())?;
        let of_text = Digest::of_bytes(text.as_bytes()).to_string();
        same("digest of the text", expected, &of_text)?;
    }
    read_back(&value, &text)
}

/// Canonical text is read back as itself.
fn read_back(value: &Value, text: &str) -> Result<(), Wrong> {
    let again = strict::parse(text.as_bytes())
        .map_err(|refused| Wrong(format!("canonical text is refused: {refused}")))?;
    same("text read back", text, &canonical::to_text(&again))?;
    same("digest read back", Digest::of(value), Digest::of(&again))
}

/// What a bound check answers: nothing, a place, or a violation.
enum Verdict {
    Taken,
    Refused,
    Violated(Violation),
}

impl From<bool> for Verdict {
    fn from(taken: bool) -> Self {
        if taken { Self::Taken } else { Self::Refused }
    }
}

impl From<Result<(), BoundError>> for Verdict {
    fn from(result: Result<(), BoundError>) -> Self {
        match result {
            Ok(()) => Self::Taken,
            Err(error) => Self::Violated(error.violation().clone()),
        }
    }
}

/// `core-contract-limits`: a value to a verdict, by the rule that `check` names.
pub fn contract_limits(case: &Case) -> Result<(), Wrong> {
    let accept = case.accept()?;
    let Some(input) = case.get("input") else {
        return Err(Wrong("`input` is missing".to_owned()));
    };
    let verdict = match (case.text("check")?.unwrap_or_default(), input) {
        ("identifier", Document::String(text)) => Identifier::new(text).is_ok().into(),
        ("string", Document::String(text)) => bounds::string("input", text).into(),
        ("identifier" | "string", _) => Verdict::Refused,
        ("metadata", input) => bounds::json("input", input).into(),
        ("metadata-record", input) => bounds::record("input", input).into(),
        ("event-content", input) => bounds::event_content("input", input).into(),
        ("profile-bounds", input) => bounds::profile("input", input).into(),
        ("approx-equal", input) => approx_equal(input)?.into(),
        (check, _) => return Err(Wrong(format!("unknown check `{check}`"))),
    };
    same("accept", accept, matches!(verdict, Verdict::Taken))?;
    match (&verdict, case.get("violation")) {
        (_, None) => {}
        (Verdict::Violated(violation), Some(expected)) => {
            compare_violation(expected, violation)?;
        }
        (_, Some(_)) => return Err(Wrong("expected a violation, found none".to_owned())),
    }
    match (&verdict, case.text("path")?) {
        (Verdict::Violated(violation), Some(path)) => same_first_segment(path, violation.path()),
        _ => Ok(()),
    }
}

fn approx_equal(input: &Document) -> Result<bool, Wrong> {
    let malformed = || Wrong("`input` must be two numbers".to_owned());
    let Document::Array(numbers) = input else {
        return Err(malformed());
    };
    match numbers.as_slice() {
        [Document::Number(left), Document::Number(right)] => {
            let (left, right) = left.as_f64().zip(right.as_f64()).ok_or_else(malformed)?;
            Ok(bounds::approx_equal(left, right))
        }
        _ => Err(malformed()),
    }
}

/// Compares the members that a vector names, and knows all that it may name.
fn compare_violation(expected: &Document, found: &Violation) -> Result<(), Wrong> {
    let Document::Object(members) = expected else {
        return Err(Wrong("`violation` must be an object".to_owned()));
    };
    let text = |text: &str| Document::String(text.to_owned());
    let number = |number: usize| Document::Number(number.into());
    for (name, expected) in members {
        let found = match name.as_str() {
            "rule" => Some(text(found.rule().as_str())),
            "path" => Some(text(found.path())),
            "entry" => found.entry().map(number),
            "observed" => found.observed().map(number),
            "limit" => found.limit().map(|limit| number(limit.value())),
            name => return Err(Wrong(format!("unknown member `{name}` of `violation`"))),
        };
        same(name, Some(expected), found.as_ref())?;
    }
    Ok(())
}

/// A path of a vector may name a parent; the first step must agree wherever it names one.
fn same_first_segment(expected: &str, found: &str) -> Result<(), Wrong> {
    let first = |path: &str| -> String {
        let end = path[1.min(path.len())..].find(['.', '[']);
        path[..end.map_or(path.len(), |end| end + 1)].to_owned()
    };
    if expected.is_empty() {
        return Ok(());
    }
    same("first step of the path", first(expected), first(found))
}
