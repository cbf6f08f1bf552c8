//! Whether a create call made its environment, as its receipt says (provider runtime, 3.8).

use serde_json::Value;

use super::check::Refused;
use super::from_value;
use super::types::{CreateOutcome, Creation};

impl Creation {
    /// The verdict of a create receipt: none without a receipt, and none when the service does not know.
    ///
    /// # Errors
    ///
    /// [`Refused`] at `/outcome` for an outcome that is not known: nothing follows from such a receipt.
    pub fn verdict(receipt: &Value) -> Result<Option<Self>, Refused> {
        if receipt.is_null() {
            return Ok(None);
        }
        let outcome = receipt.get("outcome").unwrap_or(&Value::Null).clone();
        let outcome = from_value(outcome)
            .map_err(|refused| Refused::new("/outcome", refused.rule().to_owned()))?;
        Ok(match outcome {
            CreateOutcome::Created => Some(Self::Created),
            CreateOutcome::IdempotentReplay => Some(Self::Replayed),
            CreateOutcome::Unknown => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn provider_3_8_an_outcome_that_is_not_known_is_no_verdict_but_an_error() {
        assert_eq!(Creation::verdict(&json!(null)), Ok(None));
        for (outcome, verdict) in [
            ("created", Some(Creation::Created)),
            ("idempotent_replay", Some(Creation::Replayed)),
            ("unknown", None),
        ] {
            let receipt = json!({"outcome": outcome, "idempotencyKeyApplied": true});
            assert_eq!(Creation::verdict(&receipt), Ok(verdict));
        }
        for receipt in [
            json!({"outcome": "joined"}),
            json!({"outcome": null}),
            json!({}),
            json!("created"),
        ] {
            let refused = Creation::verdict(&receipt).unwrap_err();
            assert_eq!(refused.path(), "/outcome", "{receipt}");
        }
    }
}
