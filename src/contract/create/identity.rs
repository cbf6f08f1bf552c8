//! The identity of a create (core contracts, 7.6; provider runtime, 3.6).

use serde_json::json;

use super::Refusal;
use crate::contract::types::{CreateDigest, CreateInput};

impl CreateInput {
    /// The digest of what this create asks, its key left out. Order of members does not count, order of lists does.
    ///
    /// ```
    /// use serde_json::json;
    /// use tangle_sandbox::contract::create;
    ///
    /// let one = create::read(json!({ "profile": {}, "idempotencyKey": "k1" }))?;
    /// let two = create::read(json!({ "profile": {}, "idempotencyKey": "k2" }))?;
    /// assert_eq!(one.digest(), two.digest());
    /// # Ok::<(), create::Refusal>(())
    /// ```
    pub fn digest(&self) -> CreateDigest {
        let mut input = json!(self);
        if let Some(members) = input.as_object_mut() {
            members.remove("idempotencyKey");
        }
        CreateDigest::of(&json!({ "kind": "agent-environment-create.v1", "input": input }))
    }
}

/// Checks that a create under a known key is the same create.
///
/// # Errors
///
/// `idempotency-conflict` otherwise.
pub fn same_create(known: CreateDigest, asked: CreateDigest) -> Result<(), Refusal> {
    if known == asked {
        Ok(())
    } else {
        Err(Refusal::IdempotencyConflict)
    }
}
