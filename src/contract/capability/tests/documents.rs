//! What a capability document must be (core contracts, 9).

use super::*;
use crate::contract::strict;

/// The default document, with a change at each pointer; `null` removes.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut document = json!(ceiling(Some("codex"), true));
    for (pointer, change) in changes {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        let parent = document.pointer_mut(parent).unwrap();
        if change.is_null() {
            parent.as_object_mut().unwrap().remove(last);
        } else {
            parent[last] = change.clone();
        }
    }
    document
}

/// Where a document is refused and by which keyword, or `taken`.
fn verdict(document: &Value) -> String {
    match CapabilitySnapshot::from_value(document.clone()) {
        Ok(taken) => {
            assert_eq!(json!(*taken), *document);
            "taken".to_owned()
        }
        Err(refused) => format!(
            "{} {}",
            refused.path(),
            refused.keyword().unwrap_or_default()
        ),
    }
}

fn flags(names: &[&str], value: bool) -> Value {
    names.iter().map(|name| (*name, json!(value))).collect()
}

const RETAINED: [&str; 4] = [
    "exactRunIdentity",
    "resultIdentity",
    "eventIdentity",
    "cancellationIdempotency",
];

#[test]
fn core_9_1_each_flag_of_retained_control_is_needed() {
    assert_eq!(verdict(&changed(&[])), "taken");
    for flag in RETAINED {
        let at = format!("/retainedControl/{flag}");
        let missing = verdict(&changed(&[(&at, Value::Null)]));
        assert_eq!(missing, "/retainedControl required", "{flag}");
        let off = verdict(&changed(&[(&at, json!(false))]));
        assert_eq!(off, "/retainedControl x-rule", "{flag}");
    }
    let empty = changed(&[("/retainedControl", json!({}))]);
    assert_eq!(verdict(&empty), "/retainedControl required");
}

#[test]
fn core_9_1_what_is_no_document_is_refused() {
    for (change, place) in [
        (("/usage", json!("true")), "/usage type"),
        (("/placement", json!(1)), "/placement type"),
        (
            ("/profile/systemPrompt", json!(true)),
            "/profile/systemPrompt type",
        ),
        (
            ("/profile/systemPrompt/replace", Value::Null),
            "/profile/systemPrompt required",
        ),
        (("/sessions", Value::Null), " required"),
        (
            ("/observation/lifecycle", Value::Null),
            "/observation required",
        ),
        (
            ("/profile/extensions", json!([" x"])),
            "/profile/extensions/0 x-trim",
        ),
        (
            ("/profile/extensions", json!(["a", "a"])),
            "/profile/extensions uniqueItems",
        ),
        (
            ("/profile/extensions", json!(vec!["x"; 1025])),
            "/profile/extensions maxItems",
        ),
        (
            ("/interactions/kinds", json!([])),
            "/interactions/kinds minItems",
        ),
        (
            ("/interactions/answerFieldTypes", json!(["date"])),
            "/interactions/answerFieldTypes/0 enum",
        ),
        (
            ("/interactions/responseScopes", json!(["forever"])),
            "/interactions/responseScopes/0 enum",
        ),
        (
            ("/create/egress", json!(["open", "open"])),
            "/create/egress uniqueItems",
        ),
        (("/create/egress", json!([])), "/create/egress minItems"),
        (
            ("/create/runtimeAttachments/mcp", json!(false)),
            "/create/runtimeAttachments/mcp const",
        ),
        (
            ("/exactProcess", json!({ "egress": [] })),
            "/exactProcess/egress minItems",
        ),
        (
            ("/exactProcess", json!({ "egress": ["open"] })),
            "/exactProcess/egress/0 enum",
        ),
    ] {
        assert_eq!(verdict(&changed(&[change])), place);
    }
    for no_object in [json!(null), json!([]), json!("x")] {
        assert_eq!(verdict(&no_object), " type");
    }
    let mut document = changed(&[]);
    document["placement"] = Value::Null;
    assert_eq!(verdict(&document), "/placement type");
}

