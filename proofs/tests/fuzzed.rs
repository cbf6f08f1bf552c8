//! The fuzz targets without I/O on the stable toolchain, for a fixed number of inputs: documents of every definition whose text
//! is damaged byte by byte. See `fuzz/README.md` for the search without end.

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use tangle_sandbox::contract::checks;
use tangle_sandbox_proofs::dice::Dice;
use tangle_sandbox_proofs::generate::Generator;
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::{cases, seed};

/// Pieces of JSON, some of them awkward.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"-0",
    b"1e400",
    b"\\ud800",
    b"\xff",
    b"\xf0\x9f\x98\x80",
    b"9007199254740993",
    b"\"a\":",
    b"\x00",
    b" ",
    b"0.1e-7",
    b"\xef\xbb\xbf",
    b"\"type\":\"status\"",
];

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    let end = (at + dice.below(12)).min(bytes.len());
    match dice.below(5) {
        0 => {
            bytes.drain(at..end);
        }
        1 => {
            let copy = bytes[at..end].to_vec();
            let to = dice.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        2 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
        3 => bytes.truncate(at),
        _ => {
            let piece = dice.pick(PIECES).iter().copied();
            bytes.splice(at..at, piece);
        }
    }
}

#[test]
fn the_targets_hold_on_damaged_documents() {
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let each = cases(8_000).div_ceil(checks::ALL.len());
    for (index, (name, _)) in checks::ALL.iter().enumerate() {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        for round in 0..each {
            let document = maker.document(name);
            let mut text = match round % 4 {
                // A frame around it.
                0 => serde_json::json!({ "type": document["type"], "id": "1", "data": document })
                    .to_string(),
                _ => document.to_string(),
            }
            .into_bytes();
            for _ in 0..maker.dice.below(4) {
                damage(&mut text, &mut maker.dice);
            }
            targets::strict_json(&text);
            targets::canonical_json(&text);
            targets::frames(&text);
            let choice = u16::try_from(index).expect("few definitions");
            targets::checker(&[&choice.to_le_bytes(), &text[..]].concat());
        }
    }
}
