//! Coding agents as child processes, driven over the Agent Client Protocol.
//!
//! * [`rpc`] – symmetric JSON-RPC 2.0 over bounded lines.
//! * [`launch`] – the agents that are known, which of them are installed, and how each is started.
//! * [`driver`] – one agent process with one session: start, prompt, cancel, end.
//! * [`translate`] – what an agent reports, as events of the run stream (wire protocol, 7.4).
//! * [`turn`] – the values that a turn yields.
//! * [`scripted`] – an agent that does what the prompt's lines say, for tests without a model.
//! * [`model_proxy`] – the loopback proxy that keeps the provider key out of the agent's reach.
//! * [`error`] – why an agent could not be used.

pub mod error;
pub mod rpc;
pub mod turn;

pub use error::AgentError;
pub use turn::{AgentEvent, Outcome, ToolInvocation, TurnEnd, Usage};
