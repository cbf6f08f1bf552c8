//! The gates of the claims (provider runtime, 5.4): a declared flag passes only when all that it rests on is there.

use super::surface::{InstanceSurface, TerminalSurface};
use super::{Capabilities, DeploymentFacts};
use crate::contract::types::{
    BackendCatalog, BackendEntry, BranchingCapabilities, InteractiveAgentCapabilities,
    InteractiveTerminalCapabilities, ObservationCapabilities,
};

/// What is known of the backend that a document is for.
#[derive(Clone, Copy, Debug)]
pub enum Backend<'a> {
    /// None is chosen yet: what depends on the backend stays at its ceiling.
    NotChosen,
    /// It has this entry in the catalogue.
    Listed(&'a BackendEntry),
    /// The catalogue has no entry of it, or it cannot be told which one it is: nothing that depends on it is claimed.
    Unlisted,
}

impl<'a> Backend<'a> {
    /// The backend `name` of a catalogue that was read. A catalogue that cannot be read is an error of its own, not
    /// this.
    pub fn of(catalog: &'a BackendCatalog, name: &str) -> Self {
        catalog
            .entry(name)
            .map_or(Backend::Unlisted, Backend::Listed)
    }

    /// Keeps the kinds of asks that the entry lists, in the declared order; none left, no block. Attachments stay when
    /// the entry takes them.
    pub(super) fn narrow(self, document: &mut Capabilities) {
        let entry = match self {
            Backend::NotChosen => return,
            Backend::Listed(entry) => Some(entry),
            Backend::Unlisted => None,
        };
        let listed = entry
            .and_then(|entry| entry.capabilities.as_ref())
            .and_then(|capabilities| capabilities.interactions.as_deref());
        let listed = listed.unwrap_or_default();
        if let Some(interactions) = &mut document.interactions {
            interactions
                .kinds
                .retain(|kind| listed.iter().any(|name| name == kind.as_str()));
        }
        document.interactions = document
            .interactions
            .take()
            .filter(|interactions| !interactions.kinds.is_empty());
        if !entry.is_some_and(BackendEntry::takes_attachments) {
            without_attachments(document);
        }
    }
}

/// A block that says nothing more is left out.
fn without_attachments(document: &mut Capabilities) {
    let Some(create) = &mut document.create else {
        return;
    };
    create.runtime_attachments = None;
    let says_something = create.egress.is_some()
        || create.billing_owner.is_some()
        || create.workspace_checkpoint.is_some();
    if !says_something {
        document.create = None;
    }
}

/// What claims rest on, at one stage.
pub(super) struct Gates {
    pub instance: InstanceSurface,
    pub facts: DeploymentFacts,
    /// A sandbox is found again by its id.
    pub reconstruct: bool,
    pub placement: bool,
    pub branching: bool,
    pub observation: ObservationCapabilities,
}

impl Gates {
    /// `declared` with every claim taken away whose gate is shut.
    pub fn narrow(&self, declared: &Capabilities) -> Capabilities {
        let mut document = declared.clone();
        self.runs(&mut document);
        self.workspace(&mut document);
        document.interactions = document.interactions.filter(|_| self.answers());
        document.branching = self.branches(&document.branching);
        document.placement &= self.placement;
        if let Some(observation) = &mut document.observation {
            observe(observation, &self.observation);
        }
        if let Some(terminal) = &mut document.interactive_terminal {
            attach(terminal, self.terminals() && self.terminal_lookup());
        }
        if let Some(agent) = &mut document.interactive_agent {
            drive(agent, self.drives());
        }
        // No operation stands behind these.
        document.sessions.list = false;
        document.sessions.messages = false;
        document.native_continuation = None;
        document.context_transfer = None;
        document.usage = false;
        document
    }

    fn runs(&self, document: &mut Capabilities) {
        let session = self.instance.session;
        let streaming = &mut document.streaming;
        streaming.detach &= self.instance.dispatch_prompt && session.is_some() && self.facts.detach;
        streaming.replay &= session.is_some() && self.facts.replay;
        streaming.turn_idempotency &= self.facts.turn_idempotency;
        document.sessions.continue_ &= streaming.detach
            && streaming.replay
            && streaming.turn_idempotency
            && self.reconstruct
            && session.is_some_and(|session| session.cancel_run)
            && self.facts.retained_control;
        if !document.sessions.continue_ {
            document.retained_control = None;
        }
    }

    fn workspace(&self, document: &mut Capabilities) {
        let workspace = &mut document.workspace;
        workspace.read &= self.instance.read;
        workspace.download &= self.instance.read;
        workspace.write &= self.instance.write;
        workspace.upload &= self.instance.write;
        workspace.exec &= self.instance.exec;
        workspace.git = false;
    }

    fn answers(&self) -> bool {
        let session = self.instance.session;
        session.is_some_and(|session| session.respond_to_interaction) && self.facts.interactions
    }

    fn drives(&self) -> bool {
        let session = self.instance.session;
        session.is_some_and(|session| session.interactive)
            && self.terminal_lookup()
            && self.facts.interactive_agent
    }

    fn terminals(&self) -> bool {
        self.terminal(|terminals| terminals.attach)
    }

    fn terminal_lookup(&self) -> bool {
        self.terminal(|terminals| terminals.get)
    }

    fn terminal(&self, has: impl Fn(&TerminalSurface) -> bool) -> bool {
        self.instance.terminals.as_ref().is_some_and(has)
    }

    /// All or none; a new fork cannot be confidential, whatever is declared.
    fn branches(&self, declared: &BranchingCapabilities) -> BranchingCapabilities {
        if !self.branching {
            let off = |flag: Option<bool>| flag.map(|_| false);
            return BranchingCapabilities {
                checkpoint: false,
                fork: false,
                confidential: None,
                retry_safe: off(declared.retry_safe),
                lookup: off(declared.lookup),
                cleanup: off(declared.cleanup),
            };
        }
        BranchingCapabilities {
            confidential: None,
            ..declared.clone()
        }
    }
}

fn observe(declared: &mut ObservationCapabilities, sources: &ObservationCapabilities) {
    declared.identity &= sources.identity;
    declared.lifecycle &= sources.lifecycle;
    declared.endpoint &= sources.endpoint;
    declared.placement &= sources.placement;
    declared.resources &= sources.resources;
    declared.resource_use &= sources.resource_use;
    declared.model_usage &= sources.model_usage;
    declared.compute_billing &= sources.compute_billing;
    declared.account_usage &= sources.account_usage;
}

fn attach(declared: &mut InteractiveTerminalCapabilities, open: bool) {
    declared.attach &= open;
    declared.input &= open;
    declared.resize &= open;
    declared.reattach &= open;
}

fn drive(declared: &mut InteractiveAgentCapabilities, open: bool) {
    declared.start &= open;
    declared.control &= open;
    declared.status &= open;
    declared.attach &= open;
    declared.reattach &= open;
    declared.send_prompt &= open;
    declared.input &= open;
    declared.resize &= open;
    declared.stop &= open;
}
