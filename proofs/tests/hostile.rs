//! Input that means harm: refused with a place and a rule, in time linear in its size, on a thread with a small stack.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tangle_sandbox::contract::bounds::{self, BoundRule};
use tangle_sandbox::contract::checker::Json;
use tangle_sandbox::contract::limits::{MAX_DEPTH, MAX_NODES, MAX_STRICT_DEPTH};
use tangle_sandbox::contract::{canonical, check::Refused, checks, strict};
use tangle_sandbox_proofs::generate::{Generator, node};
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::{seed, sites};

const MAX_SAFE: u64 = (1 << 53) - 1;

/// Runs `work` where a recursion over the input would overflow.
fn on_a_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        let running = thread.spawn_scoped(scope, work).expect("a thread");
        running.join().expect("the work ends")
    })
}

fn refused(bytes: &[u8]) -> Refused {
    match strict::parse(bytes) {
        Err(refused) => refused,
        Ok(_) => panic!(
            "taken: {}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        ),
    }
}

/// `levels` containers around `inner`: arrays and objects in turn.
fn nested(levels: usize, inner: Value) -> Value {
    (0..levels).fold(inner, |value, level| match level % 2 {
        0 => Value::Array(vec![value]),
        _ => [("k".to_owned(), value)].into_iter().collect(),
    })
}

/// A value of exactly `nodes` nodes, a container counting two.
fn of_nodes(nodes: usize) -> Value {
    // The root takes two; each list of a thousand scalars a thousand and two.
    let mut left = nodes - 2;
    let mut lists = Vec::new();
    while left > 0 {
        let items = left.saturating_sub(2).min(1000);
        match left {
            1 => lists.push(Value::Null),
            _ => lists.push(vec![Value::Null; items].into()),
        }
        left -= if left == 1 { 1 } else { items + 2 };
    }
    lists.into()
}

#[test]
fn bounded_json_ends_at_its_depth_and_its_nodes() {
    assert!(bounds::json("value", &nested(MAX_DEPTH, Value::Null)).is_ok());
    assert!(bounds::json("value", &of_nodes(MAX_NODES)).is_ok());
    for (value, rule) in [
        (nested(MAX_DEPTH + 1, Value::Null), BoundRule::Depth),
        (of_nodes(MAX_NODES + 1), BoundRule::Nodes),
        (nested(MAX_STRICT_DEPTH, Value::Null), BoundRule::Depth),
    ] {
        // The peer's writer is the one that recurs.
        let text = value.to_string();
        on_a_small_stack(|| {
            for error in [
                bounds::json("value", &value),
                bounds::event_content("value", &value),
            ] {
                assert_eq!(error.expect_err("too large").violation().rule(), rule);
            }
            let document = strict::parse_document(text.as_bytes()).expect("strict JSON");
            let error = bounds::json("value", &document).expect_err("too large");
            assert_eq!(error.violation().rule(), rule);
        });
    }
}

/// Every definition that bounds a whole value does so before it looks at what the value is.
#[test]
fn every_bounded_definition_refuses_depth_and_nodes() {
    let bounded = checks::ALL
        .iter()
        .filter(|(_, node)| !matches!(node.json, Json::Any));
    for (name, node) in bounded {
        for value in [nested(MAX_DEPTH + 1, Value::Null), of_nodes(MAX_NODES + 1)] {
            let refused = on_a_small_stack(|| node.check(&value)).expect_err(name);
            assert_eq!(refused.keyword(), Some("x-json"), "{name}: {refused}");
            assert_eq!(refused.code(), "JSON_BOUND_VIOLATION", "{name}");
        }
    }
}

#[test]
fn the_deepest_strict_json_passes_every_check_without_a_stack() {
    let text = nested(MAX_STRICT_DEPTH, Value::Null).to_string();
    on_a_small_stack(|| {
        let value = strict::parse(text.as_bytes()).expect("strict JSON");
        for (_, node) in checks::ALL {
            let _ = node.check(&value);
        }
        assert_eq!(canonical::to_text(&value), text);
    });
    let deeper = nested(MAX_STRICT_DEPTH + 1, Value::Null).to_string();
    assert!(refused(deeper.as_bytes()).rule().contains("512"));
}

/// The same, where the schema leads the check down: a value in every place of a document, as deep as strict JSON goes.
#[test]
fn a_deep_value_in_any_place_needs_no_stack() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    for name in schemas.names() {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        let document = maker.document(name);
        for site in sites::all(&schemas, schemas.get(name), &document)
            .iter()
            .take(60)
        {
            let mut deep = document.clone();
            *sites::at_mut(&mut deep, &site.path) =
                nested(MAX_STRICT_DEPTH - site.path.len(), json!(0));
            let text = deep.to_string();
            on_a_small_stack(|| {
                let value = strict::parse(text.as_bytes()).expect("strict JSON");
                let _ = node(name).check(&value);
            });
        }
    }
}

