//! Every schema that the generator must refuse, with the place and the rule that it names.

use serde_json::{Value, json};
use tangle_sandbox_codegen::{Options, generate};

/// Generates from one file `s.json` that holds `schema` and gives the error's text.
fn refused(schema: &Value) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.json"), schema.to_string()).unwrap();
    match generate(dir.path(), &Options::default()) {
        Ok(_) => "taken".into(),
        Err(error) => error.to_string(),
    }
}

/// One definition `X` in an otherwise good file.
fn definition(x: Value) -> String {
    refused(&json!({ "title": "S", "description": "d", "$defs": { "X": x } }))
}

/// One property `p` of a strict object.
fn property(p: Value) -> String {
    definition(
        json!({ "type": "object", "x-mode": "strict", "description": "d", "properties": { "p": p } }),
    )
}

#[test]
fn keywords_that_nobody_enforces_stop_the_build() {
    for keyword in [
        "if",
        "then",
        "not",
        "anyOf",
        "allOf",
        "format",
        "default",
        "examples",
        "multipleOf",
        "exclusiveMaximum",
        "patternProperties",
        "contains",
        "prefixItems",
        "nullable",
        "deprecated",
        "x-unknown",
    ] {
        let schema = json!({ "type": "string", "description": "d", keyword: "v" });
        let expected = format!("s.json#/$defs/X: keyword `{keyword}` is not supported");
        assert_eq!(definition(schema), expected);
    }
    assert_eq!(
        property(json!({ "type": "string", "description": "d", "format": "uri" })),
        "s.json#/$defs/X/properties/p: keyword `format` is not supported"
    );
}

#[test]
fn a_property_may_be_named_like_a_keyword() {
    let schema = json!({
        "type": "object", "x-mode": "strict", "description": "d",
        "properties": { "if": { "type": "string", "description": "d" }, "type": { "type": "string", "description": "d" } },
    });
    assert_eq!(definition(schema), "taken");
}

#[test]
fn every_place_has_a_description_and_every_object_a_mode() {
    assert_eq!(
        definition(json!({ "type": "string" })),
        "s.json#/$defs/X: a description is missing"
    );
    assert_eq!(
        property(json!({ "type": "string" })),
        "s.json#/$defs/X/properties/p: a description is missing"
    );
    assert_eq!(
        definition(json!({ "type": "object", "description": "d", "properties": {} })),
        "s.json#/$defs/X: `x-mode` is missing: strict, record or open"
    );
    assert_eq!(
        definition(
            json!({ "type": "object", "description": "d", "x-mode": "lax", "properties": {} })
        ),
        "s.json#/$defs/X: `x-mode` must be strict or record or open"
    );
    assert_eq!(
        definition(json!({ "type": "object", "description": "d", "x-mode": "open" })),
        "s.json#/$defs/X: `x-mode` needs `properties`"
    );
    assert_eq!(
        definition(
            json!({ "type": "object", "description": "d", "x-mode": "open", "properties": {}, "additionalProperties": { "description": "d" } })
        ),
        "s.json#/$defs/X: `additionalProperties` beside `properties`: `x-mode` says it"
    );
}

#[test]
fn bounds_objects_and_enumerations_have_names() {
    for (keyword, value, kind) in [
        ("maxLength", json!(5), "string"),
        ("minLength", json!(1), "string"),
        ("pattern", json!("a"), "string"),
        ("enum", json!(["a"]), "string"),
        ("x-units", json!("utf16"), "string"),
        ("x-trim", json!(true), "string"),
        ("x-format", json!("timestamp"), "string"),
        ("x-rust", json!("secret"), "string"),
        ("minimum", json!(1), "integer"),
        ("maximum", json!(1), "integer"),
    ] {
        assert_eq!(
            property(json!({ "type": kind, "description": "d", keyword: value })),
            format!(
                "s.json#/$defs/X/properties/p: `{keyword}` needs a definition of its own under `$defs`"
            )
        );
    }
    assert_eq!(
        property(
            json!({ "type": "object", "description": "d", "x-mode": "open", "properties": {} })
        ),
        "s.json#/$defs/X/properties/p: `properties` needs a definition of its own under `$defs`"
    );
}

