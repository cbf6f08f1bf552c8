//! The result of a run and of the turn that started it (core contracts, 8.2 and 8.3; provider runtime, 8.8).
//!
//! * `record`: the result record of a service, without its tool history.
//! * `turn`: what a turn hands to its caller.
//! * `refusal`: why a record is refused, with its code.
//!
//! ```
//! use serde_json::json;
//! use tangle_sandbox::contract::result::{read_record, turn_result};
//!
//! let record = json!({ "success": false, "status": "awaiting_question", "durationMs": 12, "text": "Which?" });
//! let record = read_record(record)?;
//! let turn = turn_result(&record, None, None)?;
//! assert_eq!((turn.text.as_str(), turn.success), ("Which?", false));
//! assert_eq!(turn.metadata.unwrap()["awaitingInteraction"], true);
//! # Ok::<(), tangle_sandbox::contract::result::Refusal>(())
//! ```

mod record;
mod refusal;
#[cfg(test)]
mod tests;
mod turn;

pub use super::types::{ResultRecord, ResultStatus, TurnResult};
pub use record::read_record;
pub use refusal::Refusal;
pub use turn::turn_result;