#[test]
fn ten_megabytes_of_nested_arrays_are_refused() {
    const SIZE: usize = 10 << 20;
    on_a_small_stack(|| {
        let open = "[".repeat(SIZE);
        let rule = refused(open.as_bytes()).rule().to_owned();
        assert!(rule.contains("512"), "{rule}");
        let objects = "{\"k\":".repeat(SIZE / 5);
        assert_eq!(refused(objects.as_bytes()).rule(), rule);
        // Within the depth, over and over.
        let one = "[".repeat(16) + &"]".repeat(16);
        let many = format!("[{}]", vec![one; SIZE / 33].join(","));
        let value = strict::parse(many.as_bytes()).expect("strict JSON");
        let error = bounds::json("value", &value).expect_err("too large");
        assert_eq!(error.violation().rule(), BoundRule::Array);
    });
}

#[test]
fn a_repeated_key_is_refused_at_every_depth() {
    on_a_small_stack(|| {
        for depth in 0..MAX_STRICT_DEPTH {
            let mut text = String::new();
            for level in 0..depth {
                text.push_str(if level % 2 == 0 { "[" } else { "{\"k\":" });
            }
            text.push_str(r#"{"same":1,"\u0073ame":2}"#);
            for level in (0..depth).rev() {
                text.push(if level % 2 == 0 { ']' } else { '}' });
            }
            let refused = refused(text.as_bytes());
            assert_eq!(refused.rule(), "key is repeated", "{depth}");
            assert_eq!(refused.path().matches('/').count(), depth + 1, "{depth}");
            assert!(refused.path().ends_with("/same"), "{depth}");
            assert!(strict::parse_document(text.as_bytes()).is_err(), "{depth}");
        }
    });
}

#[test]
fn an_integer_beyond_the_safe_ones_is_refused_in_every_integer_field() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let mut fields = 0;
    for name in schemas.names() {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        for _ in 0..10 {
            let Some(document) = maker.valid(name) else {
                panic!("{name}: no valid document");
            };
            for site in sites::all(&schemas, schemas.get(name), &document) {
                if site.schema.is_none_or(|schema| schema["type"] != "integer") {
                    continue;
                }
                fields += 1;
                for literal in [
                    "9007199254740993",
                    "9007199254740992",
                    "-9007199254740992",
                    "1e300",
                    "18446744073709551616",
                ] {
                    let mut marked = document.clone();
                    *sites::at_mut(&mut marked, &site.path) = json!("MARK");
                    let text = marked.to_string().replace("\"MARK\"", literal);
                    let value = strict::parse(text.as_bytes()).expect("strict JSON");
                    assert!(
                        node(name).check(&value).is_err(),
                        "{name} {:?}: {literal}",
                        site.path
                    );
                }
            }
        }
    }
    assert!(fields > 100, "only {fields} fields");
    assert_eq!(
        strict::parse(MAX_SAFE.to_string().as_bytes()),
        Ok(json!(MAX_SAFE))
    );
}

