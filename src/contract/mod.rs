//! The contracts: shapes, checks, canonical JSON, digests and bounds. No I/O.
//!
//! The documents, each beyond its schema, in the order of the specification:
//!
//! * [`profile`]: the agent profile: digest, snapshot, security check, create check, who pays for its model.
//! * [`harness`]: what each harness runs, expresses and takes.
//! * [`backend`]: what a caller says about the agent and the way to its model; [`attachments`]: MCP servers beside a profile.
//! * [`create`]: what a caller asks of a new environment, and the request that comes of it; [`resources`]: its machine.
//! * [`turn`]: what one turn asks, and the digests that identify it.
//! * [`capability`]: what a provider can do at most, and what one environment honours.
//! * [`retained`]: references of runs, control requests with acknowledgements, dispatch receipts.
//! * [`event`]: a frame of a stream becomes an event; [`usage`]: the tokens that it tells; [`result`]: the end of a turn.
//! * [`status`], [`placement`], [`creation`], [`failure`]: what a provider says of an environment.
//! * [`registry`]: every contract by name.
//! * [`routes`]: the routes of the wire protocol as data.
//!
//! What they are made with:
//!
//! * [`types`]: the shapes of the wire, generated from the schemas.
//! * [`read`](fn@read), [`from_value`], [`verify`]: from bytes, JSON or a type to a checked type.
//! * [`check`]: the refusal that every check answers with: a path, a rule, a keyword, a code.
//! * [`checker`], [`checks`]: the check of a document against its schema, and the generated tables that it reads.
//! * [`rules`]: rules that occur once, by the names that the schemas give them.
//! * [`strict`]: bytes to JSON, refusing repeated keys and hostile nesting; [`document`]: JSON in the order of its text.
//! * [`canonical`]: the one text that every party hashes; [`digest`]: `sha256:` and 64 hexadecimal digits, checked.
//! * [`bounds`]: how large a value may be, and where it was larger; [`limits`]: every limit with its unit.
//! * [`text`]: how a string is measured and trimmed.
//! * [`secret`]: a string that no log, error or document shows.

pub mod attachments;
pub mod backend;
pub mod bounds;
pub mod canonical;
pub mod capability;
pub mod check;
pub mod checker;
pub mod checks;
pub mod create;
pub mod creation;
pub mod digest;
pub mod document;
pub mod event;
pub mod failure;
pub mod harness;
pub mod limits;
pub mod placement;
pub mod profile;
mod read;
pub mod registry;
pub mod resources;
pub mod result;
pub mod retained;
pub mod routes;
pub mod rules;
pub(crate) mod scalar;
pub mod secret;
pub mod status;
pub mod strict;
pub mod text;
pub mod turn;
pub mod types;
pub mod usage;

#[doc(hidden)]
pub use read::present;
pub use read::{from_value, read, verify};
pub use secret::Secret;
