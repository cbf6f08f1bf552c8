//! No type that goes over the wire is written by hand: the types of all packages that derive or implement `Serialize` or
//! `Deserialize` outside of the generated modules are those that `wire-types.md` explains, strictly both ways.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use tangle_sandbox_proofs::schemas::repository;

/// What a type does by its traits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Does {
    writes: bool,
    reads: bool,
}

impl Does {
    fn word(self) -> &'static str {
        match (self.writes, self.reads) {
            (true, true) => "both",
            (true, false) => "writes",
            _ => "reads",
        }
    }
}

/// The types found so far, by `file::Name`.
#[derive(Default)]
struct Found {
    file: String,
    types: BTreeMap<String, Does>,
}

impl Found {
    fn note(&mut self, name: &str, word: &str) {
        let (writes, reads) = (
            word == "Serialize",
            word == "Deserialize" || word == "DeserializeOwned",
        );
        if writes || reads {
            let does = self
                .types
                .entry(format!("{}::{name}", self.file))
                .or_default();
            does.writes |= writes;
            does.reads |= reads;
        }
    }

    fn derived(&mut self, name: &str, attributes: &[syn::Attribute]) {
        for attribute in attributes {
            // `cfg_attr` holds derives too.
            if let syn::Meta::List(list) = &attribute.meta
                && (list.path.is_ident("derive") || list.path.is_ident("cfg_attr"))
            {
                words(list.tokens.clone(), &mut |word| self.note(name, word));
            }
        }
    }
}

/// Every identifier of `tokens`, however deep.
fn words(tokens: TokenStream, found: &mut impl FnMut(&str)) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => found(&word.to_string()),
            TokenTree::Group(group) => words(group.stream(), found),
            _ => {}
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.derived(&item.ident.to_string(), &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.derived(&item.ident.to_string(), &item.attrs);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some((_, path, _)) = &item.trait_
            && let Some(last) = path.segments.last()
        {
            let name = match &*item.self_ty {
                syn::Type::Path(ty) => ty.path.segments.last().map(|last| last.ident.to_string()),
                _ => None,
            };
            self.note(name.as_deref().unwrap_or("?"), &last.ident.to_string());
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let name = match &item.ident {
            Some(name) => format!("{name}!"),
            None => "a macro call".to_owned(),
        };
        // A bound in a macro would be noted too; none is so far.
        words(item.mac.tokens.clone(), &mut |word| self.note(&name, word));
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        match path.file_name().and_then(|name| name.to_str()) {
            // The unit tests of a module beside it.
            Some("tests" | "tests.rs") => {}
            _ if path.is_dir() => sources(&path, found),
            _ if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn every_type_that_is_serialised_is_generated_or_explained() {
    let mut files = Vec::new();
    for folder in ["src", "local/src", "cli/src"] {
        sources(&repository().join(folder), &mut files);
    }
    let mut found = Found::default();
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a source");
        let file =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(repository()).expect("a path below");
        found.file = name.display().to_string();
        found.visit_file(&file);
    }
    let table =
        std::fs::read_to_string(repository().join("proofs/wire-types.md")).expect("the table");
    let mut explained = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, does, why] = cells[..] else {
            panic!("a row has three cells: {line}");
        };
        assert!(why.len() > 20, "a row says why: {line}");
        explained.insert(name.trim_matches('`').to_owned(), does.to_owned());
    }
    let found: BTreeMap<String, String> = found
        .types
        .into_iter()
        .map(|(name, does)| (name, does.word().to_owned()))
        .collect();
    let mut faults = Vec::new();
    for (name, does) in &found {
        match explained.get(name) {
            None => faults.push(format!("{name} ({does}) is no generated type: write a schema, or a row in proofs/wire-types.md")),
            Some(said) if said != does => faults.push(format!("{name} {does}, and not {said}")),
            Some(_) => {}
        }
    }
    let gone = explained.keys().filter(|name| !found.contains_key(*name));
    faults.extend(
        gone.map(|name| format!("{name} has a row in proofs/wire-types.md and is not there")),
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_way_to_serialise_is_found() {
    let source = r#"
        #[derive(Debug, serde::Serialize)] struct Derived;
        mod inner { #[derive(Deserialize)] pub enum Nested { A } }
        fn work() { #[derive(Serialize, Deserialize)] struct Local; }
        impl<'de> serde::Deserialize<'de> for ByHand {}
        impl Outer { fn method() { struct Within; impl Serialize for Within {} } }
        macro_rules! many { ($n:ident) => { #[derive(::serde::Serialize)] struct $n; } }
        #[cfg_attr(feature = "x", derive(Serialize))] struct Sometimes;
        #[cfg(test)] mod tests { #[derive(Serialize)] struct Unseen; }
        fn bound<T: Serialize>(value: &T) {}
    "#;
    let mut found = Found {
        file: "f".into(),
        ..Found::default()
    };
    found.visit_file(&syn::parse_file(source).expect("Rust"));
    let found: Vec<String> = found
        .types
        .iter()
        .map(|(name, does)| format!("{name} {}", does.word()))
        .collect();
    let expected = [
        "f::ByHand reads",
        "f::Derived writes",
        "f::Local both",
        "f::Nested reads",
        "f::Sometimes writes",
        "f::Within writes",
        "f::many! writes",
    ];
    assert_eq!(found, expected);
}
