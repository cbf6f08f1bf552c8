//! The closed list of keywords.

/// Keywords of a schema.
pub const SCHEMA: &[&str] = &[
    "$ref",
    "additionalProperties",
    "const",
    "dependentRequired",
    "description",
    "enum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "propertyNames",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-format",
    "x-implies",
    "x-json",
    "x-mark",
    "x-mode",
    "x-payload",
    "x-refuse",
    "x-rule",
    "x-rust",
    "x-trim",
    "x-ungated",
    "x-units",
];
/// Keywords that may stand at the root of a file besides.
pub const ROOT: &[&str] = &["$defs", "$id", "$schema", "x-claims", "x-limits"];

/// Keywords that bound a scalar; they need a name of their own, so that the bound becomes a type.
pub(super) const SCALAR_BOUNDS: &[&str] = &[
    "exclusiveMinimum",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "pattern",
    "x-format",
    "x-rule",
    "x-rust",
    "x-trim",
    "x-units",
];

/// Keywords that may stand beside `$ref`.
pub(super) const BESIDE_REFERENCE: &[&str] = &[
    "$ref",
    "description",
    "x-json",
    "x-payload",
    "x-refuse",
    "x-ungated",
];
