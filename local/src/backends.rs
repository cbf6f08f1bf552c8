//! The backend types of this deployment and the programs behind them.

use std::path::PathBuf;

use tangle_sandbox::contract::types::{BackendCapabilities, BackendEntry};

use crate::agent::{AgentPrograms, Installed, KnownAgent};

/// An agent that was configured by its command.
#[derive(Clone, Debug)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
}

/// Which agents can be started. What is installed is looked up each time, since programs come and go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends {
    pub(crate) programs: AgentPrograms,
    pub(crate) configured: Vec<Configured>,
}

impl Backends {
    /// The installed ones with the names that a request uses.
    pub(crate) fn installed(&self) -> Vec<(String, Installed)> {
        let known = self.programs.detect();
        let mut all: Vec<_> = known
            .into_iter()
            .filter(|installed| installed.agent != KnownAgent::Acp)
            .map(|installed| (installed.agent.name().to_owned(), installed))
            .collect();
        all.extend(self.configured.iter().filter_map(|one| {
            let mut command = vec![one.command.to_string_lossy().into_owned()];
            command.extend(one.args.iter().cloned());
            let programs = AgentPrograms {
                acp: Some(command),
                ..AgentPrograms::default()
            };
            let installed = programs.find(KnownAgent::Acp).ok()?;
            Some((one.name.clone(), installed))
        }));
        all
    }

    /// One by its name.
    pub(crate) fn find(&self, name: &str) -> Option<Installed> {
        let installed = self.installed();
        installed
            .into_iter()
            .find_map(|(found, installed)| (found == name).then_some(installed))
    }

    /// The type of a sandbox that names none: OpenCode when it is installed, else the first one that is.
    pub(crate) fn default_name(&self) -> Option<String> {
        let names: Vec<String> = self.installed().into_iter().map(|(name, _)| name).collect();
        let open_code = names
            .iter()
            .find(|name| *name == KnownAgent::OpenCode.name());
        open_code.or(names.first()).cloned()
    }

    /// The catalogue (wire protocol, 5.1).
    pub(crate) fn catalogue(&self) -> Vec<BackendEntry> {
        self.installed()
            .into_iter()
            .map(|(name, installed)| entry(name, &installed))
            .collect()
    }
}

fn entry(name: String, installed: &Installed) -> BackendEntry {
    let (title, description) = match installed.agent {
        KnownAgent::Scripted => (
            "Scripted agent",
            "Does what the lines of the prompt say, without a model.",
        ),
        KnownAgent::OpenCode => ("OpenCode", "The OpenCode coding agent."),
        _ => (
            "Configured agent",
            "An agent of the Agent Client Protocol, by a configured command.",
        ),
    };
    BackendEntry {
        type_: name,
        name: Some(title.to_owned()),
        description: Some(description.to_owned()),
        capabilities: Some(BackendCapabilities {
            streaming: Some(true),
            tool_use: Some(true),
            sessions: Some(true),
            multimodal: Some(false),
            image_input: Some(false),
            mcp: Some(false),
            configurable: Some(installed.agent == KnownAgent::OpenCode),
            reasoning: None,
            context_window: None,
            interactions: None,
            runtime_attachments: None,
            extra: serde_json::Map::new(),
        }),
        extra: serde_json::Map::new(),
    }
}
