//! The operations that a document claims: an operation without its claim, or a claim without its operation, cannot be.

use std::fmt;

use super::Capabilities;

/// An operation that rests on a claim (provider runtime, 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Dispatches a turn that outlives its reader; claimed by `streaming.detach`.
    Dispatch,
    /// Opens a session; claimed by any of `streaming.detach`, `streaming.replay`, `sessions.continue`.
    Session,
    /// Cancels a run of a session; claimed by `retainedControl`.
    CancelRun,
    /// Answers an ask of the environment; claimed by `interactions`.
    RespondToInteraction,
    /// Answers an ask of a session; claimed by `interactions`.
    SessionRespondToInteraction,
    /// Starts the agent's own terminal interface; claimed by `interactiveAgent.start` and `.control`.
    StartInteractive,
    /// Finds the agent's own terminal interface again; claimed by `interactiveAgent.start` and `.control`.
    Interactive,
    /// Attaches a terminal; claimed by `interactiveTerminal.attach`.
    AttachTerminal,
    /// Finds a terminal again; claimed by `interactiveTerminal.attach`.
    Terminal,
    /// Reads a file; claimed by `workspace.read`.
    Read,
    /// Writes a file; claimed by `workspace.write`.
    Write,
    /// Runs a command; claimed by `workspace.exec`.
    Exec,
    /// Tells where the environment runs; claimed by `placement`.
    Placement,
    /// Observes the environment; claimed by any flag of `observation`.
    Observe,
    /// Takes checkpoints and forks from them; claimed by `branching.checkpoint` and `.fork`.
    Branching,
    /// Deletes the environment; rests on no claim, only on a handle that can delete.
    Destroy,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 16] = [
        Operation::Dispatch,
        Operation::Session,
        Operation::CancelRun,
        Operation::RespondToInteraction,
        Operation::SessionRespondToInteraction,
        Operation::StartInteractive,
        Operation::Interactive,
        Operation::AttachTerminal,
        Operation::Terminal,
        Operation::Read,
        Operation::Write,
        Operation::Exec,
        Operation::Placement,
        Operation::Observe,
        Operation::Branching,
        Operation::Destroy,
    ];

    /// Its name; one of a session begins with `session.`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Dispatch => "dispatch",
            Operation::Session => "session",
            Operation::CancelRun => "session.cancelRun",
            Operation::RespondToInteraction => "respondToInteraction",
            Operation::SessionRespondToInteraction => "session.respondToInteraction",
            Operation::StartInteractive => "startInteractive",
            Operation::Interactive => "interactive",
            Operation::AttachTerminal => "attachTerminal",
            Operation::Terminal => "terminal",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Exec => "exec",
            Operation::Placement => "placement",
            Operation::Observe => "observe",
            Operation::Branching => "branching",
            Operation::Destroy => "destroy",
        }
    }

    /// Whether `document` claims it.
    fn is_claimed_by(self, document: &Capabilities) -> bool {
        let streaming = &document.streaming;
        let agent = document.interactive_agent.as_ref();
        let terminal = document.interactive_terminal.as_ref();
        match self {
            Operation::Dispatch => streaming.detach,
            Operation::Session => {
                streaming.detach || streaming.replay || document.sessions.continue_
            }
            Operation::CancelRun => document.retained_control.is_some(),
            Operation::RespondToInteraction | Operation::SessionRespondToInteraction => {
                document.interactions.is_some()
            }
            Operation::StartInteractive | Operation::Interactive => {
                agent.is_some_and(|agent| agent.start && agent.control)
            }
            Operation::AttachTerminal | Operation::Terminal => {
                terminal.is_some_and(|terminal| terminal.attach)
            }
            Operation::Read => document.workspace.read,
            Operation::Write => document.workspace.write,
            Operation::Exec => document.workspace.exec,
            Operation::Placement => document.placement,
            Operation::Observe => observes(document),
            Operation::Branching => document.branching.checkpoint && document.branching.fork,
            Operation::Destroy => false,
        }
    }
}

fn observes(document: &Capabilities) -> bool {
    document.observation.as_ref().is_some_and(|observation| {
        [
            observation.identity,
            observation.lifecycle,
            observation.endpoint,
            observation.placement,
            observation.resources,
            observation.resource_use,
            observation.model_usage,
            observation.compute_billing,
            observation.account_usage,
        ]
        .contains(&true)
    })
}

/// The operations that one environment offers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operations(u32);

impl Operations {
    /// Those that `document` claims, and `destroy` when the handle can `delete`.
    pub(super) fn of(document: &Capabilities, delete: bool) -> Self {
        let offered = Operation::ALL.into_iter().filter(|operation| {
            operation.is_claimed_by(document) || (delete && *operation == Operation::Destroy)
        });
        Self(offered.fold(0, |bits, operation| bits | operation.bit()))
    }

    /// Whether `operation` is offered.
    pub fn contains(self, operation: Operation) -> bool {
        self.0 & operation.bit() != 0
    }

    /// Those that are offered.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        Operation::ALL
            .into_iter()
            .filter(move |operation| self.contains(*operation))
    }
}

impl Operation {
    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
