//! Tokens that a run used: what one record reports, and the running total before the receipt (core contracts, 10.6 and
//! 10.7; provider runtime, 9.3 and 9.5).
//!
//! * `record`: usage out of the data of a frame or a result, in every spelling that services use.
//! * `fold`: the running total of the steps of a run, published with each of them.
//! * `refusal`: what makes usage unreadable, with its code.
//!
//! What was not reported is absent, never zero.
//!
//! ```
//! use serde_json::json;
//! use tangle_sandbox::contract::usage;
//!
//! let data = json!({ "usage": { "prompt_tokens": 3, "completion_tokens": 4 }, "costUsd": 0.5 });
//! let used = usage::from_data(data.as_object().unwrap())?.unwrap();
//! assert_eq!((used.input_tokens.get(), used.output_tokens.get()), (3, 4));
//!
//! let data = json!({ "usage": { "inputTokens": 3, "outputTokens": -4 } });
//! let refusal = usage::from_data(data.as_object().unwrap()).unwrap_err();
//! assert_eq!((refusal.code(), &*refusal.path()), ("usage-count", "/usage/outputTokens"));
//! # Ok::<(), tangle_sandbox::contract::usage::Refusal>(())
//! ```

mod fold;
mod record;
mod refusal;
#[cfg(test)]
mod tests;

pub use super::types::{TokenUsage, UsageMode};
pub use fold::UsageFold;
pub use record::{from_data, mode};
pub use refusal::Refusal;

use serde_json::Value;

use super::strict::{MAX_SAFE_INTEGER, safe_integer};

/// A whole number from 0 to 2^53 - 1, however it is spelled; nothing for any other value.
fn count(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let integer = safe_integer(value.as_f64()?)?;
        u64::try_from(integer).ok()
    })?;
    (number <= MAX_SAFE_INTEGER).then_some(number)
}
