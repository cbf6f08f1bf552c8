//! Usage out of one record, in every spelling that services use (provider runtime, 9.3).

use serde_json::{Map, Value};

use crate::contract::bounds;
use crate::contract::types::{Cost, Count, TokenUsage, UsageMode};

use super::{Refusal, count};

/// Spellings of each count, the first of which that is there is taken.
const INPUT: &[&str] = &["inputTokens", "tokensIn", "prompt_tokens"];
const OUTPUT: &[&str] = &["outputTokens", "tokensOut", "completion_tokens"];
const TOTAL: &[&str] = &["totalTokens", "tokensTotal", "total_tokens"];
const CACHE_READ: &[&str] = &[
    "cacheReadInputTokens",
    "cacheReadTokens",
    "cache_read_input_tokens",
];
const CACHE_CREATION: &[&str] = &[
    "cacheCreationInputTokens",
    "cacheWriteInputTokens",
    "cacheCreationTokens",
    "cache_creation_input_tokens",
];
const REASONING: &[&str] = &["reasoningTokens", "reasoning_tokens"];

/// Spellings of the cost, in the usage object and beside it.
const COST: &[&str] = &["cost", "costUsd", "totalCostUsd"];
const COST_BESIDE: &[&str] = &["costUsd", "totalCostUsd"];

/// The usage that `data`, of a frame or a result record, reports: from its object `usage`, else `tokenUsage`.
///
/// Nothing unless both sides are told: what was not reported is not zero, and a cost alone is no usage.
///
/// # Errors
///
/// `usage-shape`, `metadata-bound`, `usage-count` or `cost`. Every spelling that is there is checked, also where another
/// one outranks it.
pub fn from_data(data: &Map<String, Value>) -> Result<Option<TokenUsage>, Refusal> {
    let found = ["usage", "tokenUsage"]
        .into_iter()
        .zip(["/usage", "/tokenUsage"])
        .find_map(|(key, path)| Some((path, data.get(key)?)));
    let Some((path, usage)) = found else {
        return Ok(None);
    };
    let Value::Object(usage) = usage else {
        return Err(Refusal::UsageShape { path });
    };
    bounds::members("usage", usage).map_err(|error| Refusal::MetadataBound { path, error })?;
    let tokens = |names| tokens(usage, path, names);
    let (input, output) = (tokens(INPUT)?, tokens(OUTPUT)?);
    let total_tokens = tokens(TOTAL)?;
    let cache_read_input_tokens = tokens(CACHE_READ)?;
    let cache_creation_input_tokens = tokens(CACHE_CREATION)?;
    let reasoning_tokens = tokens(REASONING)?;
    let (own, beside) = (cost(usage, path, COST)?, cost(data, "", COST_BESIDE)?);
    let (Some(input_tokens), Some(output_tokens)) = (input, output) else {
        return Ok(None);
    };
    Ok(Some(TokenUsage {
        input_tokens,
        output_tokens,
        total_tokens,
        cache_read_input_tokens,
        cache_creation_input_tokens,
        reasoning_tokens,
        cost: own.or(beside),
    }))
}

/// How the usage of a record adds up where the record says it.
pub fn mode(data: &Map<String, Value>) -> Option<UsageMode> {
    match data.get("usageMode")?.as_str()? {
        "delta" => Some(UsageMode::Delta),
        "cumulative" => Some(UsageMode::Cumulative),
        _ => None,
    }
}

fn tokens(
    usage: &Map<String, Value>,
    path: &str,
    names: &[&str],
) -> Result<Option<Count>, Refusal> {
    first(usage, names, |name, value| {
        count(value)
            .and_then(|count| Count::try_from(count).ok())
            .ok_or_else(|| Refusal::UsageCount {
                path: format!("{path}/{name}"),
            })
    })
}

fn cost(members: &Map<String, Value>, path: &str, names: &[&str]) -> Result<Option<Cost>, Refusal> {
    first(members, names, |name, value| {
        value
            .as_f64()
            .and_then(|cost| Cost::try_from(cost).ok())
            .ok_or_else(|| Refusal::Cost {
                path: format!("{path}/{name}"),
            })
    })
}

/// The first of the members `names` that is there, after each of them has been read.
fn first<T>(
    members: &Map<String, Value>,
    names: &[&str],
    read: impl Fn(&str, &Value) -> Result<T, Refusal>,
) -> Result<Option<T>, Refusal> {
    let mut first = None;
    for name in names {
        if let Some(value) = members.get(*name) {
            let value = read(name, value)?;
            first.get_or_insert(value);
        }
    }
    Ok(first)
}
