//! The result record of a service (provider runtime, 8.8).

use serde_json::{Map, Value};

use crate::contract::check::Refused;
use crate::contract::event::project_terminal;
use crate::contract::types::{ResultRecord, ResultStatus};
use crate::contract::{bounds, from_value, usage};

use super::Refusal;

/// The texts that are content; everything beside them is held to the bounds of control-plane JSON.
const TEXTS: [&str; 3] = ["response", "text", "finalText"];

/// Reads the result record of a run: cut down to its summary, within its bounds, with a status that agrees with its
/// success and usage that can be read.
///
/// A run that waits neither succeeded nor failed. The status `unknown`, of a stream that was lost, is no result.
///
/// # Errors
///
/// [`Refusal`], in the order summary, bounds, receipt, status, shape, usage.
pub fn read_record(record: Value) -> Result<ResultRecord, Refusal> {
    let Value::Object(record) = record else {
        return Err(Refused::new("", "must be an object").into());
    };
    let mut record = project_terminal(record).map_err(Refusal::Approval)?;
    bounds::content_members("result", &record).map_err(Refusal::ContentBound)?;
    facts_are_bounded(&mut record)?;
    if record.contains_key("contextTransferReceipt") {
        return Err(Refusal::UnsolicitedReceipt);
    }
    status_agrees(&record)?;
    let record: ResultRecord = from_value(Value::Object(record))?;
    usage::from_data(&record.extra)?;
    Ok(record)
}

/// Checks everything but the texts, which are taken out meanwhile so that nothing is copied.
fn facts_are_bounded(record: &mut Map<String, Value>) -> Result<(), Refusal> {
    let texts = TEXTS.map(|key| record.remove_entry(key));
    let bounded = bounds::members("result", record).map_err(Refusal::MetadataBound);
    record.extend(texts.into_iter().flatten());
    bounded
}

/// `success` says whether the status is `success`, which has to be one of a result.
fn status_agrees(record: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(status) = record.get("status").and_then(Value::as_str) else {
        return Ok(());
    };
    let status: ResultStatus = status.parse().map_err(|_| Refusal::ResultStatus)?;
    match record.get("success").and_then(Value::as_bool) {
        Some(success) if success != (status == ResultStatus::Success) => Err(Refusal::ResultStatus),
        _ => Ok(()),
    }
}

impl ResultRecord {
    /// The answer: `response`, else `text`, else `finalText`, else nothing.
    pub fn answer(&self) -> &str {
        let texts = [&self.response, &self.text, &self.final_text];
        let mut given = texts.into_iter().filter_map(Option::as_deref);
        given.next().unwrap_or_default()
    }
}

impl ResultStatus {
    /// Whether the run waits for an answer and goes on when it has one.
    pub fn is_awaiting(self) -> bool {
        match self {
            Self::BlockedOnApproval
            | Self::AwaitingQuestion
            | Self::AwaitingInteraction
            | Self::AwaitingPlanDecision => true,
            Self::Success | Self::Failed => false,
        }
    }
}
