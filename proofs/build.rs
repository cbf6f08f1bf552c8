//! Lists the generated types, and copies their shapes for another derive.
//!
//! * `trips.rs`: a row for each generated type, with the function that takes a document through it.
//! * `shapes.rs`: the structs and enums with `schemars::JsonSchema` in place of their own derives.

use std::path::{Path, PathBuf};

use quote::{ToTokens as _, format_ident, quote};
use syn::{Attribute, Item, parse_quote};
use tangle_sandbox_codegen::{Options, generate};

fn main() {
    let root =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("a folder of the package"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("a folder to write to"));
    let schemas = root.join("../schemas");
    println!("cargo::rerun-if-changed={}", schemas.display());
    println!("cargo::rerun-if-changed=build.rs");
    let options = Options {
        contract: "super::contract".into(),
        ..Options::default()
    };
    let generated = match generate(&schemas, &options) {
        Ok(generated) => generated,
        Err(error) => panic!("schemas/{error}"),
    };
    let file: syn::File = syn::parse_str(&generated.types).expect("generated text is Rust");
    let items: Vec<Item> = file.items.into_iter().filter(is_of_the_wire).collect();
    write(&out.join("trips.rs"), trips(&items));
    write(&out.join("shapes.rs"), shapes(items));
}

fn write(path: &Path, text: String) {
    std::fs::write(path, text).expect("the folder can be written");
}

/// Whether an item is a type that goes over the wire: a scalar, or a struct or enum that is serialised.
fn is_of_the_wire(item: &Item) -> bool {
    match item {
        Item::Macro(_) => true,
        Item::Struct(item) => derives(&item.attrs),
        Item::Enum(item) => derives(&item.attrs),
        _ => false,
    }
}

fn derives(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("derive") && it.to_token_stream().to_string().contains("Serialize")
    })
}

/// The name of an item: that of a scalar is the first capital word of its macro call.
fn name(item: &Item) -> String {
    match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Macro(item) => {
            let mut words = item
                .mac
                .tokens
                .clone()
                .into_iter()
                .filter_map(|token| match token {
                    proc_macro2::TokenTree::Ident(word) => Some(word.to_string()),
                    _ => None,
                });
            words.next().expect("a scalar has a name")
        }
        _ => unreachable!("only types of the wire are listed"),
    }
}

fn trips(items: &[Item]) -> String {
    let rows = items.iter().map(|item| {
        let name = name(item);
        let ty = format_ident!("{name}");
        quote! { (#name, trip::<::tangle_sandbox::contract::types::#ty> as Trip) }
    });
    quote! {
        /// Every generated type by name, with the function that takes a document through it.
        pub static ALL: &[(&str, Trip)] = &[#(#rows),*];
    }
    .to_string()
}

fn shapes(mut items: Vec<Item>) -> String {
    let names: Vec<String> = items.iter().map(name).collect();
    for item in &mut items {
        match item {
            Item::Struct(item) => rederive(&mut item.attrs),
            Item::Enum(item) => rederive(&mut item.attrs),
            _ => {}
        }
    }
    let rows = names.iter().map(|name| {
        let ty = format_ident!("{name}");
        quote! { (#name, |maker| maker.subschema_for::<#ty>()) }
    });
    quote! {
        #(#items)*
        /// Every shape by name, with the function that adds it to a set of schemas.
        pub static ALL: &[(&str, fn(&mut ::schemars::SchemaGenerator) -> ::schemars::Schema)] = &[#(#rows),*];
    }
    .to_string()
}

fn rederive(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| !attribute.path().is_ident("derive"));
    attributes.insert(0, parse_quote!(#[derive(::schemars::JsonSchema)]));
}