#[test]
fn a_keyword_stands_only_beside_its_type_and_with_a_value_of_its_kind() {
    for (schema, rule) in [
        (
            json!({ "type": "integer", "maxLength": 1 }),
            "`maxLength` needs `type` string",
        ),
        (
            json!({ "type": "string", "minimum": 1 }),
            "`minimum` needs `type` integer or number",
        ),
        (
            json!({ "type": "string", "items": {} }),
            "`items` needs `type` array",
        ),
        (json!({ "type": "array" }), "`items` is missing"),
        (
            json!({ "type": "integer", "const": 1 }),
            "`const` needs `type` string or boolean",
        ),
        (
            json!({ "type": "string", "required": [] }),
            "`required` needs `type` object",
        ),
        (
            json!({ "type": ["string", "null"] }),
            "`type` must be one name",
        ),
        (json!({ "type": "text" }), "`type` text is not supported"),
        (
            json!({ "type": "string", "maxLength": -1 }),
            "`maxLength` must be a whole number",
        ),
        (
            json!({ "type": "string", "x-units": "bytes" }),
            "`x-units` must be utf16 or utf8",
        ),
        (
            json!({ "type": "string", "x-trim": false }),
            "`x-trim` must be true or absent",
        ),
        (
            json!({ "type": "string", "x-rust": "clear" }),
            "`x-rust` must be secret or digest",
        ),
        (
            json!({ "type": "string", "enum": [1] }),
            "`enum` must be a list of texts",
        ),
        (
            json!({ "$ref": "#/$defs/X", "maxLength": 1 }),
            "`maxLength` beside `$ref` is not supported",
        ),
    ] {
        let mut schema = schema;
        schema["description"] = json!("d");
        assert_eq!(definition(schema), format!("s.json#/$defs/X: {rule}"));
    }
}

#[test]
fn names_point_somewhere_and_exist_once() {
    assert_eq!(
        property(json!({ "$ref": "#/$defs/Y", "description": "d" })),
        "s.json#/$defs/X/properties/p: `#/$defs/Y` names nothing"
    );
    assert_eq!(
        property(json!({ "$ref": "t.json#/$defs/X", "description": "d" })),
        "s.json#/$defs/X/properties/p: `t.json#/$defs/X` names nothing"
    );
    assert_eq!(
        definition(
            json!({ "type": "object", "x-mode": "strict", "description": "d", "required": ["q"], "properties": {} })
        ),
        "s.json#/$defs/X: `required` must name properties"
    );
    assert_eq!(
        definition(
            json!({ "type": "object", "x-mode": "strict", "description": "d", "dependentRequired": { "q": [] }, "properties": {} })
        ),
        "s.json#/$defs/X: `dependentRequired` must name properties"
    );
    let twice = json!({
        "title": "X", "description": "d", "type": "string",
        "$defs": { "X": { "type": "string", "description": "d" } },
    });
    assert_eq!(refused(&twice), "s.json#: the type X exists twice");
    assert_eq!(
        refused(&json!({ "description": "d" })),
        "s.json#: `title` is missing"
    );
}

#[test]
fn a_union_says_how_its_branches_are_told_apart() {
    let branch = |more: Value| {
        let mut branch = json!({
            "type": "object", "x-mode": "strict", "description": "d", "title": "A", "required": ["k"],
            "properties": { "k": { "type": "string", "description": "d" }, "l": { "type": "string", "description": "d" } },
        });
        for (key, value) in more.as_object().unwrap() {
            branch[key] = value.clone();
        }
        branch
    };
    let union = |branches: Value| definition(json!({ "description": "d", "oneOf": branches }));
    let text = json!({ "type": "string", "description": "d", "title": "T" });
    let marked = branch(json!({ "x-mark": "k" }));
    assert_eq!(union(json!([marked, marked])), "taken");
    assert_eq!(union(json!([text, branch(json!({}))])), "taken");
    assert_eq!(
        union(json!([marked, branch(json!({}))])),
        "s.json#/$defs/X/oneOf: `oneOf` needs a required property that is a constant text in each branch, or `x-mark` in each, or types"
    );
    assert_eq!(
        union(json!([branch(json!({})), branch(json!({}))])),
        "s.json#/$defs/X: two branches of `oneOf` are of JSON type object"
    );
    let kinds = |first: &str, second: &str| {
        let of =
            |kind: &str| json!({ "type": kind, "description": "d", "title": kind.to_uppercase() });
        union(json!([of(first), of(second)]))
    };
    assert_eq!(
        kinds("number", "integer"),
        "s.json#/$defs/X: two branches of `oneOf` are of JSON type integer"
    );
    assert_eq!(
        kinds("integer", "number"),
        "s.json#/$defs/X: two branches of `oneOf` are of JSON type number"
    );
    let several = json!({ "description": "d", "oneOf": [text, branch(json!({}))] });
    let around = json!({ "description": "d", "oneOf": [
        { "$ref": "#/$defs/Several", "description": "d" },
        { "type": "boolean", "description": "d", "title": "B" },
    ] });
    assert_eq!(
        refused(
            &json!({ "title": "F", "description": "d", "$defs": { "Several": several, "X": around } })
        ),
        "s.json#/$defs/X: a branch of `oneOf` has no JSON type"
    );
    assert_eq!(
        union(json!([branch(json!({ "x-mark": "l" }))])),
        "s.json#/$defs/X/oneOf/0: `x-mark` must name a required property, not \"l\""
    );
    assert_eq!(
        union(json!([{ "type": "string", "description": "d" }])),
        "s.json#/$defs/X/oneOf/0: a branch of `oneOf` has a `title` or is a `$ref`"
    );
    assert_eq!(
        union(json!([])),
        "s.json#/$defs/X/oneOf: `oneOf` must be a list of branches"
    );
}

