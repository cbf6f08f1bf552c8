//! What the generator writes, whole: a change of it is a reviewed difference.
//!
//! `TANGLE_UPDATE_GOLDEN=1 cargo test -p tangle-sandbox-codegen` writes the golden files again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tangle_sandbox_codegen::{Options, ROOT_KEYWORDS, SCHEMA_KEYWORDS, generate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn the_generated_text_is_the_golden_one() {
    let generated = generate(&folder().join("schemas"), &Options::default()).unwrap();
    let files = [
        ("types.golden", &generated.types),
        ("checks.golden", &generated.checks),
        ("claims.golden", &generated.claims),
        ("limits.golden", &generated.limits),
        ("manual-contracts.golden", &generated.manual.contracts),
        ("manual-limits.golden", &generated.manual.limits),
        ("manual-claims.golden", &generated.manual.claims),
    ];
    for (name, text) in files {
        let path = folder().join(name);
        if std::env::var_os("TANGLE_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(&golden == text, "{name} differs from what is generated");
    }
}

#[test]
fn the_golden_schemas_use_every_keyword() {
    let mut used = BTreeSet::new();
    for name in ["base.json", "document.json"] {
        let text = std::fs::read_to_string(folder().join("schemas").join(name)).unwrap();
        keys(&serde_json::from_str(&text).unwrap(), &mut used);
    }
    let known: BTreeSet<&str> = SCHEMA_KEYWORDS
        .iter()
        .chain(ROOT_KEYWORDS)
        .copied()
        .collect();
    let unused: Vec<_> = known.iter().filter(|key| !used.contains(**key)).collect();
    assert!(unused.is_empty(), "no golden schema uses {unused:?}");
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                found.insert(key.clone());
                keys(member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn generating_twice_gives_the_same_text() {
    let once = generate(&folder().join("schemas"), &Options::default()).unwrap();
    let again = generate(&folder().join("schemas"), &Options::default()).unwrap();
    assert_eq!(once.types, again.types);
    assert_eq!(once.checks, again.checks);
}
