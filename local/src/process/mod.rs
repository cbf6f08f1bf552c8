//! Child processes: where they start, how they end, and how one proves that nothing of them is left.
//!
//! * [`marker`] – the random variable by which every process of a run or a sandbox is recognised.
//! * [`environment`] – the fixed, private environment that commands and agents get.
//! * [`group`] – a command as the leader of its own process group.
//! * [`sweep`](mod@sweep) – ends every process that holds a marker, wherever it went.
//! * [`exec`](mod@exec) – one shell command with bounded output and a time limit (wire protocol, 14.1).

pub mod environment;
pub mod exec;
pub mod group;
pub mod marker;
pub mod sweep;

pub use environment::Home;
pub use exec::{ExecOutcome, ExecSpec, exec};
pub use group::Group;
pub use marker::Marker;
pub use sweep::{Swept, sweep};
