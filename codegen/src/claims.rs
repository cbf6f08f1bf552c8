//! The claim lattice: markers, flags and `Has` from `x-claims` of the capability schema, proven before it is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;

struct Claim {
    name: String,
    doc: String,
    flags: Vec<String>,
    implies: Vec<String>,
}

pub(crate) fn write(bundle: &Bundle) -> Result<String, SchemaError> {
    let Some((file, document, table)) = &bundle.claims else {
        return Ok(String::new());
    };
    let claims = read(file, table)?;
    prove_implications(file, &claims)?;
    prove_flags(bundle, file, document, &claims)?;
    let mut text = String::new();
    for (bit, claim) in claims.iter().enumerate() {
        write_marker(&mut text, bit, claim);
        write_lattice(&mut text, claim, &claims);
    }
    let names: Vec<String> = claims
        .iter()
        .map(|claim| {
            format!(
                "({:?}, <{name} as Claim>::BIT, <{name} as Claim>::FLAGS)",
                claim.name,
                name = claim.name
            )
        })
        .collect();
    let _ = writeln!(
        text,
        "/// Every claim: name, bit, flags.\npub(crate) const ALL: &[(&str, u64, &[&str])] = &[{}];",
        names.join(", ")
    );
    Ok(text)
}

fn read(file: &str, table: &Map<String, Value>) -> Result<Vec<Claim>, SchemaError> {
    let mut claims = Vec::new();
    for (name, entry) in table {
        let at = format!("/x-claims/{name}");
        let no = |rule: &str| SchemaError::new(file, &at, rule);
        let entry = entry.as_object().ok_or_else(|| no("must be an object"))?;
        if let Some(key) = entry
            .keys()
            .find(|key| !["doc", "allOf", "implies"].contains(&key.as_str()))
        {
            return Err(no(&format!("keyword `{key}` is not supported")));
        }
        let list = |key: &str| -> Vec<String> {
            let items = entry.get(key).and_then(Value::as_array);
            items
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let claim = Claim {
            name: name.clone(),
            doc: entry
                .get("doc")
                .and_then(Value::as_str)
                .ok_or_else(|| no("`doc` is missing"))?
                .to_owned(),
            flags: list("allOf"),
            implies: list("implies"),
        };
        if claim.flags.is_empty() {
            return Err(no("`allOf` names no flag: a claim without proof"));
        }
        claims.push(claim);
    }
    if claims.len() > 64 {
        return Err(SchemaError::new(file, "/x-claims", "more than 64 claims"));
    }
    Ok(claims)
}

/// A claim that implies another must require every flag of the other.
fn prove_implications(file: &str, claims: &[Claim]) -> Result<(), SchemaError> {
    for claim in claims {
        let at = format!("/x-claims/{}", claim.name);
        for implied in &claim.implies {
            let other = claims
                .iter()
                .find(|other| &other.name == implied)
                .ok_or_else(|| {
                    SchemaError::new(file, &at, format!("implies the unknown claim {implied}"))
                })?;
            let needed = other.flags.iter().find(|flag| !claim.flags.contains(flag));
            if let Some(flag) = needed {
                return Err(SchemaError::new(
                    file,
                    &at,
                    format!("implies {implied} but does not require {flag}"),
                ));
            }
        }
    }
    Ok(())
}

/// Every flag pointer names a boolean of the document; every boolean gates a claim or says why not.
fn prove_flags(
    bundle: &Bundle,
    file: &str,
    document: &str,
    claims: &[Claim],
) -> Result<(), SchemaError> {
    let mut booleans = Vec::new();
    collect(bundle, document, "", &mut booleans);
    let known: BTreeSet<&str> = booleans.iter().map(|(path, _)| path.as_str()).collect();
    let mut used = BTreeSet::new();
    for claim in claims {
        for flag in &claim.flags {
            if !known.contains(flag.as_str()) {
                return Err(SchemaError::new(
                    file,
                    format!("/x-claims/{}", claim.name),
                    format!("{flag} is no boolean of {document}"),
                ));
            }
            used.insert(flag.as_str());
        }
    }
    for (path, ungated) in &booleans {
        match (used.contains(path.as_str()), ungated) {
            (false, false) => {
                return Err(SchemaError::new(
                    file,
                    "/x-claims",
                    format!("{path} gates no claim and has no `x-ungated`"),
                ));
            }
            (true, true) => {
                return Err(SchemaError::new(
                    file,
                    "/x-claims",
                    format!("{path} gates a claim and says `x-ungated`"),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn collect(bundle: &Bundle, name: &str, at: &str, found: &mut Vec<(String, bool)>) {
    let properties = bundle
        .defs
        .get(name)
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        let path = format!("{at}/{key}");
        if property["type"] == "boolean" {
            found.push((path, property.get("x-ungated").is_some()));
        } else if let Some(target) = referenced(property) {
            collect(bundle, target, &path, found);
        }
    }
}

fn write_marker(text: &mut String, bit: usize, claim: &Claim) {
    let Claim {
        name,
        doc,
        flags,
        implies,
    } = claim;
    let shown: Vec<String> = flags
        .iter()
        .map(|flag| format!("`{}`", flag.trim_start_matches('/').replace('/', ".")))
        .collect();
    let _ = writeln!(
        text,
        "/// {doc}\n///\n/// Proven when the deployment's capability document sets {}.",
        shown.join(", ")
    );
    if !implies.is_empty() {
        let links: Vec<String> = implies.iter().map(|name| format!("[`{name}`]")).collect();
        let _ = writeln!(text, "/// Implies {}.", links.join(", "));
    }
    let _ = writeln!(
        text,
        "pub struct {name}(());\nimpl sealed::Sealed for {name} {{}}\nimpl Claim for {name} {{\n    const NAME: &'static str = {name:?};\n    const BIT: u64 = 1 << {bit};\n    const FLAGS: &'static [&'static str] = &{flags:?};\n}}"
    );
}

fn write_lattice(text: &mut String, claim: &Claim, claims: &[Claim]) {
    let name = &claim.name;
    let _ = writeln!(
        text,
        "#[diagnostic::do_not_recommend]\nimpl<R: Claims> Has<{name}> for With<{name}, R> {{}}"
    );
    for other in claims.iter().filter(|other| other.name != claim.name) {
        let bound = if claim.implies.contains(&other.name) {
            "Claims".to_owned()
        } else {
            format!("Has<{}>", other.name)
        };
        let _ = writeln!(
            text,
            "#[diagnostic::do_not_recommend]\nimpl<R: {bound}> Has<{}> for With<{name}, R> {{}}",
            other.name
        );
    }
}
