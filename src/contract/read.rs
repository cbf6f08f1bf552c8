//! From bytes to a checked type: strict JSON, then the generated check, then the type.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::check::Refused;
use super::checker::Checked;
use super::{secret, strict};

/// Reads a document on which authority rests: a request, a reference, a receipt.
///
/// # Errors
///
/// [`Refused`] with the path and the rule: repeated keys, too deep a nesting, an unknown field, a bound.
///
/// ```
/// use tangle_sandbox::contract::{read, types::WriteFile};
///
/// let refused = read::<WriteFile>(br#"{"path": "a", "content": "", "mode": 512}"#).unwrap_err();
/// assert_eq!(refused.to_string(), "/mode: must be at most 511");
/// ```
pub fn read<T: Checked + DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    from_value(strict::parse(bytes)?)
}

/// Checks a value of a generated type that was put together in memory: lists, maps and plain texts carry their bounds in the
/// schema, not in their Rust type.
///
/// # Errors
///
/// [`Refused`] with the path and the rule.
pub fn verify<T: Checked + Serialize>(document: &T) -> Result<(), Refused> {
    // Secrets are bounded too; a refusal shows none of them.
    let value = secret::in_body(|| serde_json::to_value(document))
        .map_err(|_| Refused::new("", format!("is no {}", T::NAME)))?;
    T::node().check(&value)
}

/// The same for a document that is JSON already.
///
/// # Errors
///
/// [`Refused`] with the path and the rule.
pub fn from_value<T: Checked + DeserializeOwned>(value: Value) -> Result<T, Refused> {
    T::node().check(&value)?;
    // The check has passed, so that what fails here is a shape that only the type knows.
    serde_json::from_value(value).map_err(|_| Refused::new("", format!("is no {}", T::NAME)))
}

/// Reads an optional field of any JSON, in which `null` is a value and not absence; for generated types.
#[doc(hidden)]
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
