//! What each constraint refuses, with the path, the words and the keyword.

use serde_json::{Value, json};

use super::*;

const TEXT: Node = Node {
    kind: Kind::String,
    ..Node::ANY
};
const FLAG: Node = Node {
    kind: Kind::Boolean,
    ..Node::ANY
};
static ANY_TEXT: Node = TEXT;
static ANY_FLAG: Node = FLAG;
static SHORT: Node = Node {
    max_length: 3,
    units: Units::Utf16,
    trim: true,
    ..TEXT
};

fn refused(node: &Node, value: Value) -> (String, Option<&'static str>) {
    match node.check(&value) {
        Ok(()) => ("taken".into(), None),
        Err(refused) => (refused.to_string(), refused.keyword()),
    }
}

fn says(node: &Node, value: Value, words: &str, keyword: &'static str) {
    assert_eq!(refused(node, value), (words.to_owned(), Some(keyword)));
}

fn takes(node: &Node, value: Value) {
    assert_eq!(refused(node, value).0, "taken");
}

#[test]
fn a_union_by_mark_means_the_first_branch_whose_mark_is_there() {
    static OFF: Node = Node {
        kind: Kind::Object,
        properties: &[Property {
            name: "enabled",
            required: true,
            node: &ANY_FLAG,
        }],
        required: 1,
        extra: Extra::Refuse,
        ..Node::ANY
    };
    static LOCAL: Node = Node {
        kind: Kind::Object,
        properties: &[
            Property {
                name: "command",
                required: true,
                node: &SHORT,
            },
            Property {
                name: "enabled",
                required: false,
                node: &ANY_FLAG,
            },
        ],
        required: 1,
        extra: Extra::Refuse,
        ..Node::ANY
    };
    static UNION: Node = Node {
        kind: Kind::Object,
        choice: Choice::Mark(&[
            ("enabled", Some(Constant::Boolean(false)), &OFF),
            ("command", None, &LOCAL),
        ]),
        ..Node::ANY
    };
    takes(&UNION, json!({ "enabled": false }));
    takes(&UNION, json!({ "enabled": true, "command": "ls" }));
    says(
        &UNION,
        json!({ "enabled": false, "command": "ls" }),
        "unknown field `command`",
        "x-mode",
    );
    says(
        &UNION,
        json!({ "command": "list" }),
        "/command: must have at most 3 UTF-16 units",
        "maxLength",
    );
    says(
        &UNION,
        json!({ "enabled": true }),
        "one of `enabled`, `command` is missing",
        "oneOf",
    );
    says(&UNION, json!([]), "must be an object", "type");
}

#[test]
fn a_union_by_type_refuses_the_types_that_it_has_not() {
    static EACH: Node = Node {
        kind: Kind::Object,
        extra: Extra::Each(&ANY_FLAG),
        names: Some(&SHORT),
        ..Node::ANY
    };
    static UNION: Node = Node {
        choice: Choice::Kind(&[(Kind::String, &SHORT), (Kind::Object, &EACH)]),
        ..Node::ANY
    };
    takes(&UNION, json!("one"));
    takes(&UNION, json!({ "a": true }));
    says(&UNION, json!(1), "must be a string or an object", "oneOf");
    says(
        &UNION,
        json!({ "a": 1 }),
        "/a: must be true or false",
        "type",
    );
    says(
        &UNION,
        json!({ "long key": true }),
        "/(key of 8 units): the key must have at most 3 UTF-16 units",
        "maxLength",
    );
    says(
        &UNION,
        json!(" a"),
        "must not begin or end with white space",
        "x-trim",
    );
}

#[test]
fn a_unit_that_counts_more_than_characters_refuses_by_its_own_name() {
    says(
        &SHORT,
        json!("😀😀"),
        "must have at most 3 UTF-16 units",
        "x-units",
    );
}

#[test]
fn flags_imply_flags() {
    static FLAGS: Node = Node {
        kind: Kind::Object,
        properties: &[
            Property {
                name: "attach",
                required: false,
                node: &ANY_FLAG,
            },
            Property {
                name: "input",
                required: false,
                node: &ANY_FLAG,
            },
        ],
        implies: &[("input", &["attach"])],
        min_properties: 1,
        ..Node::ANY
    };
    takes(&FLAGS, json!({ "attach": true, "input": true }));
    takes(&FLAGS, json!({ "input": false }));
    says(
        &FLAGS,
        json!({ "attach": false, "input": true }),
        "`input` needs `attach` to be true",
        "x-implies",
    );
    says(
        &FLAGS,
        json!({ "input": true }),
        "`input` needs `attach` to be true",
        "x-implies",
    );
    says(&FLAGS, json!({}), "must not be empty", "minProperties");
}

