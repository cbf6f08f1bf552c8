//! Texts and values that real documents hold, for rules that chance does not keep: those of the vectors, and a few more.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tangle_sandbox::contract::canonical;

use crate::schemas::repository;

/// The longest text, in bytes, and the longest JSON of a value that is worth keeping.
const MAX_TEXT: usize = 400;
const MAX_VALUE: usize = 20_000;

/// Texts of many forms: names, paths, addresses, times, versions, media types.
const TEXTS: &[&str] = &[
    "a",
    "word",
    "two words",
    "A_NAME",
    "lower-case",
    "x1",
    "0",
    "1",
    "42",
    "true",
    "main",
    "src/lib.rs",
    "./run.sh",
    ".",
    "a/b/c",
    "/workspace",
    "/workspace/a",
    "*.rs",
    "**/*",
    "https://example.com",
    "https://example.com/path",
    "http://127.0.0.1:8080",
    "wss://example.com/ws",
    "example.com",
    "*.example.com",
    "localhost",
    "10.0.0.0/8",
    "::1/128",
    "127.0.0.1",
    "text/plain",
    "application/json",
    "image/png",
    "GET",
    "POST",
    "1.2.3",
    "v1",
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.678Z",
    "2026-01-02T03:04:05+02:00",
    "aGVsbG8=",
    "SGVsbG8",
    "data:text/plain;base64,aGVsbG8=",
    "application/octet-stream",
    "550e8400-e29b-41d4-a716-446655440000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "openai/gpt-5",
    "anthropic",
    "bash",
    "sh -c",
];

/// Numbers of many forms.
const NUMBERS: &[u64] = &[
    0, 1, 2, 7, 10, 60, 100, 1000, 1024, 2048, 10_240, 60_000, 65_536, 1_048_576,
];

/// The samples.
#[derive(Debug)]
pub struct Samples {
    /// Texts, the short ones first.
    pub texts: Vec<String>,
    /// Numbers, objects and arrays.
    pub values: Vec<Value>,
}

impl Samples {
    /// Collects the samples.
    pub fn collect() -> Self {
        let mut found = Found::default();
        found.texts.extend(TEXTS.iter().map(ToString::to_string));
        let folder = repository().join("tests/vectors");
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                found.take(&value);
            }
        }
        let mut texts: Vec<String> = found.texts.into_iter().collect();
        texts.sort_by_key(String::len);
        let values = found
            .values
            .iter()
            .filter_map(|text| serde_json::from_str(text).ok());
        let numbers = NUMBERS.iter().copied().map(Value::from);
        Self {
            texts,
            values: numbers.chain(values).chain(asks()).collect(),
        }
    }
}

/// Asks, which no vector of a served topic holds: each with the digest of everything else in it.
fn asks() -> impl Iterator<Item = Value> {
    ["question", "permission", "plan"].into_iter().map(|kind| {
        let mut ask = json!({
            "id": "ask-1", "kind": kind, "title": "Which branch?", "body": "There are two.",
            "allowedOutcomes": ["accepted"], "responseScopes": ["session"], "timeoutMs": 60_000,
            "onTimeout": "default", "default": { "branch": "main" }, "subject": { "tool": "bash" },
            "answerSpec": { "fields": [{ "type": "text", "name": "branch", "label": "Branch", "required": true }] },
            "binding": {
                "runId": "run-7", "provider": "tangle-sandbox", "environmentId": "sbx-7", "sessionId": "ses-7",
                "executionId": "exe-7", "interactionId": "ask-1",
            },
        });
        ask["requestDigest"] = json!(canonical::digest(&ask));
        ask
    })
}

#[derive(Default)]
struct Found {
    texts: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl Found {
    fn take(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.len() <= MAX_TEXT => {
                self.texts.insert(text.clone());
                return;
            }
            Value::Array(items) => items.iter().for_each(|item| self.take(item)),
            Value::Object(members) => members.values().for_each(|member| self.take(member)),
            _ => return,
        }
        let text = canonical::to_text(value);
        if text.len() <= MAX_VALUE {
            self.values.insert(text);
        }
    }
}
