//! Finishes what typify wrote: the schema's own descriptions as documentation, and the serialisation of secrets.

use quote::ToTokens as _;
use serde_json::Value;
use syn::{Attribute, Field, Fields, Item, parse_quote};

use crate::Options;
use crate::bundle::{Bundle, referenced};
use crate::error::SchemaError;

pub(crate) fn polish(
    file: &mut syn::File,
    bundle: &Bundle,
    options: &Options,
) -> Result<(), SchemaError> {
    drop_unused_error(file);
    let secret = format!("{}::secret::serialize", options.contract);
    let present = format!("{}::present", options.contract);
    let context = Context {
        bundle,
        secret,
        present,
    };
    for item in &mut file.items {
        match item {
            Item::Struct(item) => {
                let name = item.ident.to_string();
                let schema = definition(bundle, &name)?;
                describe(&mut item.attrs, schema);
                fields(&mut item.fields, schema, &context);
            }
            Item::Enum(item) => {
                let name = item.ident.to_string();
                let schema = definition(bundle, &name)?;
                describe(&mut item.attrs, schema);
                deny_beside_content(&mut item.attrs, schema);
                variants(item, schema, &context);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The definitions, and the functions of the contract that attributes name.
struct Context<'a> {
    bundle: &'a Bundle,
    secret: String,
    present: String,
}

impl Context<'_> {
    /// Whether a property takes any JSON, so that `null` is a value of it.
    fn takes_anything(&self, property: &Value) -> bool {
        let schema = referenced(property)
            .and_then(|name| self.bundle.defs.get(name))
            .unwrap_or(property);
        ["type", "oneOf", "$ref"]
            .iter()
            .all(|key| schema.get(*key).is_none())
    }
}

/// Typify always writes the error of its conversions, also when nothing converts.
fn drop_unused_error(file: &mut syn::File) {
    let is_error = |item: &Item| matches!(item, Item::Mod(module) if module.ident == "error");
    let used = file
        .items
        .iter()
        .filter(|item| !is_error(item))
        .any(|item| {
            item.to_token_stream()
                .to_string()
                .contains("ConversionError")
        });
    if !used {
        file.items.retain(|item| !is_error(item));
    }
}

/// Typify makes a tag with one more field an adjacently tagged enum, and forgets there that other fields are refused.
fn deny_beside_content(attributes: &mut Vec<Attribute>, schema: &Value) {
    let adjacent = |attribute: &Attribute| {
        let text = attribute.to_token_stream().to_string();
        attribute.path().is_ident("serde") && text.contains("content =")
    };
    let strict = |branch: &Value| branch["x-mode"] == "strict";
    let branches = schema["oneOf"].as_array();
    if attributes.iter().any(adjacent) && branches.is_some_and(|list| list.iter().all(strict)) {
        attributes.push(parse_quote!(#[serde(deny_unknown_fields)]));
    }
}

/// Typify invents a name where a schema has none; the keyword rules leave no such place.
fn definition<'a>(bundle: &'a Bundle, name: &str) -> Result<&'a Value, SchemaError> {
    bundle
        .defs
        .get(name)
        .ok_or_else(|| bundle.error(name, "the generated type has no definition of this name"))
}

fn variants(item: &mut syn::ItemEnum, schema: &Value, context: &Context<'_>) {
    let branches = schema["oneOf"].as_array();
    for (index, variant) in item.variants.iter_mut().enumerate() {
        match branches.and_then(|branches| branches.get(index)) {
            Some(branch) => {
                describe(&mut variant.attrs, branch);
                fields(&mut variant.fields, branch, context);
            }
            None => {
                let wire = rename(&variant.attrs).unwrap_or_else(|| variant.ident.to_string());
                variant.attrs.retain(|attribute| !is_doc(attribute));
                let text = format!("`{wire}` on the wire.");
                variant.attrs.push(parse_quote!(#[doc = #text]));
            }
        }
    }
}

fn fields(fields: &mut Fields, schema: &Value, context: &Context<'_>) {
    for field in fields.iter_mut() {
        let wire = rename(&field.attrs)
            .or_else(|| field.ident.as_ref().map(ToString::to_string))
            .unwrap_or_default();
        let wire = wire.strip_prefix("r#").unwrap_or(&wire).to_owned();
        match schema["properties"].get(&wire) {
            Some(property) => describe(&mut field.attrs, property),
            None if field.ident.as_ref().is_some_and(|name| name == "extra") => {
                field.attrs.retain(|attribute| !is_doc(attribute));
                field.attrs.push(
                    parse_quote!(#[doc = "Fields that this version does not know, as they came."]),
                );
            }
            None => {}
        }
        let required = schema["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|name| name == &wire));
        if !required && field.ident.is_some() {
            let any = context.takes_anything(&schema["properties"][&wire]);
            optional(field, &wire, any.then_some(&context.present));
        }
        if holds_secret(field) {
            let secret = &context.secret;
            field
                .attrs
                .push(parse_quote!(#[serde(serialize_with = #secret)]));
        }
    }
}

/// Typify reads an absent list or map as an empty one, and `null` as an absent value; to a digest they differ, so the first
/// becomes an option and the second is read as what it is.
fn optional(field: &mut Field, wire: &str, present: Option<&String>) {
    let is = |attribute: &Attribute, word: &str| {
        attribute.path().is_ident("serde")
            && attribute
                .to_token_stream()
                .to_string()
                .split(|c: char| !c.is_alphanumeric())
                .any(|part| part == word)
    };
    if field.attrs.iter().any(|attribute| is(attribute, "flatten")) {
        return;
    }
    let last = |ty: &syn::Type| match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    let collects = last(&field.ty).is_some_and(|last| ["Vec", "BTreeMap", "Map"].contains(&&*last));
    if !collects && present.is_none() {
        return;
    }
    if collects {
        let inner = field.ty.clone();
        field.ty = parse_quote!(::std::option::Option<#inner>);
    }
    field
        .attrs
        .retain(|attribute| !attribute.path().is_ident("serde"));
    field.attrs.push(parse_quote!(
        #[serde(rename = #wire, skip_serializing_if = "::std::option::Option::is_none")]
    ));
    if let Some(present) = present {
        field
            .attrs
            .push(parse_quote!(#[serde(default, deserialize_with = #present)]));
    }
}

/// Puts the schema's description in place of typify's documentation, which holds the whole schema.
fn describe(attributes: &mut Vec<Attribute>, schema: &Value) {
    attributes.retain(|attribute| !is_doc(attribute));
    let text = schema["description"].as_str().unwrap_or_default();
    attributes.insert(0, parse_quote!(#[doc = #text]));
}

fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The `rename` of a `#[serde(..)]` attribute.
fn rename(attributes: &[Attribute]) -> Option<String> {
    let mut found = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                let name: syn::LitStr = meta.value()?.parse()?;
                found = Some(name.value());
            } else if meta.input.peek(syn::Token![=]) {
                let _: syn::Expr = meta.value()?.parse()?;
            }
            Ok(())
        });
    }
    found
}

/// Whether a field's type names the secret: alone, optional, in a list or as the value of a map.
fn holds_secret(field: &Field) -> bool {
    fn inside(ty: &syn::Type) -> bool {
        let syn::Type::Path(path) = ty else {
            return false;
        };
        path.path.segments.iter().any(|segment| {
            segment.ident == "Secret"
                || match &segment.arguments {
                    syn::PathArguments::AngleBracketed(list) => list.args.iter().any(
                        |argument| matches!(argument, syn::GenericArgument::Type(ty) if inside(ty)),
                    ),
                    _ => false,
                }
        })
    }
    inside(&field.ty)
}
