//! A marker stands in turn in every string position of documents of every definition, and the document is refused in turn for
//! one reason after the other: no refusal, no chain of its sources and no log line of it shows the marker. In the position of
//! a secret the typed value does not show it either, except in the body of a request.
//!
//! Names of fields are no values: a refusal names them.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tangle_sandbox::contract::check::Refused;
use tangle_sandbox::contract::{registry, strict};
use tangle_sandbox_proofs::canary::{MARKERS, forms, leak};
use tangle_sandbox_proofs::generate::{Generator, as_read, node};
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::{Schemas, referenced};
use tangle_sandbox_proofs::sites::{self, Site, Step};
use tangle_sandbox_proofs::{cases, seed, trips};

/// What the log has taken since it was last emptied.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().expect("one thread"));
        String::from_utf8(bytes).expect("a log is text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything that a caller or a log could show of `refused`.
fn shown(refused: &Refused, log: &Log) -> String {
    tracing::error!(error = refused as &(dyn Error + 'static), "refused");
    tracing::trace!(%refused, ?refused, path = refused.path(), rule = refused.rule(), "refused");
    let mut shown = format!(
        "{refused} {refused:?} {refused:#?} {:?} {} ",
        refused.keyword(),
        refused.code()
    );
    let mut source = refused.source();
    while let Some(error) = source {
        shown.push_str(&format!("{error} {error:?} "));
        source = error.source();
    }
    shown + &log.take()
}

fn with_log<T>(run: impl FnOnce(&Log) -> T) -> T {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || run(&log))
}

#[test]
fn no_refusal_shows_a_value() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let rounds = cases(0) / 20_000 + 1;
    let forms = MARKERS.map(forms);
    let (mut placed, mut refusals) = (0, 0);
    let mut leaks = Vec::new();
    with_log(|log| {
        for name in schemas.names() {
            let mut maker = Generator::new(&schemas, &samples, seed(), name);
            let mut wanted = positions(&schemas, schemas.get(name));
            let mut refused_here = 0;
            let show = |bytes: &[u8]| {
                let refused = match strict::parse(bytes) {
                    Ok(value) => node(name).check(&value).err(),
                    Err(refused) => Some(refused),
                };
                refused.map(|refused| shown(&refused, log))
            };
            for round in 0..400 {
                if round >= rounds * 2 && wanted.is_empty() {
                    break;
                }
                let document = maker.document(name);
                for site in sites::all(&schemas, schemas.get(name), &document) {
                    if !sites::at(&document, &site.path).is_string() {
                        continue;
                    }
                    let new =
                        wanted.remove(&general(&schemas, schemas.get(name), &document, &site.path));
                    if !new && round >= rounds * 2 {
                        continue;
                    }
                    for (marker, forms) in MARKERS.iter().zip(&forms) {
                        placed += 1;
                        for shown in refusals_with(
                            schemas.get(name),
                            &document,
                            &site,
                            marker,
                            &mut maker,
                            &show,
                        ) {
                            refused_here += 1;
                            if let Some(form) = leak(forms, &shown) {
                                leaks.push(format!("{name} {:?}: `{form}` in {shown}", site.path));
                            }
                        }
                    }
                }
            }
            assert!(
                wanted.is_empty(),
                "{name}: no document has a text at {wanted:?}"
            );
            let has_texts = !positions(&schemas, schemas.get(name)).is_empty();
            assert!(
                !has_texts || refused_here > 0,
                "{name}: nothing was refused"
            );
            refusals += refused_here;
        }
    });
    println!("{placed} places, {refusals} refusals");
    leaks.truncate(20);
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    assert!(refusals > placed, "{refusals} refusals of {placed} places");
}

/// The same for the contracts by name, whose refusals come from every layer: rules between fields, references, translations.
#[test]
fn no_contract_shows_a_value() {
    const FEW: usize = 6;
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let forms = MARKERS.map(forms);
    let mut made = Generator::new(&schemas, &samples, seed(), "contracts");
    let mut some = |times: usize| -> Vec<(&Value, Value)> {
        let all = schemas
            .names()
            .flat_map(|name| std::iter::repeat_n(name, times));
        all.map(|name| (schemas.get(name), made.document(name)))
            .filter(|(_, document)| document.is_object())
            .collect()
    };
    let (few, many) = (some(2), some(20));
    let mut leaks = Vec::new();
    let mut refusals = 0;
    for contract in registry::CONTRACTS {
        let mut maker = Generator::new(&schemas, &samples, seed(), contract.name);
        let taken = |value: &Value| contract.check(value.to_string().as_bytes()).is_ok();
        // What it takes is found by trial, among the definitions and among the vectors.
        let mut documents: Vec<(&Value, Value)> = Vec::new();
        for made in [&few, &many] {
            let taken = made.iter().filter(|(_, document)| taken(document));
            documents.extend(taken.take(FEW).cloned());
            if !documents.is_empty() {
                break;
            }
        }
        let mut vectors: Vec<&Value> = samples
            .values
            .iter()
            .filter(|value| value.is_object() && value.to_string().len() < 2_000 && taken(value))
            .collect();
        vectors.sort_by_key(|value| std::cmp::Reverse(value.to_string().len()));
        documents.extend(
            vectors
                .into_iter()
                .take(FEW)
                .map(|value| (&Value::Null, value.clone())),
        );
        assert!(!documents.is_empty(), "{}: no document", contract.name);
        let show = |bytes: &[u8]| {
            contract
                .check(bytes)
                .err()
                .map(|refusal| format!("{refusal:?} {refusal:#?}"))
        };
        for (schema, document) in &documents {
            let mut sites = sites::all(&schemas, schema, document);
            sites.retain(|site| sites::at(document, &site.path).is_string());
            for _ in 0..sites.len().min(12) {
                let site = sites.swap_remove(maker.dice.below(sites.len()));
                let which = maker.dice.below(MARKERS.len());
                for shown in
                    refusals_with(schema, document, &site, MARKERS[which], &mut maker, &show)
                {
                    refusals += 1;
                    if let Some(form) = leak(&forms[which], &shown) {
                        leaks.push(format!(
                            "{} {:?}: `{form}` in {shown}",
                            contract.name, site.path
                        ));
                    }
                }
            }
        }
    }
    println!(
        "{refusals} refusals of {} contracts",
        registry::CONTRACTS.len()
    );
    leaks.truncate(20);
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    assert!(refusals > 10_000, "only {refusals} refusals");
}

/// What `show` shows of the refusals of `document` with `marker` at `site`: for the marker itself, for its surroundings, for
/// another place, for the text around it.
fn refusals_with<'a>(
    schema: &'a Value,
    document: &Value,
    site: &Site<'_>,
    marker: &str,
    maker: &mut Generator<'a>,
    show: &dyn Fn(&[u8]) -> Option<String>,
) -> Vec<String> {
    let old = sites::at(document, &site.path).as_str().unwrap_or_default();
    let mut refusals = Vec::new();
    let mut check = |damaged: &Value| refusals.extend(show(damaged.to_string().as_bytes()));
    let texts = [
        marker.to_owned(),
        format!("{old}{marker}"),
        format!("{marker}{old}"),
        format!(" {marker}\n"),
        format!("https://{marker}:pass@example.com/?token={marker}"),
        format!("{marker}=\u{0}"),
        marker.repeat(20_000 / marker.len()),
    ];
    for text in texts {
        let mut placed = document.clone();
        *sites::at_mut(&mut placed, &site.path) = text.into();
        check(&placed);
        for _ in 0..2 {
            let mut damaged = placed.clone();
            maker.damage(schema, &mut damaged);
            check(&damaged);
        }
        if let Value::Object(members) = &mut placed {
            members.insert("unknownField".into(), true.into());
            check(&placed);
        }
    }
    // Text that breaks off behind the marker or inside it, and a marker that no string may hold.
    let mut placed = document.clone();
    *sites::at_mut(&mut placed, &site.path) = marker.into();
    let text = placed.to_string();
    let quoted = Value::String(marker.to_owned()).to_string();
    let at = text.find(&quoted).unwrap_or(0);
    let inside = at + quoted.len() / 2;
    let cut = &text.as_bytes()[..inside];
    for bytes in [
        cut.to_vec(),
        text.as_bytes()[..(at + quoted.len()).min(text.len())].to_vec(),
        [cut, b"\n", &text.as_bytes()[inside..]].concat(),
        [cut, b"\\ud800", &text.as_bytes()[inside..]].concat(),
        [cut, b"\xff", &text.as_bytes()[inside..]].concat(),
        text.replace(&quoted, &format!("{quoted}{quoted}"))
            .into_bytes(),
        text.replace(&quoted, quoted.trim_matches('"')).into_bytes(),
    ] {
        refusals.extend(show(&bytes));
    }
    refusals
}

