//! The strict path and its check: ours against a bare typed parse and against `jsonschema`.
//!
//! `cargo bench -p tangle-sandbox-proofs --bench contracts` prints the median of interleaved rounds. Targets, on a
//! profile of 2 KB: the whole strict path (bytes, strict JSON, check, type) at most 5 times the time of a typed parse by
//! `serde_json` alone; the check at most 1.5 times the time of `jsonschema`'s `is_valid` on the same schema; and the
//! strict path as linear up to 1 MiB as a typed parse.

#[path = "../../benches/support/rounds.rs"]
mod rounds;

use std::hint::black_box;

use serde_json::{Value, json};
use tangle_sandbox::contract::checker::Checked as _;
use tangle_sandbox::contract::types::AgentProfile;
use tangle_sandbox::contract::{read, strict};
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::standard::{Reading, validator};

use rounds::{ROUNDS, interleaved, megabytes_a_second};

const AGAINST_TYPED_PARSE: f64 = 5.0;
const AGAINST_JSONSCHEMA: f64 = 1.5;
/// How much more the strict path may slow down from 2 KB to 1 MiB than a typed parse does.
const LINEAR: f64 = 1.5;

fn main() {
    let small = profile(2);
    println!("profile of {} bytes", small.to_string().len());
    let (strict, check) = compare(&small);
    let slope = linear();

    let verdict = |met| if met { "met" } else { "MISSED" };
    println!(
        "\nstrict path: {strict:.2} of a typed parse (target {AGAINST_TYPED_PARSE}): {}",
        verdict(strict <= AGAINST_TYPED_PARSE)
    );
    println!(
        "check: {check:.2} of jsonschema's is_valid (target {AGAINST_JSONSCHEMA}): {}",
        verdict(check <= AGAINST_JSONSCHEMA)
    );
    println!(
        "strict path: slows down {slope:.2} times as much from 2 KB to 1 MiB as a typed parse (target {LINEAR}): {}",
        verdict(slope <= LINEAR)
    );
}

/// A profile that uses most of what a profile has; `size` sections of about 600 bytes each beside 1.5 KB.
fn profile(size: usize) -> Value {
    let servers: serde_json::Map<String, Value> = (0..size)
        .map(|n| {
            let server = json!({
                "command": "node", "args": [{ "kind": "public", "value": "server.js" }],
                "env": { "API_KEY": { "kind": "secret-ref", "key": "STORED_KEY", "format": "raw" } },
            });
            (format!("server-{n}"), server)
        })
        .collect();
    let files: Value = (0..size)
        .map(|n| {
            json!({
                "path": format!("docs/{n}.md"), "executable": false,
                "resource": { "kind": "inline", "name": "notes", "content": "Read this before you start. ".repeat(8) },
            })
        })
        .collect();
    json!({
        "name": "reviewer", "description": "Reviews a change line by line", "version": "1.4.0", "tags": ["review", "rust"],
        "harness": "opencode",
        "prompt": { "appendSystemPrompt": "Be brief. ".repeat(12), "instructions": ["Run the tests.", "Name the file and the line."] },
        "model": {
            "default": "anthropic/claude-opus-4-10", "small": "anthropic/claude-haiku-4", "reasoningEffort": "high",
            "maxTotalOutputTokens": 16000, "maxReasoningTokens": 8000, "metadata": { "credentialSource": "managed" },
        },
        "permissions": { "bash": { "git *": "allow", "rm *": "deny" }, "edit": "ask" },
        "tools": { "bash": true, "edit": true, "webfetch": false },
        "mcp": servers,
        "subagents": { "tester": { "description": "Runs the tests", "prompt": "Run them all.", "maxSteps": 20, "tools": { "bash": true } } },
        "resources": { "files": files, "failOnError": true },
        "hooks": { "PostToolUse": [{ "command": "cargo fmt", "timeoutMs": 5000, "blocking": true }] },
        "modes": { "plan": { "description": "Plan only", "permissions": { "edit": "deny" } } },
        "metadata": { "team": "platform", "cost": 1.5, "labels": ["a", "b", "c"] },
    })
}

/// Prints the steps of the strict path; gives it over a typed parse, and the check over `jsonschema`.
fn compare(document: &Value) -> (f64, f64) {
    const TIMES: usize = 2000;
    let text = document.to_string();
    let bytes = text.as_bytes();
    let standard = validator(&Schemas::read(), AgentProfile::NAME, Reading::Plain);
    assert!(standard.is_valid(document));
    let node = AgentProfile::node();
    let repeat = |work: &dyn Fn()| (0..TIMES).for_each(|_| work());

    let typed = || {
        drop(black_box(
            serde_json::from_slice::<AgentProfile>(bytes).unwrap(),
        ))
    };
    let parse = || drop(black_box(strict::parse(bytes).unwrap()));
    let check = || node.check(black_box(document)).unwrap();
    let is_valid = || assert!(standard.is_valid(black_box(document)));
    let whole = || drop(black_box(read::<AgentProfile>(bytes).unwrap()));
    let times = interleaved(
        &mut [
            ("typed parse by serde_json", &mut || repeat(&typed)),
            ("strict parse", &mut || repeat(&parse)),
            ("check", &mut || repeat(&check)),
            ("jsonschema is_valid", &mut || repeat(&is_valid)),
            ("strict path", &mut || repeat(&whole)),
        ],
        ROUNDS,
    );
    for (name, time) in [
        "typed parse",
        "strict parse",
        "check",
        "jsonschema",
        "strict path",
    ]
    .iter()
    .zip(&times)
    {
        let each = time.as_nanos() / TIMES as u128;
        println!("  {name:<14} {each:>8} ns");
    }
    let ratio = |a: usize, b: usize| times[a].as_secs_f64() / times[b].as_secs_f64();
    (ratio(4, 0), ratio(2, 3))
}

/// Throughput on growing profiles, beside that of the typed parse, which caches and the allocator slow down alike. Gives how
/// much more the strict path slows down from 2 KB to 1 MiB than the typed parse does.
fn linear() -> f64 {
    let texts: Vec<String> = [2, 30, 2200]
        .iter()
        .map(|size| profile(*size).to_string())
        .collect();
    let mut rates = Vec::new();
    for text in &texts {
        let times = (1 << 22) / text.len();
        let repeat = |work: &dyn Fn()| (0..times).for_each(|_| work());
        let typed = || {
            drop(black_box(
                serde_json::from_str::<AgentProfile>(text).unwrap(),
            ))
        };
        let strict = || drop(black_box(read::<AgentProfile>(text.as_bytes()).unwrap()));
        let both = interleaved(
            &mut [
                ("strict path", &mut || repeat(&strict)),
                ("typed parse", &mut || repeat(&typed)),
            ],
            ROUNDS,
        );
        let rate = |time| megabytes_a_second(text.len() * times, time);
        let (strict, typed) = (rate(both[0]), rate(both[1]));
        println!(
            "  {:>8} bytes: {strict:.0} MB/s, typed parse {typed:.0} MB/s",
            text.len()
        );
        rates.push((strict, typed));
    }
    (rates[0].0 / rates[2].0) / (rates[0].1 / rates[2].1)
}
