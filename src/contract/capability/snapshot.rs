//! A capability document that passed its check and cannot change.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::Capabilities;
use crate::contract::check::Refused;
use crate::contract::{from_value, read, verify};

/// A capability document that passed its check. It is shared, and nobody can change it: a new answer is a new snapshot.
///
/// Read its members through the [`Capabilities`] that it derefs to; serialise that too.
///
/// ```compile_fail
/// # use tangle_sandbox::contract::capability::{CapabilitySnapshot, ceiling};
/// let mut published = CapabilitySnapshot::new(ceiling(None, false)).unwrap();
/// published.usage = true;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CapabilitySnapshot(Arc<Capabilities>);

impl CapabilitySnapshot {
    /// Checks a document that was put together in memory.
    ///
    /// # Errors
    ///
    /// [`Refused`] at the block whose flags do not stand together (core contracts, 9.2).
    pub fn new(document: Capabilities) -> Result<Self, Refused> {
        verify(&document)?;
        Ok(Self(Arc::new(document)))
    }

    /// Reads a document.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the path and the rule: no strict JSON, a missing or unknown member, a value that is no boolean,
    /// flags that do not stand together.
    pub fn read(bytes: &[u8]) -> Result<Self, Refused> {
        read(bytes).map(|document| Self(Arc::new(document)))
    }

    /// The same for a document that is JSON already.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn from_value(document: Value) -> Result<Self, Refused> {
        from_value(document).map(|document| Self(Arc::new(document)))
    }

    /// What narrowing made of a checked document: flags taken away together keep every rule.
    pub(super) fn narrowed(document: Capabilities) -> Self {
        Self(Arc::new(document))
    }
}

impl Deref for CapabilitySnapshot {
    type Target = Capabilities;

    fn deref(&self) -> &Capabilities {
        &self.0
    }
}