#[test]
fn numbers_and_texts_that_no_value_stands_for_are_refused() {
    for (number, rule) in [
        ("1e400", "double"),
        ("-1e400", "double"),
        ("1e99999999999", "double"),
        ("[1,-1e309]", "double"),
    ] {
        let refused = refused(number.as_bytes());
        assert!(refused.rule().contains(rule), "{number}: {refused}");
    }
    let digits = "9".repeat(1 << 20);
    assert!(refused(digits.as_bytes()).rule().contains("double"));
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\u0041""#,
        r#"{"\udfff":1}"#,
        r#"["a",{"k":"\uDBFF"}]"#,
    ] {
        let refused = refused(text.as_bytes());
        assert!(refused.rule().contains("surrogate"), "{text}: {refused}");
    }
    assert_eq!(refused(b"\"\xed\xa0\x80\"").rule(), "must be UTF-8");
    assert_eq!(strict::parse(br#""\ud83d\ude00""#), Ok(json!("😀")));
}

/// The time of this thread on a processor, in nanoseconds: others on the machine do not count.
fn spent() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// How much longer `work` takes for one input of eight times the size than for eight inputs: 1 where time is linear, 8 where it
/// grows with the square.
fn growth(input: impl Fn(usize) -> Vec<u8>, work: impl Fn(&[u8])) -> f64 {
    /// The clock of a thread has steps of some milliseconds.
    const ENOUGH: f64 = 6e7;
    let time = |bytes: &[u8], times: usize| {
        let (start, clock) = (spent(), std::time::Instant::now());
        for _ in 0..times {
            work(bytes);
        }
        match (start, spent()) {
            (Some(start), Some(end)) => (end - start) as f64,
            _ => clock.elapsed().as_nanos() as f64,
        }
    };
    let (small, large) = (input(1), input(8));
    let mut times = 1;
    while time(&large, times) < ENOUGH && times < 1 << 12 {
        times *= 2;
    }
    let best = |bytes: &[u8], times| {
        (0..3)
            .map(|_| time(bytes, times))
            .fold(f64::INFINITY, f64::min)
    };
    best(&large, times) / best(&small, times * 8).max(1.0)
}

#[test]
fn time_grows_with_the_size_and_not_with_its_square() {
    type Input = fn(usize) -> Vec<u8>;
    const STEP: usize = 64 << 10;
    let inputs: [(&str, Input); 9] = [
        ("arrays beyond the depth", |times| {
            "[".repeat(times * STEP).into()
        }),
        ("arrays within the depth", |times| {
            let one = "[".repeat(16) + &"]".repeat(16);
            format!("[{}]", vec![one; times * STEP / 33].join(",")).into()
        }),
        ("members, the last one twice", |times| {
            let mut text = String::from("{");
            for index in 0..times * STEP / 10 {
                let _ = write!(text, "\"{index}\":0,");
            }
            text.push_str("\"a\":0,\"a\":0}");
            text.into()
        }),
        ("members that share a long beginning", |times| {
            let beginning = "k".repeat(100);
            let mut text = String::from("{");
            for index in 0..times * STEP / 110 {
                let _ = write!(text, "\"{beginning}{index}\":0,");
            }
            text.push_str("\"a\":0}");
            text.into()
        }),
        ("repeated keys at every depth", |times| {
            let one = "{\"k\":".repeat(200) + "0" + &"}".repeat(200);
            format!(
                "[{}{{\"a\":0,\"a\":0}}]",
                (one + ",").repeat(times * STEP / 1200)
            )
            .into()
        }),
        ("escapes", |times| {
            format!("\"{}\"", "\\u00e9".repeat(times * STEP / 6)).into()
        }),
        ("one long number", |times| {
            format!("0.{}", "7".repeat(times * STEP)).into()
        }),
        ("equal items", |times| {
            format!("[{}0]", "\"same\",".repeat(times * STEP / 7)).into()
        }),
        ("white space", |times| {
            format!("[{}0]", " \n\t".repeat(times * STEP / 3)).into()
        }),
    ];
    let several = [
        "CreateSandbox",
        "AgentProfile",
        "RunRequest",
        "DeploymentDocument",
    ]
    .map(node);
    for (what, input) in inputs {
        let growth = growth(input, |bytes| {
            if let Ok(value) = strict::parse(bytes) {
                for node in several {
                    let _ = node.check(&value);
                }
                let _ = bounds::json("value", &value);
                let _ = bounds::event_content("value", &value);
                let _ = canonical::digest(&value);
            }
            let _ = strict::parse_document(bytes);
        });
        println!("{what}: {growth:.2}");
        assert!(
            growth < 3.0,
            "{what}: {growth:.1} times the time of as much in small pieces"
        );
    }
}

/// A list that must not have equal items, and maps and lists of a schema, at sizes that their own bounds would refuse first.
#[test]
fn the_checks_of_lists_and_maps_grow_with_the_size() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    for name in schemas.names() {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        let document = maker.document(name);
        for site in sites::all(&schemas, schemas.get(name), &document) {
            let Some(schema) = site
                .schema
                .filter(|it| it["type"] == "array" && it["uniqueItems"] == true)
            else {
                continue;
            };
            let growth = growth(
                |times| {
                    let mut large = document.clone();
                    let items = (0..times * 2_000).map(|index| json!(format!("item {index}")));
                    *sites::at_mut(&mut large, &site.path) = items.collect();
                    large.to_string().into_bytes()
                },
                |bytes| {
                    let value = strict::parse(bytes).expect("strict JSON");
                    let _ = node(name).check(&value);
                },
            );
            println!("{name}: {growth:.2}");
            assert!(growth < 3.0, "{name} {schema}: {growth:.1} times the time");
        }
    }
}
