//! The terminal summary of a run in all its spellings.

use serde_json::{Map, Value};

use crate::contract::types::{RunOutcome, TokenUsage};
use crate::contract::usage;

/// A summary of which some members do not fit: those stay as they came, beside the others.
pub(crate) fn lenient(data: &Map<String, Value>) -> Option<RunOutcome> {
    let fits = |key: &str, value: &Value| {
        let alone = Map::from_iter([(key.to_owned(), value.clone())]);
        serde_json::from_value::<RunOutcome>(Value::Object(alone)).is_ok()
    };
    let (fitting, odd): (Map<_, _>, Map<_, _>) = data
        .clone()
        .into_iter()
        .partition(|(key, value)| fits(key, value));
    let mut outcome: RunOutcome = serde_json::from_value(Value::Object(fitting)).ok()?;
    outcome.extra.extend(odd);
    Some(outcome)
}

/// The tokens and the cost of a summary, also in their older spellings. Nothing unless both sides are told, and nothing of what
/// cannot be read: a summary is what is left of a run, so that a bad count does not take it away.
pub(crate) fn usage(result: &RunOutcome) -> Option<TokenUsage> {
    let Ok(Value::Object(data)) = serde_json::to_value(result) else {
        return None;
    };
    usage::from_data(&data).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(data: Value) -> RunOutcome {
        lenient(data.as_object().unwrap()).unwrap()
    }

    #[test]
    fn a_summary_with_one_odd_member_keeps_the_others() {
        let outcome = read(json!({ "finalText": "Hello", "costUsd": "much", "novelty": 1 }));
        assert_eq!(outcome.final_text.as_deref(), Some("Hello"));
        assert_eq!(outcome.cost_usd, None);
        assert_eq!(
            (&outcome.extra["costUsd"], &outcome.extra["novelty"]),
            (&json!("much"), &json!(1))
        );
    }

    #[test]
    fn usage_is_read_in_its_older_spellings() {
        for (given, input) in [
            (
                json!({ "tokenUsage": { "inputTokens": 3, "tokensIn": 9, "outputTokens": 4 } }),
                3,
            ),
            (
                json!({ "tokenUsage": { "tokensIn": 5, "completion_tokens": 4 } }),
                5,
            ),
            (
                json!({ "usage": { "prompt_tokens": 6, "tokensOut": 4 } }),
                6,
            ),
        ] {
            let usage = usage(&read(given)).unwrap();
            assert_eq!(
                (usage.input_tokens.get(), usage.output_tokens.get()),
                (input, 4)
            );
        }
    }

    #[test]
    fn usage_that_is_told_in_part_or_wrongly_is_none() {
        for given in [
            json!({}),
            json!({ "tokenUsage": { "inputTokens": 3 } }),
            json!({ "tokenUsage": { "tokensIn": -1, "tokensOut": 4 } }),
            json!({ "tokenUsage": 7 }),
        ] {
            assert_eq!(usage(&read(given)), None);
        }
    }
}
