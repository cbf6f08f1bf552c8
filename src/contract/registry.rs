//! The contracts by name: what each is, and one function from bytes to a verdict.
//!
//! The command `tangle-sandbox check` is this table with a terminal before it. A program that takes documents from
//! others can use it the same way: [`find`] a contract, [`Contract::check`] the bytes.
//!
//! ```
//! use tangle_sandbox::contract::registry;
//!
//! let profile = registry::find("profile").unwrap();
//! let accepted = profile.check(br#"{"name": "w"}"#).unwrap();
//! assert!(accepted.digest.is_some());
//! let refused = profile.check(br#"{"name": 1}"#).unwrap_err();
//! assert_eq!((refused.path.as_str(), refused.code.as_str()), ("/name", "PROFILE_UNSUPPORTED"));
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::Refused;
use super::checker::Checked;
use super::digest::Digest;
use super::read;
use super::types::{AgentProfile, BackendCatalog, Capabilities, CapabilityDocument, CreateSandbox};

/// A contract that documents can be checked against.
pub struct Contract {
    /// Its name, such as `run-control-ref`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Where the specification tells it.
    pub chapter: &'static str,
    check: fn(&[u8]) -> Result<Accepted, Refusal>,
}

impl Contract {
    /// Reads one document: strict JSON, schema, rules between fields.
    ///
    /// # Errors
    ///
    /// [`Refusal`] with a path, a rule and the code of the contract's layer; never a value.
    pub fn check(&self, bytes: &[u8]) -> Result<Accepted, Refusal> {
        (self.check)(bytes)
    }
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contract")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A document that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The document in its normal form; secrets read `[redacted]`.
    pub document: Value,
    /// The digest of the contract's own recipe where it has one, else that of the document; none where a document holds
    /// secrets and no recipe leaves them out.
    pub digest: Option<Digest>,
}

/// A document that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where: a JSON pointer, empty for the root.
    pub path: String,
    /// Which rule, in words.
    pub rule: String,
    /// The code of the layer that refused.
    pub code: String,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self {
            path: refused.path().to_owned(),
            rule: refused.rule().to_owned(),
            code: refused.code().to_owned(),
        }
    }
}

/// The contract `name`.
pub fn find(name: &str) -> Option<&'static Contract> {
    CONTRACTS.iter().find(|contract| contract.name == name)
}

/// A document whose digest is that of its canonical text.
fn document<T: Checked + DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let mut accepted = with_secrets::<T>(bytes)?;
    accepted.digest = Some(Digest::of(&accepted.document));
    Ok(accepted)
}

/// A document that may hold secrets and has no identity of its own.
fn with_secrets<T: Checked + DeserializeOwned + Serialize>(
    bytes: &[u8],
) -> Result<Accepted, Refusal> {
    let document: T = read(bytes)?;
    Ok(Accepted {
        document: normal(&document)?,
        digest: None,
    })
}

/// What the type writes, outside of a request body.
fn normal<T: Checked + Serialize>(document: &T) -> Result<Value, Refusal> {
    serde_json::to_value(document)
        .map_err(|_| Refused::new("", format!("is no {}", T::NAME)).into())
}

/// A row of the table.
const fn contract(
    name: &'static str,
    about: &'static str,
    chapter: &'static str,
    check: fn(&[u8]) -> Result<Accepted, Refusal>,
) -> Contract {
    Contract {
        name,
        about,
        chapter,
        check,
    }
}

/// Every contract that has a name, in the order of the specification.
pub static CONTRACTS: &[Contract] = &[
    contract(
        "profile",
        "what an agent is asked to be",
        "core contracts, 3",
        document::<AgentProfile>,
    ),
    contract(
        "capabilities-provider",
        "what a provider can do at most",
        "core contracts, 9",
        document::<Capabilities>,
    ),
    contract(
        "capabilities-environment",
        "what one environment honours",
        "core contracts, 9",
        document::<Capabilities>,
    ),
    contract(
        "capabilities-deployment",
        "what a deployment has proven",
        "provider runtime, 5.3",
        document::<CapabilityDocument>,
    ),
    contract(
        "backend-catalog",
        "the backends of a service",
        "core contracts, 5.3",
        document::<BackendCatalog>,
    ),
    contract(
        "create-request",
        "a create on the wire",
        "wire protocol, 4.3",
        with_secrets::<CreateSandbox>,
    ),
];