/// The places of a schema where a text stands, short of the definitions that it refers to: those have places of their own.
fn positions(schemas: &Schemas, schema: &Value) -> BTreeSet<String> {
    fn walk(schemas: &Schemas, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        let target = schemas.follow(schema);
        if referenced(schema).is_some() && target["type"] != "string" {
            return;
        }
        if target["type"] == "string" {
            found.insert(path.to_owned());
        }
        for (name, property) in target["properties"].as_object().into_iter().flatten() {
            if property.get("x-refuse").is_none() {
                walk(schemas, property, &format!("{path}/{name}"), found);
            }
        }
        for each in ["items", "additionalProperties"]
            .iter()
            .filter_map(|key| target.get(key))
        {
            walk(schemas, each, &format!("{path}/*"), found);
        }
        for branch in target["oneOf"].as_array().into_iter().flatten() {
            walk(schemas, branch, path, found);
        }
    }
    let mut found = BTreeSet::new();
    walk(schemas, schema, "", &mut found);
    found
}

/// A path with `*` for items and for the keys of maps.
fn general(schemas: &Schemas, schema: &Value, document: &Value, path: &[Step]) -> String {
    let sites = sites::all(schemas, schema, document);
    let mut text = String::new();
    for (depth, step) in path.iter().enumerate() {
        let around = sites.iter().find(|site| site.path == path[..depth]);
        let known = |key: &str| {
            around
                .and_then(|site| site.schema)
                .is_some_and(|schema| schema["properties"].get(key).is_some())
        };
        text.push('/');
        match step {
            Step::Key(key) if known(key) => text.push_str(key),
            _ => text.push('*'),
        }
    }
    text
}