#[test]
fn a_whole_value_is_bounded_before_it_is_looked_at() {
    let bounded = Node {
        json: Json::Bounded,
        also: Some(&ANY_TEXT),
        ..Node::ANY
    };
    takes(&bounded, json!("a"));
    says(&bounded, json!(1), "must be a string", "type");
    let long = Value::from("a".repeat(16_385));
    let inside = json!({ "a": [1, long] });
    says(
        &bounded,
        inside.clone(),
        "/a/1: 16385 UTF-16 units of a string, limit 16384 (MAX_STRING)",
        "x-json",
    );
    let refused = bounded.check(&inside).unwrap_err();
    assert_eq!(refused.code(), "JSON_BOUND_VIOLATION");

    let content = Node {
        json: Json::Content,
        ..Node::ANY
    };
    takes(&content, inside);
    let text = Node {
        kind: Kind::String,
        ..content
    };
    takes(&text, json!("a".repeat(1_048_574)));
    says(
        &text,
        json!("a".repeat(1_048_575)),
        "1048577 bytes of a payload, limit 1048576 (MAX_JSON_BYTES)",
        "x-json",
    );
}

#[test]
fn numbers_and_times_have_bounds() {
    let above = Node {
        kind: Kind::Number,
        above: 0.0,
        ..Node::ANY
    };
    takes(&above, json!(0.5));
    says(&above, json!(0), "must be more than 0", "exclusiveMinimum");
    let time = Node {
        time: Time::Offset,
        ..TEXT
    };
    for fine in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+02:30"] {
        takes(&time, json!(fine));
    }
    for wrong in [
        "2026-01-02T03:04:05",
        "2026-01-02",
        "2026-01-02T03:04:05+0230",
        "2026-01-02T03:04:05+02:30[Europe/Paris]",
        "2026-02-30T03:04:05Z",
    ] {
        says(
            &time,
            json!(wrong),
            "must be an RFC 3339 time with Z or an offset",
            "x-format",
        );
    }
}

#[test]
fn a_rule_function_runs_last_and_may_lead_deeper() {
    fn of_value(value: &Value) -> Result<(), Refused> {
        match value.get("a") {
            Some(_) => Err(Refused::new("/a", "must not be there")),
            None => Ok(()),
        }
    }
    static RULED: Node = Node {
        kind: Kind::Object,
        rule: Rule::Value(of_value),
        ..Node::ANY
    };
    let list = Node {
        kind: Kind::Array,
        items: Some(&RULED),
        ..Node::ANY
    };
    takes(&list, json!([{}]));
    says(
        &list,
        json!([{}, { "a": 1 }]),
        "/1/a: must not be there",
        "x-rule",
    );
    let text = Node {
        rule: Rule::Text(|text| {
            if text == "sh" {
                Err("must be no shell")
            } else {
                Ok(())
            }
        }),
        ..TEXT
    };
    says(&text, json!("sh"), "must be no shell", "x-rule");
    assert!(text.check_text("ls").is_ok());
}

#[test]
fn members_in_any_order_are_found() {
    // As a build with ordered maps keeps them.
    static PROPERTIES: [Property; 6] = {
        const fn one(name: &'static str, required: bool) -> Property {
            Property {
                name,
                required,
                node: &ANY_FLAG,
            }
        }
        [
            one("a", true),
            one("b", false),
            one("c", true),
            one("d", false),
            one("e", false),
            one("f", true),
        ]
    };
    let node = Node {
        kind: Kind::Object,
        properties: &PROPERTIES,
        required: 3,
        extra: Extra::Refuse,
        ..Node::ANY
    };
    takes(&node, json!({ "f": true, "c": true, "a": true }));
    says(
        &node,
        json!({ "f": true, "a": true }),
        "`c` is missing",
        "required",
    );
    says(
        &node,
        json!({ "f": true, "a": 1, "z": true, "y": 1 }),
        "unknown fields `y`, `z`",
        "x-mode",
    );
}
