//! The generated public API as text: every type with its fields, every claim and every limit.

use tangle_sandbox_codegen::Generated;

/// One item a line group, sorted.
pub fn list(generated: &Generated) -> String {
    let file: syn::File = syn::parse_str(&generated.types).unwrap();
    let mut api: Vec<String> = file.items.iter().filter_map(describe).collect();
    let lines = |text: &str, start: &str, word: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.map(|line| format!("{word}{line}")).collect()
    };
    api.extend(lines(&generated.claims, "pub struct", "claim "));
    api.extend(lines(&generated.limits, "pub const", ""));
    api.sort();
    api.join("\n")
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
