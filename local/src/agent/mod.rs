//! Coding agents as child processes, driven over the Agent Client Protocol.
//!
//! * [`driver`] – one agent process with one session: start, prompt, end.
//! * [`turn`] – the values that a turn yields.
//! * [`launch`] – the agents that are known, which of them are installed, and how each is started.
//! * [`scripted`] – an agent that does what the prompt's lines say, for tests without a model.
//! * [`rpc`] – symmetric JSON-RPC 2.0 over bounded lines.
//! * [`translate`] – what an agent reports, as events of the run stream (wire protocol, 7.4).
//! * [`model_proxy`] – the loopback proxy that keeps the provider's key out of the agent's reach.
//! * [`token_meter`] – the proxy's count of a turn's tokens.
//! * [`error`] – why an agent could not be used.
//!
//! Behind them: `child` (one process, its log and its end), `turn_loop` (one turn at work), `ask` (what an agent's own
//! requests are answered with), `tool_part` (one tool call, merged from its updates), `tools` (all of a turn), `size` (how
//! large JSON is), `outbox` (the events that wait for their reader), `silence` (how long the agent has sent nothing),
//! `scripted_server` and `scripted_turn` (the two halves of the scripted agent).

#[allow(
    dead_code,
    reason = "generated; its conversion error serves bounded scalars, of which there are none"
)]
mod acp_types;
mod ask;
mod child;
pub mod driver;
pub mod error;
pub mod launch;
mod log;
pub mod model_proxy;
mod outbox;
pub mod rpc;
pub mod scripted;
mod scripted_server;
mod scripted_turn;
mod silence;
mod size;
pub mod token_meter;
mod tool_part;
mod tools;
pub mod translate;
pub mod turn;
mod turn_loop;

pub use driver::Agent;
pub use error::AgentError;
pub use launch::{AgentPrograms, Installed, KnownAgent, Launch, ModelAccess, Place};
pub use model_proxy::{ModelProxy, ModelProxyError, ModelTarget};
pub use scripted::agent_main;
pub use turn::{AgentEvent, Outcome, ToolInvocation, TurnEnd, Usage};