#[test]
fn bounds_of_whole_values_and_rules_say_what_they_mean() {
    for (schema, rule) in [
        (
            json!({ "type": "string", "x-json": "bounded" }),
            "`x-json` bounded on a text: `maxLength` says it",
        ),
        (
            json!({ "x-json": "large" }),
            "`x-json` must be bounded or content",
        ),
        (
            json!({ "x-json": "content", "x-payload": "root" }),
            "`x-payload` needs `x-json` bounded",
        ),
        (
            json!({ "x-json": "bounded", "x-payload": "elsewhere" }),
            "`x-payload` must be root or profile or backend.profile",
        ),
        (
            json!({ "x-rule": "Not a name" }),
            "`x-rule` must be the name of a function",
        ),
        (
            json!({ "type": "string", "propertyNames": {} }),
            "`propertyNames` needs `type` object",
        ),
        (
            json!({ "type": "object", "x-mode": "strict", "properties": {}, "x-implies": { "a": [] } }),
            "`x-implies` must name properties",
        ),
        (
            json!({ "type": "object", "x-mode": "strict", "x-implies": { "a": [] },
                "properties": { "a": { "type": "string", "description": "d" } } }),
            "`x-implies`: `a` is no boolean",
        ),
        (
            json!({ "type": "object", "x-mode": "strict", "properties": {}, "propertyNames": { "description": "d" } }),
            "`propertyNames` beside `properties`: it is for maps",
        ),
    ] {
        let mut schema = schema;
        schema["description"] = json!("d");
        assert_eq!(definition(schema), format!("s.json#/$defs/X: {rule}"));
    }
}

/// A capability document with two flags and these claims.
fn claims(claims: Value) -> String {
    refused(&json!({
        "title": "Document", "description": "d", "type": "object", "x-mode": "open",
        "properties": { "a": { "type": "boolean", "description": "d" }, "b": { "type": "boolean", "description": "d", "x-ungated": "why" } },
        "x-claims": claims,
    }))
}

#[test]
fn the_claim_table_is_proven() {
    assert_eq!(
        claims(json!({ "A": { "doc": "d", "allOf": ["/a"] } })),
        "taken"
    );
    for (table, error) in [
        (
            json!({ "A": { "doc": "d", "allOf": ["/c"] } }),
            "s.json#/x-claims/A: /c is no boolean of Document",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": [] } }),
            "s.json#/x-claims/A: `allOf` names no flag: a claim without proof",
        ),
        (
            json!({ "A": { "allOf": ["/a"] } }),
            "s.json#/x-claims/A: `doc` is missing",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a"], "anyOf": [] } }),
            "s.json#/x-claims/A: keyword `anyOf` is not supported",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a"], "implies": ["B"] } }),
            "s.json#/x-claims/A: implies the unknown claim B",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/b"], "implies": ["B"] }, "B": { "doc": "d", "allOf": ["/a"] } }),
            "s.json#/x-claims/A: implies B but does not require /a",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a", "/a"] } }),
            "s.json#/x-claims/A: `allOf` names /a twice",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": "/a" } }),
            "s.json#/x-claims/A: `allOf` must be a list",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a", 1] } }),
            "s.json#/x-claims/A: `allOf` must be a list of texts",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a"], "implies": ["B", "B"] }, "B": { "doc": "d", "allOf": ["/a"] } }),
            "s.json#/x-claims/A: `implies` names B twice",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a"], "implies": ["A"] } }),
            "s.json#/x-claims/A: implies itself",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a"], "implies": ["B"] }, "B": { "doc": "d", "allOf": ["/a"], "implies": ["A"] } }),
            "s.json#/x-claims/A: implies itself",
        ),
        (
            json!({
                "A": { "doc": "d", "allOf": ["/a"], "implies": ["B"] },
                "B": { "doc": "d", "allOf": ["/a"], "implies": ["C"] },
                "C": { "doc": "d", "allOf": ["/b"] },
            }),
            "s.json#/x-claims/A: implies C but does not require /b",
        ),
        (
            json!({}),
            "s.json#/x-claims: /a gates no claim and has no `x-ungated`",
        ),
        (
            json!({ "A": { "doc": "d", "allOf": ["/a", "/b"] } }),
            "s.json#/x-claims: /b gates a claim and says `x-ungated`",
        ),
    ] {
        assert_eq!(claims(table), error);
    }
}