#[test]
fn a_secret_is_shown_in_the_body_only() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let forms = MARKERS.map(forms);
    let mut places = BTreeSet::new();
    for (name, trip) in trips::ALL {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        let wanted = secret_positions(&schemas, schemas.get(name));
        let mut found = BTreeSet::new();
        for round in 0..400 {
            if round >= 3 && found.is_superset(&wanted) {
                break;
            }
            let document = maker.document(name);
            for site in sites::all(&schemas, schemas.get(name), &document) {
                if site
                    .schema
                    .is_none_or(|schema| schema["x-rust"] != "secret")
                {
                    continue;
                }
                for (marker, forms) in MARKERS.iter().zip(&forms) {
                    let mut placed = document.clone();
                    *sites::at_mut(&mut placed, &site.path) = (*marker).into();
                    let Some(placed) = as_read(&placed).filter(|it| node(name).check(it).is_ok())
                    else {
                        continue;
                    };
                    found.insert(general(&schemas, schemas.get(name), &document, &site.path));
                    let taken = trip(&placed).expect("an accepted document has a type");
                    assert_eq!(
                        sites::at(&taken.body, &site.path),
                        *marker,
                        "{name} {:?}",
                        site.path
                    );
                    let log = with_log(|log| {
                        tracing::trace!(debug = taken.debug, body = %taken.elsewhere, "taken");
                        log.take()
                    });
                    for text in [&taken.debug, &taken.elsewhere.to_string(), &log] {
                        assert_eq!(leak(forms, text), None, "{name} {:?}: {text}", site.path);
                    }
                }
            }
        }
        let missing: Vec<&String> = wanted.difference(&found).collect();
        assert!(
            missing.is_empty(),
            "{name}: no accepted document has a secret at {missing:?}"
        );
        places.extend(wanted.into_iter().map(|place| format!("{name}{place}")));
    }
    println!("{} secret places: {places:?}", places.len());
    assert!(places.len() > 3, "{places:?}");
}

/// Those of [`positions`] that are secrets.
fn secret_positions(schemas: &Schemas, schema: &Value) -> BTreeSet<String> {
    let is_secret = |place: &String| {
        let mut at = vec![schema];
        for step in place.split('/').skip(1) {
            at = at
                .into_iter()
                .flat_map(|schema| {
                    let schema = schemas.follow(schema);
                    let branches = schema["oneOf"].as_array().into_iter().flatten();
                    std::iter::once(schema).chain(branches.map(|branch| schemas.follow(branch)))
                })
                .flat_map(|schema| match step {
                    "*" => ["items", "additionalProperties"]
                        .iter()
                        .filter_map(|key| schema.get(key))
                        .collect(),
                    step => schema["properties"]
                        .get(step)
                        .into_iter()
                        .collect::<Vec<_>>(),
                })
                .collect();
        }
        at.iter()
            .any(|schema| schemas.follow(schema)["x-rust"] == "secret")
    };
    positions(schemas, schema)
        .into_iter()
        .filter(is_secret)
        .collect()
}

#[test]
fn every_form_of_a_leak_is_found() {
    use base64::Engine as _;
    let [plain, odd] = MARKERS.map(forms);
    for text in [
        format!("must not be {}", MARKERS[0]),
        format!(
            "({})",
            base64::engine::general_purpose::STANDARD.encode(format!("ab{}c", MARKERS[0]))
        ),
        MARKERS[0]
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect(),
        MARKERS[0].to_lowercase(),
    ] {
        assert!(leak(&plain, &text).is_some(), "{text}");
    }
    for text in [
        "cnry%2F7Q%2Bm4%20Zt%259%C3%A9%F0%9F%98%80Wx".to_owned(),
        "\"cnry/7Q+m4 Zt\"".to_owned(),
        base64::engine::general_purpose::URL_SAFE.encode(format!("key={}", MARKERS[1])),
    ] {
        assert!(leak(&odd, &text).is_some(), "{text}");
    }
    assert_eq!(
        leak(&plain, "/model/apiKey: must have at most 512 UTF-16 units"),
        None
    );
}
