//! Canonical JSON and its digest: ours against `serde_json_canonicalizer`, `serde_jcs` and plain `to_vec`.
//!
//! `cargo bench --bench canonical` prints the median of interleaved rounds for three documents. The targets are
//! those of the first, the ordinary one; with SHA-256: at least 3.5 times as fast as `serde_json_canonicalizer`
//! and at most twice the time of plain `to_vec`. The others show the ends: nearly all text, where hashing takes
//! half of the time, and nearly all numbers, where writing doubles does.

#[path = "support/rounds.rs"]
mod rounds;

use std::hint::black_box;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tangle_sandbox::contract::canonical;

use rounds::{ROUNDS, interleaved, megabytes_a_second};

const AGAINST_CANONICALIZER: f64 = 3.5;
const AGAINST_TO_VEC: f64 = 2.0;

fn main() {
    println!("SHA instructions: {}", sha_instructions());
    let (faster, slower) = compare("run frames", &frames());
    compare("agent profile", &profile());
    compare("measurements", &measurements());

    let verdict = |met| if met { "met" } else { "MISSED" };
    println!(
        "\nrun frames with SHA-256: {faster:.2} times as fast as serde_json_canonicalizer (target {AGAINST_CANONICALIZER}): {}",
        verdict(faster >= AGAINST_CANONICALIZER)
    );
    println!(
        "run frames with SHA-256: {slower:.2} of the time of to_vec (target {AGAINST_TO_VEC}): {}",
        verdict(slower <= AGAINST_TO_VEC)
    );
}

/// Many small records of mixed kinds, as a run stream holds them.
fn frames() -> Value {
    (0..12_000)
        .map(|n| {
            json!({
                "type": "message.part.updated",
                "id": n,
                "cost": f64::from(n) * 0.0137,
                "data": {
                    "part": {
                        "text": "The quick brown fox jumps over the lazy dog",
                        "id": format!("prt_{n}"), "zeta": true, "alpha": null,
                    },
                    "usage": { "output": n * 3, "input": n * 7 },
                },
            })
        })
        .collect()
}

/// Few members and long texts with escapes and text beyond ASCII.
fn profile() -> Value {
    let line = "## Rules\n\n* Say \"why\" before \"what\"; keep paths like `src\\lib` as they are — always.\n";
    let files: Value = (0..40)
        .map(|n| {
            json!({
                "path": format!("docs/{n}.md"),
                "resource": { "kind": "inline", "name": "rules", "content": line.repeat(500) },
            })
        })
        .collect();
    json!({
        "name": "reviewer", "harness": "opencode",
        "prompt": { "systemPrompt": line.repeat(100) },
        "metadata": { "größe": 1, "研究": true, "😀": null },
        "resources": { "files": files },
    })
}

/// Doubles and integers, the dearest part of the text.
fn measurements() -> Value {
    (0..60_000u32)
        .map(|n| {
            json!([
                n,
                f64::from(n) / 7.0,
                f64::from(n) * 1e-9,
                u64::from(n) << 20
            ])
        })
        .collect()
}

fn hashed(text: &[u8]) {
    black_box(Sha256::digest(text));
}

/// Measures one document. Returns, both with SHA-256, how many times as fast as `serde_json_canonicalizer` ours
/// is, and its time in times of `to_vec`.
fn compare(name: &str, document: &Value) -> (f64, f64) {
    let bytes = canonical::to_text(document).len();
    let to_vec = || serde_json::to_vec(document).unwrap();
    let canonicalizer = || serde_json_canonicalizer::to_vec(document).unwrap();
    let jcs = || serde_jcs::to_vec(document).unwrap();
    assert_eq!(canonical::to_text(document).into_bytes(), canonicalizer());

    let mut workloads: [(&str, &mut dyn FnMut()); 8] = [
        ("ours", &mut || {
            drop(black_box(canonical::to_text(document)))
        }),
        ("serde_json_canonicalizer", &mut || {
            drop(black_box(canonicalizer()))
        }),
        ("serde_jcs", &mut || drop(black_box(jcs()))),
        ("serde_json::to_vec", &mut || drop(black_box(to_vec()))),
        ("ours + SHA-256", &mut || {
            black_box(canonical::digest(document));
        }),
        ("serde_json_canonicalizer + SHA-256", &mut || {
            hashed(&canonicalizer())
        }),
        ("serde_jcs + SHA-256", &mut || hashed(&jcs())),
        ("serde_json::to_vec + SHA-256", &mut || hashed(&to_vec())),
    ];
    let times = interleaved(&mut workloads, ROUNDS);

    println!("\n{name}: {:.1} MB of text", bytes as f64 / 1e6);
    println!(
        "  {:<36}{:>9}{:>11}{:>16}{:>10}",
        "", "ms", "MB/s", "canonicalizer ×", "to_vec ÷"
    );
    for (at, (name, _)) in workloads.iter().enumerate() {
        // The first four are without a digest and are compared among themselves.
        let base = at / 4 * 4;
        println!(
            "  {name:<36}{:>9.2}{:>11.0}{:>16.2}{:>10.2}",
            times[at].as_secs_f64() * 1e3,
            megabytes_a_second(bytes, times[at]),
            ratio(times[base + 1], times[at]),
            ratio(times[at], times[base + 3]),
        );
    }
    (ratio(times[5], times[4]), ratio(times[4], times[7]))
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// Whether the processor hashes in hardware, which `sha2` finds out by itself when it runs.
fn sha_instructions() -> &'static str {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    match (flags.is_empty(), has("sha_ni") || has("sha2")) {
        (true, _) => "not known on this system",
        (false, true) => "yes",
        (false, false) => "no",
    }
}