/// The claim `A` on `/a` of a document with `a` and one more property, and these definitions.
fn document(more: Value, defs: Value) -> String {
    refused(&json!({
        "title": "Document", "description": "d", "type": "object", "x-mode": "open",
        "properties": { "a": { "type": "boolean", "description": "d" }, "more": more },
        "$defs": defs,
        "x-claims": { "A": { "doc": "d", "allOf": ["/a"] } },
    }))
}

#[test]
fn a_boolean_is_found_wherever_it_stands() {
    let boolean = json!({ "type": "boolean", "description": "d" });
    let ungated = json!({ "type": "boolean", "description": "d", "x-ungated": "why" });
    let list = |items| json!({ "type": "array", "description": "d", "items": items });
    let map = |each| json!({ "type": "object", "description": "d", "additionalProperties": each });
    let named = json!({ "description": "d", "$ref": "#/$defs/Flag" });
    let excused = json!({ "description": "d", "$ref": "#/$defs/Flag", "x-ungated": "why" });
    let flag = json!({ "Flag": boolean });
    for (more, defs, error) in [
        (
            list(boolean.clone()),
            json!({}),
            "s.json#/x-claims: /more/* gates no claim and has no `x-ungated`",
        ),
        (
            map(boolean.clone()),
            json!({}),
            "s.json#/x-claims: /more/* gates no claim and has no `x-ungated`",
        ),
        (list(ungated), json!({}), "taken"),
        (
            named,
            flag.clone(),
            "s.json#/x-claims: /more gates no claim and has no `x-ungated`",
        ),
        (excused, flag, "taken"),
    ] {
        assert_eq!(document(more, defs), error);
    }
}

#[test]
fn a_capability_document_that_holds_itself_has_no_list_of_flags() {
    let tree = json!({ "Tree": {
        "type": "object", "x-mode": "open", "description": "d",
        "properties": { "below": { "description": "d", "$ref": "#/$defs/Tree" } },
    } });
    assert_eq!(
        document(json!({ "description": "d", "$ref": "#/$defs/Tree" }), tree),
        "s.json#/$defs/Tree: refers to itself, so that the flags of the claims cannot be listed"
    );
}

#[test]
fn a_limit_has_a_value_a_unit_and_a_reason() {
    let limits = |limit: Value| {
        refused(&json!({ "title": "L", "description": "d", "x-limits": { "M": limit } }))
    };
    assert_eq!(
        limits(json!({ "value": 1, "unit": "u", "doc": "d", "chapter": "c" })),
        "taken"
    );
    assert_eq!(
        limits(json!({ "value": 1, "doc": "d", "chapter": "c" })),
        "s.json#/x-limits/M: `unit` is missing"
    );
    assert_eq!(
        limits(json!({ "unit": "u", "doc": "d", "chapter": "c" })),
        "s.json#/x-limits/M: `value` must be a whole number"
    );
}

#[test]
fn what_is_no_schema_names_its_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.json"), "{").unwrap();
    let error = generate(dir.path(), &Options::default()).unwrap_err();
    assert_eq!(error.file(), "s.json");
    assert!(error.rule().starts_with("is not JSON"));
    std::fs::write(dir.path().join("s.json"), "[]").unwrap();
    let error = generate(dir.path(), &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "s.json#: a schema must be an object");
}
