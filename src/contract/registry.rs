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
use super::create::{self, Mapping};
use super::digest::Digest;
use super::profile::ProfileSnapshot;
use super::types::*;
use super::{attachments, backend, event, read, result, strict, turn, usage};

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

/// A row of the table.
const fn row(
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
#[rustfmt::skip]
pub static CONTRACTS: &[Contract] = &[
    row("profile", "what an agent is asked to be", "core contracts, 3", profile),
    row("security-policy", "what a profile may ask of a host", "core contracts, 3.10", document::<SecurityPolicy>),
    row("harness-facts", "what a harness runs, expresses and takes", "core contracts, 4", document::<HarnessFacts>),
    row("backend-config", "the agent's backend, for one sandbox or one turn", "core contracts, 5", backend_config),
    row("runtime-attachments", "MCP servers beside a profile", "core contracts, 5.3", runtime_attachments),
    row("backend-catalog", "the backends of a service", "core contracts, 5.3", catalog),
    row("requested-interactions", "which asks the caller answers", "core contracts, 6", document::<RequestedInteractions>),
    row("create-input", "what an environment is made from", "core contracts, 7", create_input),
    row("create-request", "the same on the wire", "wire protocol, 4.3", with_secrets::<CreateSandbox>),
    row("checkpoint-ref", "a durable checkpoint of a workspace", "branching, 2.2", document::<CheckpointRef>),
    row("resource-request", "the machine that an environment asks for", "core contracts, 7.3", document::<ResourceRequest>),
    row("turn-input", "one turn", "core contracts, 8.1", turn_input),
    row("turn-part", "a part of a turn's input", "core contracts, 8.1", document::<TurnPart>),
    row("prompt-result", "the result record of a run", "core contracts, 8.2", prompt_result),
    row("turn-result", "what a turn came to", "core contracts, 8.3", document::<TurnResult>),
    row("capabilities-provider", "what a provider can do at most", "core contracts, 9", document::<Capabilities>),
    row("capabilities-environment", "what one environment honours", "core contracts, 9", document::<Capabilities>),
    row("capabilities-deployment", "any JSON; the claims that it proves", "provider runtime, 5.3", deployment),
    row("capability-document", "the same as a client reads it from the route", "wire protocol, 6", document::<DeploymentDocument>),
    row("event", "an event of an environment", "core contracts, 10.1", event_document),
    row("stream-event", "a canonical event", "core contracts, 10.2", stream_event),
    row("part", "a part of a message", "core contracts, 10.3", document::<Part>),
    row("event-envelope", "an event with its place in a run", "core contracts, 10.5", document::<EventEnvelope>),
    row("token-usage", "tokens and cost", "core contracts, 10.6", document::<TokenUsage>),
    row("frame", "a frame of a run stream; the event that it becomes", "provider runtime, 9.1", frame),
    row("usage-record", "the usage that a frame's data reports", "provider runtime, 9.3", usage_record),
    row("loose-run-ref", "a reference to a run, perhaps not exact", "provider runtime, 8.1", document::<LooseRunRef>),
    row("run-control-ref", "the exact reference of a run", "provider runtime, 8.1", document::<RunControlRef>),
    row("dispatch-receipt", "the admission of a detached run", "provider runtime, 8.2", document::<DispatchReceipt>),
    row("cancel-request", "a request to cancel one run", "provider runtime, 8.5", cancel_request),
    row("cancel-acknowledgement", "what became of it", "provider runtime, 8.5", document::<CancelAcknowledgement>),
    row("control-request", "a request to steer, cancel, ask or reconnect", "provider runtime, 8.5", control_request),
    row("control-acknowledgement", "what became of it", "provider runtime, 8.5", document::<ControlAcknowledgement>),
    row("placement", "where an environment runs", "provider runtime, 4", document::<Placement>),
    row("exec-result", "what a command came to", "provider runtime, 4", document::<ExecResult>),
    row("run-request", "a run on the wire", "wire protocol, 7.1", with_secrets::<RunRequest>),
];

/// A document whose digest is that of its canonical text.
fn document<T: Checked + DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<Accepted, Refusal> {
    hashed(&read::<T>(bytes)?)
}

/// A document that may hold secrets and has no identity of its own.
fn with_secrets<T: Checked + DeserializeOwned + Serialize>(
    bytes: &[u8],
) -> Result<Accepted, Refusal> {
    let document: T = read(bytes)?;
    accepted(&document, None)
}

/// What the type writes, outside of a request body.
fn accepted<T: Serialize>(document: &T, digest: Option<Digest>) -> Result<Accepted, Refusal> {
    match serde_json::to_value(document) {
        Ok(document) => Ok(Accepted { document, digest }),
        Err(_) => Err(Refused::new("", "cannot be written as JSON").into()),
    }
}

/// The same, with the digest of the canonical text.
fn hashed<T: Serialize>(document: &T) -> Result<Accepted, Refusal> {
    let mut accepted = accepted(document, None)?;
    accepted.digest = Some(Digest::of(&accepted.document));
    Ok(accepted)
}

fn profile(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let snapshot = ProfileSnapshot::read(bytes).map_err(|refused| Refusal {
        code: "PROFILE_UNSUPPORTED".to_owned(),
        ..refused.into()
    })?;
    Ok(Accepted {
        document: snapshot.document().clone(),
        digest: Some(snapshot.digest().into()),
    })
}

fn backend_config(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let block = backend::read(strict::parse(bytes)?)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    accepted(&block, Some(Digest::of(&block.identity())))
}

fn runtime_attachments(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let attachments = attachments::read(strict::parse(bytes)?, None)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    hashed(&attachments)
}

fn catalog(bytes: &[u8]) -> Result<Accepted, Refusal> {
    document::<BackendCatalog>(bytes).map_err(|refusal| Refusal {
        code: "INVALID_BACKEND_REGISTRY".to_owned(),
        ..refusal
    })
}

/// Whatever a deployment discloses is taken: what is no flag set to `true` proves nothing.
fn deployment(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let document = strict::parse(bytes)?;
    let proven = DeploymentFacts::of(&document).claims();
    Ok(Accepted {
        digest: Some(Digest::of(&document)),
        document: serde_json::json!({ "claims": proven, "document": document }),
    })
}

/// What the default mapping of a provider refuses is refused here too.
fn create_input(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let mapping = Mapping {
        provider: "tangle-sandbox".parse()?,
        default_backend: None,
    };
    let read = |value| {
        let input = create::read(value)?;
        mapping.map(&input)?;
        Ok(input)
    };
    let input: CreateInput = read(strict::parse(bytes)?)
        .map_err(|refused: create::Refusal| told(refused.code(), refused.path(), &refused))?;
    accepted(&input, Some(input.digest().into()))
}

/// A turn has its digest only at a place: a provider, an environment and a session.
fn turn_input(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let turn = turn::read(strict::parse(bytes)?)
        .and_then(TurnInput::resolve)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    accepted(turn.input(), None)
}

fn cancel_request(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let request: CancelRequest = read(bytes)?;
    accepted(&request, Some(request.digest().into()))
}

fn control_request(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let request: ControlRequest = read(bytes)?;
    accepted(&request, Some(request.digest().into()))
}

fn prompt_result(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let record = result::read_record(strict::parse(bytes)?)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    hashed(&record)
}

fn stream_event(bytes: &[u8]) -> Result<Accepted, Refusal> {
    hashed(&read::<StreamEvent>(bytes)?.trimmed())
}

fn event_document(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let mut event: EventDocument = read(bytes)?;
    event.normalized = event.normalized.map(StreamEvent::trimmed);
    hashed(&event)
}

fn frame(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let read = |value| {
        event::read_frame(
            event::RawFrame::from_value(value)?,
            &event::Expected::default(),
        )
    };
    let event = read(strict::parse(bytes)?)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    hashed(&EventDocument::from(event))
}

fn usage_record(bytes: &[u8]) -> Result<Accepted, Refusal> {
    let Value::Object(data) = strict::parse(bytes)? else {
        return Err(Refused::new("", "must be an object").into());
    };
    let usage = usage::from_data(&data)
        .map_err(|refused| told(refused.code(), refused.path(), &refused))?;
    hashed(&usage)
}

/// The refusal of a layer, in the words of the table.
fn told(code: impl AsRef<str>, path: impl AsRef<str>, refused: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        path: path.as_ref().to_owned(),
        rule: refused.to_string(),
        code: code.as_ref().to_owned(),
    }
}