#[test]
fn core_9_1_an_unknown_member_is_refused_at_every_level() {
    let document = changed(&[("/exactProcess", json!({ "egress": ["strict"] }))]);
    let blocks = document.as_object().unwrap();
    let mut objects = vec![String::new()];
    for (name, block) in blocks {
        let Some(members) = block.as_object() else {
            continue;
        };
        objects.push(format!("/{name}"));
        let inner = members.iter().filter(|(_, member)| member.is_object());
        objects.extend(inner.map(|(member, _)| format!("/{name}/{member}")));
    }
    assert_eq!(objects.len(), 17);
    for object in objects {
        let mut document = document.clone();
        document.pointer_mut(&object).unwrap()["teleport"] = json!(true);
        assert_eq!(verdict(&document), format!("{object} x-mode"));
    }
}

#[test]
fn core_9_2_flags_that_do_not_stand_together_are_refused_at_their_place() {
    let continues = json!({ "atomicBoundary": true, "requestIdempotency": true });
    let admits = json!({
        "atomicBoundary": true, "requestIdempotency": true, "admissionControl": true,
    });
    let alone = ("/retainedControl", Value::Null);
    type Changes<'a> = &'a [(&'a str, Value)];
    let rows: &[(Changes<'_>, &str)] = &[
        (
            &[("/streaming/detach", json!(false))],
            "/retainedControl x-rule",
        ),
        (
            &[("/streaming/replay", json!(false))],
            "/retainedControl x-rule",
        ),
        (
            &[("/streaming/turnIdempotency", json!(false))],
            "/retainedControl x-rule",
        ),
        (
            &[("/sessions/continue", json!(false))],
            "/retainedControl x-rule",
        ),
        (
            &[alone.clone(), ("/streaming/detach", json!(false))],
            "taken",
        ),
        (&[("/nativeContinuation", continues.clone())], "taken"),
        (&[("/nativeContinuation", admits.clone())], "taken"),
        (
            &[
                ("/nativeContinuation", continues.clone()),
                ("/nativeContinuation/atomicBoundary", json!(false)),
            ],
            "/nativeContinuation x-rule",
        ),
        (
            &[
                alone.clone(),
                ("/sessions/continue", json!(false)),
                ("/nativeContinuation", continues),
            ],
            "/nativeContinuation x-rule",
        ),
        (
            &[alone, ("/nativeContinuation", admits)],
            "/nativeContinuation/admissionControl x-rule",
        ),
        (
            &[("/branching/lookup", json!(false))],
            "/branching x-implies",
        ),
        (&[("/branching/fork", json!(false))], "/branching x-implies"),
        (
            &[("/branching/retrySafe", Value::Null)],
            "/branching x-implies",
        ),
        (
            &[("/interactions/secretAnswers", json!(true))],
            "/interactions/secretAnswers x-rule",
        ),
        (
            &[("/interactions/answerFieldTypes", json!(["secret"]))],
            "/interactions/secretAnswers x-rule",
        ),
        (&[("/create", json!({}))], "/create minProperties"),
        (&[("/create", json!({ "billingOwner": false }))], "taken"),
        (
            &[("/interactiveTerminal/attach", json!(false))],
            "/interactiveTerminal x-implies",
        ),
        (
            &[("/interactiveAgent/start", json!(false))],
            "/interactiveAgent x-implies",
        ),
        (
            &[("/interactiveAgent/control", json!(false))],
            "/interactiveAgent/control x-rule",
        ),
        (
            &[("/interactiveAgent/attach", json!(false))],
            "/interactiveAgent x-implies",
        ),
    ];
    for (changes, place) in rows {
        assert_eq!(verdict(&changed(changes)), *place, "{changes:?}");
    }
}

#[test]
fn core_9_2_context_transfer_is_whole_or_absent() {
    let all = ["freshSession", "requestIdempotency", "lookup"];
    let block = flags(&all, true);
    assert_eq!(
        verdict(&changed(&[("/contextTransfer", block.clone())])),
        "taken"
    );
    for flag in all {
        let mut block = block.clone();
        block[flag] = json!(false);
        let refused = verdict(&changed(&[("/contextTransfer", block)]));
        assert_eq!(refused, "/contextTransfer x-rule", "{flag}");
    }
}

#[test]
fn core_9_2_each_interactive_flag_needs_what_it_rests_on() {
    let all = [
        "start",
        "control",
        "status",
        "attach",
        "reattach",
        "sendPrompt",
        "input",
        "resize",
        "stop",
    ];
    let needs: [(&str, &[&str]); 7] = [
        ("status", &["start"]),
        ("attach", &["start", "control"]),
        ("reattach", &["start", "control", "attach"]),
        ("sendPrompt", &["start", "control"]),
        ("input", &["start", "control", "attach"]),
        ("resize", &["start", "control", "attach"]),
        ("stop", &["start", "control"]),
    ];
    let with = |on: &[&str]| {
        let mut block = flags(&all, false);
        for flag in on {
            block[*flag] = json!(true);
        }
        verdict(&changed(&[("/interactiveAgent", block)]))
    };
    assert_eq!(with(&[]), "taken");
    assert_eq!(with(&["control"]), "taken");
    for (flag, needed) in needs {
        let whole: Vec<&str> = needed.iter().chain([&flag]).copied().collect();
        assert_eq!(with(&whole), "taken", "{whole:?}");
        for missing in needed {
            let partial: Vec<&str> = whole.iter().copied().filter(|it| it != missing).collect();
            let place = match *missing {
                "control" => "/interactiveAgent/control x-rule",
                _ => "/interactiveAgent x-implies",
            };
            assert_eq!(with(&partial), place, "{flag} without {missing}");
        }
    }
}

#[test]
fn core_9_2_blocks_that_claim_nothing_are_taken() {
    let terminal = flags(&["attach", "input", "resize", "reattach"], false);
    let branching = flags(
        &[
            "checkpoint",
            "fork",
            "confidential",
            "retrySafe",
            "lookup",
            "cleanup",
        ],
        false,
    );
    for (block, value) in [
        ("/interactiveTerminal", terminal),
        ("/branching", branching),
    ] {
        assert_eq!(verdict(&changed(&[(block, value)])), "taken", "{block}");
    }
    let mut observation = changed(&[])["observation"].clone();
    for flag in observation.as_object_mut().unwrap().values_mut() {
        *flag = json!(false);
    }
    assert_eq!(verdict(&changed(&[("/observation", observation)])), "taken");
}

#[test]
fn core_9_3_the_ceiling_is_a_document_for_every_backend() {
    for (backend, replace, append) in [
        (Some("claude-code"), true, true),
        (Some("pi"), true, true),
        (Some("prime"), true, true),
        (Some("codex"), true, false),
        (Some("gemini"), true, false),
        (Some("opencode"), false, true),
        (Some("acp"), false, false),
        (Some("of tomorrow"), false, false),
        (None, false, false),
    ] {
        let document = CapabilitySnapshot::new(ceiling(backend, false)).unwrap();
        let prompt = &document.profile.system_prompt;
        assert_eq!(
            (prompt.replace, prompt.append),
            (replace, append),
            "{backend:?}"
        );
        let kinds = &document.interactions.as_ref().unwrap().kinds;
        assert_eq!(json!(kinds), json!(["question", "permission", "plan"]));
    }
    let document = json!(ceiling(Some("codex"), false));
    let off: BTreeSet<String> = super::stages::pointers(&document)
        .into_iter()
        .filter(|flag| document.pointer(flag) == Some(&json!(false)))
        .collect();
    assert_eq!(
        off,
        set(&[
            "/branching/checkpoint",
            "/branching/fork",
            "/confidential",
            "/interactions/secretAnswers",
            "/profile/systemPrompt/append",
            "/sessions/list",
            "/sessions/messages",
            "/usage",
            "/workspace/cwdBases/host",
            "/workspace/git",
        ])
    );
}

#[test]
fn provider_5_a_published_document_is_shared_and_cannot_change() {
    let published = environment(&complete());
    let shared = published.document().clone();
    assert!(std::ptr::eq(
        &raw const **published.document(),
        &raw const *shared
    ));
    let text = json!(*shared).to_string();
    let read = CapabilitySnapshot::read(text.as_bytes()).unwrap();
    assert_eq!(read, shared);
    let twice = text.replacen('{', r#"{"usage":false,"#, 1);
    assert!(strict::parse(twice.as_bytes()).is_err());
    assert!(CapabilitySnapshot::read(twice.as_bytes()).is_err());
}
