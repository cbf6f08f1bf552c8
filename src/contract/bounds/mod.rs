//! How large a value may be, and the error that says where it was larger (core contracts, 1 and 3.12).
//!
//! Every value of a stranger passes one of these before it is hashed, copied or sent. Each function walks
//! the value once, without recursion, and answers with the first violation in document order: the order of
//! a [`Document`](super::document::Document), or that of the map where the value is a
//! [`Value`].

mod error;
mod path;
mod profile;
mod walk;

use serde_json::{Map, Value};

use super::canonical;
use super::digest::Digest;
use super::document::{Node, Tree, ValueMembers};
use super::limits::{MAX_JSON_BYTES, MAX_STRING};
use super::text;
pub use super::types::Identifier;
pub use error::{BoundError, BoundRule, Limit, Violation};
use profile::Scope;
use walk::Rules;

/// Checks one string of control-plane text: at most [`MAX_STRING`] UTF-16 code units.
///
/// `label` names the field in the error, here and in every function below.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`.
pub fn string(label: &str, text: &str) -> Result<(), BoundError> {
    if !text::exceeds_utf16(text, MAX_STRING) {
        return Ok(());
    }
    let violation = Violation::counted(
        BoundRule::String,
        text::utf16_len(text),
        Limit::new("MAX_STRING", MAX_STRING),
    );
    Err(BoundError::new(label, violation))
}

/// Checks any JSON value: strings, arrays, objects, keys, depth and nodes within their limits.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`.
pub fn json<T: Tree>(label: &str, value: &T) -> Result<(), BoundError> {
    walk::check(label, value, &Rules::METADATA)
}

/// Checks a JSON value as [`json`] does; its root must be an object.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`; rule `type` where the root is no object.
pub fn record<T: Tree>(label: &str, value: &T) -> Result<(), BoundError> {
    match value.node() {
        Node::Object(_) => json(label, value),
        _ => Err(BoundError::new(label, Violation::of_type())),
    }
}

/// Checks event content: a string may be of any length, and the compact JSON text of the whole value holds
/// at most [`MAX_JSON_BYTES`]. All other limits are those of [`json`].
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`; rule `payload` where the text is too large.
pub fn event_content<T: Tree>(label: &str, value: &T) -> Result<(), BoundError> {
    walk::check(label, value, &Rules::CONTENT)
}

/// Checks an object that is taken apart, by the rules of [`json`].
pub(crate) fn members(label: &str, members: &Map<String, Value>) -> Result<(), BoundError> {
    walk::check_object::<Value>(label, ValueMembers::of(members), &Rules::METADATA)
}

/// Checks an object that is taken apart, by the rules of [`event_content`].
pub(crate) fn content_members(label: &str, members: &Map<String, Value>) -> Result<(), BoundError> {
    walk::check_object::<Value>(label, ValueMembers::of(members), &Rules::CONTENT)
}

/// Checks the frame `{type, data, id}` by the rules of [`event_content`] without putting it together; the error is
/// placed below `data`.
pub(crate) fn frame(
    kind: &str,
    id: Option<&str>,
    data: &Map<String, Value>,
) -> Result<(), BoundError> {
    let text = walk::json_length;
    let around = walk::Around {
        levels: 1,
        nodes: 3 + usize::from(id.is_some()),
        bytes: r#"{"type":,"data":}"#.len()
            + text(kind)
            + id.map_or(0, |id| r#","id":"#.len() + text(id)),
    };
    let rules = Rules {
        around,
        ..Rules::CONTENT
    };
    walk::check_object::<Value>("data of a frame", ValueMembers::of(data), &rules)
}

/// Checks a lone text as event content: its JSON text, quotes and escapes included, holds at most
/// [`MAX_JSON_BYTES`].
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`; rule `payload`.
pub fn content_text(label: &str, text: &str) -> Result<(), BoundError> {
    if walk::most(text) <= MAX_JSON_BYTES {
        return Ok(());
    }
    let bytes = walk::json_length(text);
    if bytes <= MAX_JSON_BYTES {
        return Ok(());
    }
    let violation = Violation::counted(
        BoundRule::Payload,
        bytes,
        Limit::new("MAX_JSON_BYTES", MAX_JSON_BYTES),
    );
    Err(BoundError::new(label, violation))
}

/// The digest of the material of a portable operation.
///
/// The material is bounded as [`json`] does, with a container counting one node, and its compact text holds
/// at most [`MAX_JSON_BYTES`]; nothing is ever cut to fit.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`.
pub fn operation_digest(label: &str, material: &Value) -> Result<Digest, BoundError> {
    let rules = Rules {
        container_nodes: 1,
        max_bytes: Some(MAX_JSON_BYTES),
        ..Rules::METADATA
    };
    walk::check(label, material, &rules)?;
    Ok(canonical::digest(material))
}

/// Checks an agent profile: as [`json`] does, except that the contents of files and inline resources are
/// payload, bounded in bytes each and together.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`.
pub fn profile<T: Tree>(label: &str, value: &T) -> Result<(), BoundError> {
    profile_at(label, value, &[])
}

/// Checks a value that holds a profile under the keys `location`, such as `["backend", "profile"]`: as
/// [`profile`] there, as [`json`] everywhere else.
///
/// # Errors
/// [`BoundError`], code `JSON_BOUND_VIOLATION`.
pub fn profile_at<T: Tree>(label: &str, value: &T, location: &[&str]) -> Result<(), BoundError> {
    let rules = Rules {
        scope: Scope::profile_under(location),
        ..Rules::METADATA
    };
    walk::check(label, value, &rules)
}

/// Whether two measured numbers (costs, scores) are equal within sixteen roundings of a double.
///
/// A number that is not finite equals none.
pub fn approx_equal(left: f64, right: f64) -> bool {
    let scale = left.abs().max(right.abs()).max(1.0);
    scale.is_finite() && (left - right).abs() <= 16.0 * f64::EPSILON * scale
}

#[cfg(test)]
mod tests;
