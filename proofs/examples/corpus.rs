//! Writes a starting corpus for the fuzz targets: `cargo run -p tangle-sandbox-proofs --example corpus -- fuzz/corpus`.
//!
//! Documents of every definition, damaged ones among them, the documents and frames of the vectors, and a few bytes that mean
//! harm. The words of the schemas become a dictionary beside the corpus.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tangle_sandbox::contract::{checks, registry};
use tangle_sandbox_proofs::generate::Generator;
use tangle_sandbox_proofs::samples::Samples;
use tangle_sandbox_proofs::schemas::Schemas;
use tangle_sandbox_proofs::seed;

const HOSTILE: &[&str] = &[
    "{\"a\":1,\"\\u0061\":2}",
    "[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]",
    "1e400",
    "9007199254740993",
    "-0",
    "1.0",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "{\"\u{e000}\":1,\"😀\":2}",
    "[1e21,1e-7,0.1,5e-324]",
    " [ ] ",
    "nul",
    "\"\\u0000\\b\\f\"",
];

/// Files of one target, numbered.
struct Corpus {
    folder: PathBuf,
    count: usize,
}

impl Corpus {
    fn new(root: &Path, target: &str) -> Self {
        let folder = root.join(target);
        std::fs::create_dir_all(&folder).expect("a folder for the corpus");
        Self { folder, count: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        let path = self.folder.join(format!("start-{:05}", self.count));
        std::fs::write(path, bytes).expect("a file of the corpus");
        self.count += 1;
    }
}

fn main() {
    let root = PathBuf::from(std::env::args().nth(1).expect("the folder to write to"));
    let (schemas, samples) = (Schemas::read(), Samples::collect());
    let [mut strict, mut canonical, mut checker, mut frames, mut sse] =
        ["strict_json", "canonical", "checker", "frames", "sse"]
            .map(|target| Corpus::new(&root, target));
    for text in HOSTILE {
        strict.add(text.as_bytes());
        canonical.add(text.as_bytes());
    }
    for (index, (name, _)) in checks::ALL.iter().enumerate() {
        let mut maker = Generator::new(&schemas, &samples, seed(), name);
        for round in 0..3 {
            let mut document = maker.document(name);
            if round == 2 {
                maker.damage(schemas.get(name), &mut document);
            }
            let text = document.to_string();
            let choice = u16::try_from(index).expect("few definitions");
            checker.add(&[&choice.to_le_bytes(), text.as_bytes()].concat());
            if round == 0 && index % 4 == 0 {
                strict.add(text.as_bytes());
                canonical.add(text.as_bytes());
            }
        }
    }
    for value in &samples.values {
        let text = value.to_string();
        if text.len() > 2_000 {
            continue;
        }
        // A document of a vector stands under each contract that takes it.
        for (index, contract) in registry::CONTRACTS.iter().enumerate() {
            if contract.check(text.as_bytes()).is_ok() && checker.count < 4_000 {
                let choice = u16::try_from(index).expect("few contracts");
                checker.add(&[&choice.to_le_bytes(), text.as_bytes()].concat());
            }
        }
        if value["type"].is_string() && value["data"].is_object() {
            frames.add(text.as_bytes());
            sse.add(&as_sse(value, 3));
        }
    }
    let mut maker = Generator::new(&schemas, &samples, seed(), "frames");
    for _ in 0..100 {
        let event = maker.document("StreamEvent");
        let frame = json!({ "type": event["type"], "id": "1", "data": event });
        frames.add(frame.to_string().as_bytes());
        sse.add(&as_sse(&frame, 200));
    }
    sse.add(
        b"\x01:keep-alive\r\n\r\ndata: [DONE]\n\nid: 7\nevent: done\ndata: {\"a\":\ndata: 1}\n\n",
    );
    dictionary(&schemas, &root.join("words.dict"));
    println!(
        "strict_json {}, canonical {}, checker {}, frames {}, sse {}",
        strict.count, canonical.count, checker.count, frames.count, sse.count
    );
}

/// A frame as an event of a stream, after the byte that says how the body is cut.
fn as_sse(frame: &Value, cut: u8) -> Vec<u8> {
    let text = |key: &str| frame[key].as_str().unwrap_or_default();
    let event = format!(
        "id: {}\nevent: {}\ndata: {}\n\n",
        text("id"),
        text("type"),
        frame["data"]
    );
    [&[cut], event.as_bytes()].concat()
}

fn dictionary(schemas: &Schemas, path: &Path) {
    fn collect(value: &Value, words: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    match key.as_str() {
                        "properties" => words.extend(
                            member
                                .as_object()
                                .into_iter()
                                .flatten()
                                .map(|(name, _)| name.clone()),
                        ),
                        "const" | "enum" => {
                            let all = std::slice::from_ref(member);
                            let all = member.as_array().map_or(all, Vec::as_slice);
                            words.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
                        }
                        _ => {}
                    }
                    collect(member, words);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
            _ => {}
        }
    }
    let mut words = BTreeSet::new();
    schemas
        .definitions()
        .values()
        .for_each(|schema| collect(schema, &mut words));
    let mut text = String::new();
    for word in words
        .iter()
        .filter(|word| word.len() < 40 && word.is_ascii())
    {
        text.push_str(&format!("\"\\\"{}\\\"\"\n", word.escape_default()));
    }
    std::fs::write(path, text).expect("the dictionary");
}
