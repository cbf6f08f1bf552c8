//! The generated public API: every type with its fields, so that a new version of the generator is a reviewed difference.
//!
//! `INSTA_UPDATE=always cargo test --test api` writes the snapshot again.

use std::path::Path;

use tangle_sandbox_codegen::{Options, generate};

#[test]
fn the_generated_api_is_the_reviewed_one() {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let generated = generate(&schemas, &Options::default()).unwrap();
    let file: syn::File = syn::parse_str(&generated.types).unwrap();
    let mut api: Vec<String> = file.items.iter().filter_map(describe).collect();
    api.extend(
        generated
            .claims
            .lines()
            .filter(|line| line.starts_with("pub struct"))
            .map(|line| format!("claim {line}")),
    );
    api.extend(
        generated
            .limits
            .lines()
            .filter(|line| line.starts_with("pub const"))
            .map(str::to_owned),
    );
    api.sort();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("api", api.join("\n"));
    });
}

fn describe(item: &syn::Item) -> Option<String> {
    match item {
        syn::Item::Struct(item) => {
            let fields: Vec<String> = item.fields.iter().map(field).collect();
            Some(format!("struct {} {{\n{}}}", item.ident, fields.concat()))
        }
        syn::Item::Enum(item) => {
            let variants: Vec<String> = item
                .variants
                .iter()
                .map(|variant| {
                    let fields: Vec<String> = variant.fields.iter().map(field).collect();
                    format!(
                        "  {}{}\n{}",
                        rename(&variant.attrs),
                        variant.ident,
                        fields.concat()
                    )
                })
                .collect();
            Some(format!("enum {} {{\n{}}}", item.ident, variants.concat()))
        }
        syn::Item::Macro(item) => Some(format!(
            "scalar {} {}",
            text(&item.mac.path),
            text(&item.mac.tokens)
        )),
        _ => None,
    }
}

fn field(field: &syn::Field) -> String {
    let name = field
        .ident
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let ty = text(&field.ty)
        .replace(":: std :: option :: ", "")
        .replace(":: std :: string :: ", "");
    format!("  {}{name}: {ty}\n", rename(&field.attrs))
}

/// The name on the wire, where it differs.
fn rename(attributes: &[syn::Attribute]) -> String {
    let text: String = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
        .map(text)
        .collect();
    match text.split_once("rename = \"") {
        Some((_, rest)) => format!("\"{}\" ", rest.split('"').next().unwrap_or_default()),
        None => String::new(),
    }
}

fn text(tokens: &impl quote::ToTokens) -> String {
    tokens.to_token_stream().to_string()
}
