//! The claim lattice: markers, flags and `Has` from `x-claims` of the capability schema, proven before it is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::Options;
use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;

struct Claim {
    name: String,
    doc: String,
    flags: Vec<String>,
    implies: Vec<String>,
}

impl Claim {
    /// The member of `DeploymentFacts` that stands for it.
    fn field(&self) -> String {
        let mut text = String::new();
        for c in self.name.chars() {
            if c.is_ascii_uppercase() && !text.is_empty() {
                text.push('_');
            }
            text.push(c.to_ascii_lowercase());
        }
        text
    }
}

/// The two texts that come from the claim table.
#[derive(Default)]
pub(crate) struct Claims {
    /// Markers and the lattice.
    pub lattice: String,
    /// The type that says what one document proves.
    pub facts: String,
}

pub(crate) fn write(bundle: &Bundle, options: &Options) -> Result<Claims, SchemaError> {
    let Some((file, document, table)) = &bundle.claims else {
        return Ok(Claims::default());
    };
    let claims = read(file, table)?;
    prove_implications(file, &claims)?;
    prove_flags(bundle, file, document, &claims)?;
    Ok(Claims {
        lattice: lattice(&claims, options),
        facts: facts(&claims),
    })
}

fn lattice(claims: &[Claim], options: &Options) -> String {
    let mut text = String::new();
    for (bit, claim) in claims.iter().enumerate() {
        write_marker(&mut text, bit, claim);
        write_has(&mut text, claim, claims);
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
    let bits: String = claims
        .iter()
        .map(|claim| {
            format!(
                "    if facts.{} {{ bits |= <{} as Claim>::BIT; }}\n",
                claim.field(),
                claim.name
            )
        })
        .collect();
    let _ = writeln!(
        text,
        "/// What is proven, as bits.\npub(crate) fn bits(facts: &{}::types::DeploymentFacts) -> u64 {{\n    let mut bits = 0;\n{bits}    bits\n}}",
        options.contract
    );
    text
}

/// A member a claim, read from any JSON: what is not exactly `true` proves nothing.
fn facts(claims: &[Claim]) -> String {
    let of = |line: &dyn Fn(&Claim) -> String| claims.iter().map(line).collect::<String>();
    let fields = of(&|claim| {
        let Claim { name, doc, .. } = claim;
        format!(
            "    /// {doc} The claim `{name}`.\n    pub {}: bool,\n",
            claim.field()
        )
    });
    let all = of(&|claim| format!("{}: true, ", claim.field()));
    let names = of(&|claim| format!("(self.{}, {:?}), ", claim.field(), claim.name));
    let read = of(&|claim| format!("{}: proves(&{:?}), ", claim.field(), claim.flags));
    format!(
        "/// What a deployment's capability document proves, a member a claim (provider runtime, 5.3).\n\
         #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n\
         pub struct DeploymentFacts {{\n{fields}}}\n\
         impl DeploymentFacts {{\n\
         \x20   /// Everything proven: the most that any document proves.\n\
         \x20   pub const ALL: Self = Self {{ {all}}};\n\
         \x20   /// What `document`, any JSON at all, proves: a flag counts only when it is exactly `true`.\n\
         \x20   pub fn of(document: &::serde_json::Value) -> Self {{\n\
         \x20       let proves = |flags: &[&str]| flags.iter().all(|flag| document.pointer(flag) == Some(&::serde_json::Value::Bool(true)));\n\
         \x20       Self {{ {read}}}\n\
         \x20   }}\n\
         \x20   /// The names of the claims that are proven.\n\
         \x20   pub fn claims(&self) -> ::std::vec::Vec<&'static str> {{\n\
         \x20       let all = [{names}];\n\
         \x20       all.into_iter().filter_map(|(proven, name)| proven.then_some(name)).collect()\n\
         \x20   }}\n}}\n"
    )
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
        let list = |key: &str| names(entry.get(key)).map_err(|rule| no(&format!("`{key}` {rule}")));
        let claim = Claim {
            name: name.clone(),
            doc: entry
                .get("doc")
                .and_then(Value::as_str)
                .ok_or_else(|| no("`doc` is missing"))?
                .to_owned(),
            flags: list("allOf")?,
            implies: list("implies")?,
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

/// The texts of a list, each once; no list is an empty one.
fn names(list: Option<&Value>) -> Result<Vec<String>, String> {
    let items = match list {
        None => return Ok(Vec::new()),
        Some(list) => list.as_array().ok_or("must be a list")?,
    };
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let name = item.as_str().ok_or("must be a list of texts")?;
        if names.iter().any(|known| known == name) {
            return Err(format!("names {name} twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// A claim that implies another, at once or by way of a third, requires every flag of the other; none implies itself.
fn prove_implications(file: &str, claims: &[Claim]) -> Result<(), SchemaError> {
    for claim in claims {
        let no = |rule: String| SchemaError::new(file, format!("/x-claims/{}", claim.name), rule);
        let known = |name: &String| claims.iter().any(|other| &other.name == name);
        if let Some(unknown) = claim.implies.iter().find(|name| !known(name)) {
            return Err(no(format!("implies the unknown claim {unknown}")));
        }
        for other in implied(claim, claims) {
            if other.name == claim.name {
                return Err(no("implies itself".to_owned()));
            }
            if let Some(flag) = other.flags.iter().find(|flag| !claim.flags.contains(flag)) {
                return Err(no(format!(
                    "implies {} but does not require {flag}",
                    other.name
                )));
            }
        }
    }
    Ok(())
}

/// Every claim that `claim` implies, at once or by way of others.
fn implied<'a>(claim: &Claim, claims: &'a [Claim]) -> Vec<&'a Claim> {
    let named = |names: &[String]| -> Vec<&'a Claim> {
        claims
            .iter()
            .filter(|other| names.contains(&other.name))
            .collect()
    };
    let mut found: Vec<&Claim> = named(&claim.implies);
    let mut next = 0;
    while let Some(other) = found.get(next) {
        for further in named(&other.implies) {
            if !found.iter().any(|known| known.name == further.name) {
                found.push(further);
            }
        }
        next += 1;
    }
    found
}

/// Every flag pointer names a boolean of the document; every boolean gates a claim or says why not.
fn prove_flags(
    bundle: &Bundle,
    file: &str,
    document: &str,
    claims: &[Claim],
) -> Result<(), SchemaError> {
    let booleans = Booleans::of(bundle, document)?;
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

/// Finds every boolean below definition `name` with its pointer; one in a list or a map stands at `*`, where no claim
/// can name it.
struct Booleans<'a> {
    bundle: &'a Bundle,
    /// The definitions that are being walked.
    above: Vec<&'a str>,
    /// Pointer, and whether it says `x-ungated`.
    found: Vec<(String, bool)>,
}

impl<'a> Booleans<'a> {
    fn of(bundle: &'a Bundle, name: &'a str) -> Result<Vec<(String, bool)>, SchemaError> {
        let mut booleans = Booleans {
            bundle,
            above: Vec::new(),
            found: Vec::new(),
        };
        booleans.definition(name, "", false)?;
        Ok(booleans.found)
    }

    fn definition(&mut self, name: &'a str, at: &str, ungated: bool) -> Result<(), SchemaError> {
        if self.above.contains(&name) {
            return Err(self.bundle.error(
                name,
                "refers to itself, so that the flags of the claims cannot be listed",
            ));
        }
        self.above.push(name);
        if let Some(schema) = self.bundle.defs.get(name) {
            self.schema(schema, at, ungated)?;
        }
        self.above.pop();
        Ok(())
    }

    fn schema(&mut self, schema: &'a Value, at: &str, ungated: bool) -> Result<(), SchemaError> {
        let ungated = ungated || schema.get("x-ungated").is_some();
        if schema["type"] == "boolean" {
            self.found.push((at.to_owned(), ungated));
        }
        if let Some(target) = referenced(schema) {
            self.definition(target, at, ungated)?;
        }
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            self.schema(property, &format!("{at}/{key}"), ungated)?;
        }
        for key in ["items", "additionalProperties"] {
            if let Some(each) = schema.get(key) {
                self.schema(each, &format!("{at}/*"), ungated)?;
            }
        }
        for branch in schema["oneOf"].as_array().into_iter().flatten() {
            self.schema(branch, at, ungated)?;
        }
        Ok(())
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

fn write_has(text: &mut String, claim: &Claim, claims: &[Claim]) {
    let name = &claim.name;
    let implied = implied(claim, claims);
    let _ = writeln!(
        text,
        "#[diagnostic::do_not_recommend]\nimpl<R: Claims> Has<{name}> for With<{name}, R> {{}}"
    );
    for other in claims.iter().filter(|other| other.name != claim.name) {
        let bound = if implied.iter().any(|implied| implied.name == other.name) {
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
