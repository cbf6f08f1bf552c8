//! The agents that are known, which of them are installed here, and how each is started.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::error::AgentError;
use super::rpc::Bounds;
use super::scripted;
use super::token_meter::TokenMeter;

/// The agents that this deployment can drive. The names are those of `backend.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KnownAgent {
    /// The scripted agent of this library.
    Scripted,
    /// OpenCode.
    OpenCode,
    /// Any agent of the protocol, by a configured command.
    Acp,
}

impl KnownAgent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scripted, Self::OpenCode, Self::Acp];

    /// The backend type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::OpenCode => "opencode",
            Self::Acp => "acp",
        }
    }

    /// The agent of a backend type.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

/// Where the programs of the agents are, as far as it is configured.
#[derive(Clone, Debug, Default)]
pub struct AgentPrograms {
    /// A program whose `main` calls [`agent_main`](scripted::agent_main) first. Without it this very executable is used
    /// when its `main` has called it.
    pub scripted: Option<PathBuf>,
    /// The `opencode` program. Without it `TANGLE_OPENCODE_BIN`, then `PATH`, are looked into.
    pub open_code: Option<PathBuf>,
    /// The command of any other agent: program, then arguments.
    pub acp: Option<Vec<String>>,
}

/// An agent that can be started here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Which one.
    pub agent: KnownAgent,
    /// Its program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// Where an agent works and lives.
#[derive(Clone, Debug)]
pub struct Place {
    /// The absolute working directory of its session.
    pub workspace: PathBuf,
    /// Its own home directory, made when it is missing.
    pub home: PathBuf,
    /// The file that takes its stderr and stray output.
    pub log: PathBuf,
    /// More environment, for example a sandbox's marker. It does not replace the home, `PATH` or the agent's own
    /// variables.
    pub env: Vec<(String, String)>,
}

/// A model endpoint as the agent sees it: the deployment's loopback proxy and its placeholder, never a provider's key.
#[derive(Clone)]
pub struct ModelAccess {
    /// The base URL, for example `http://127.0.0.1:4000/v1`.
    pub base_url: String,
    /// What the agent sends as its key.
    pub api_key: String,
    /// The model's name at that endpoint.
    pub model: String,
    /// The proxy's count of tokens; without it only what the agent itself reports counts.
    pub meter: Option<TokenMeter>,
}

impl fmt::Debug for ModelAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelAccess")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// What the usage in an agent's result counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageScope {
    /// The whole turn.
    Turn,
    /// Only the turn's last model call (OpenCode), so that it says nothing about the turn.
    LastCall,
}

/// Limits of one agent process.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bounds of the connection.
    pub bounds: Bounds,
    /// How long each step of the start may take.
    pub start: Duration,
    /// How often a turn says that its agent is silent (`model-processing`).
    pub silence: Duration,
    /// How long an agent may take to end its turn after a cancel.
    pub cancel: Duration,
    /// How long an agent may take to end after its stdin was closed.
    pub close: Duration,
    /// How long the group may take to end after `TERM`.
    pub term: Duration,
    /// Bytes of the log file.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            start: Duration::from_secs(60),
            silence: Duration::from_secs(15),
            cancel: Duration::from_secs(10),
            close: Duration::from_secs(3),
            term: Duration::from_secs(3),
            log_bytes: 1 << 20,
        }
    }
}

/// Everything that is needed to start an agent, again when it has died.
#[derive(Clone)]
pub struct Launch {
    /// Which agent.
    pub agent: KnownAgent,
    /// Its program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it works and lives.
    pub place: Place,
    /// Its own variables beside the fixed list and [`Place::env`].
    pub env: Vec<(String, String)>,
    /// The native session to go on with; a new one without it.
    pub resume: Option<String>,
    /// What its reported usage counts.
    pub usage: UsageScope,
    /// The count of the model proxy, when it is in the path.
    pub meter: Option<TokenMeter>,
    /// Its limits.
    pub limits: Limits,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Launch")
            .field("agent", &self.agent)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

impl AgentPrograms {
    /// The agents that can be started here, in the order of [`KnownAgent::ALL`].
    #[must_use]
    pub fn detect(&self) -> Vec<Installed> {
        KnownAgent::ALL
            .into_iter()
            .filter_map(|agent| self.find(agent).ok())
            .collect()
    }

    /// One agent.
    ///
    /// # Errors
    /// [`AgentError::NotInstalled`] (`AGENT_NOT_INSTALLED`).
    pub fn find(&self, agent: KnownAgent) -> Result<Installed, AgentError> {
        let (program, args) = match agent {
            KnownAgent::Scripted => (
                self.scripted.clone().or_else(scripted::own_executable),
                Vec::new(),
            ),
            KnownAgent::OpenCode => (self.open_code(), vec!["acp".to_owned()]),
            KnownAgent::Acp => {
                let mut command = self.acp.clone().unwrap_or_default().into_iter();
                (
                    command.next().and_then(|program| in_path(&program)),
                    command.collect(),
                )
            }
        };
        let program = program.filter(|program| is_program(program));
        let program = program.ok_or(AgentError::NotInstalled {
            agent: agent.name(),
        })?;
        Ok(Installed {
            agent,
            program,
            args,
        })
    }

    fn open_code(&self) -> Option<PathBuf> {
        let named = self
            .open_code
            .clone()
            .or_else(|| std::env::var_os("TANGLE_OPENCODE_BIN").map(PathBuf::from));
        named
            .filter(|path| !path.as_os_str().is_empty())
            .or_else(|| in_path("opencode"))
    }
}

impl Installed {
    /// How to start it in `place`, with a model where the agent needs one.
    #[must_use]
    pub fn launch(&self, place: Place, model: Option<&ModelAccess>) -> Launch {
        let (env, usage) = match self.agent {
            KnownAgent::Scripted => (
                vec![(scripted::SWITCH.to_owned(), "1".to_owned())],
                UsageScope::Turn,
            ),
            KnownAgent::OpenCode => (open_code_environment(model), UsageScope::LastCall),
            KnownAgent::Acp => (Vec::new(), UsageScope::Turn),
        };
        Launch {
            agent: self.agent,
            program: self.program.clone(),
            args: self.args.clone(),
            place,
            env,
            resume: None,
            usage,
            meter: model.and_then(|model| model.meter.clone()),
            limits: Limits::default(),
        }
    }
}

/// `opencode acp` always listens on loopback too; a random password keeps everybody else out.
fn open_code_environment(model: Option<&ModelAccess>) -> Vec<(String, String)> {
    [
        (
            "OPENCODE_CONFIG_CONTENT",
            open_code_configuration(model).to_string(),
        ),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        (
            "OPENCODE_SERVER_PASSWORD",
            Uuid::new_v4().simple().to_string(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn open_code_configuration(model: Option<&ModelAccess>) -> Value {
    let mut configuration = json!({ "autoupdate": false, "share": "disabled" });
    if let Some(ModelAccess {
        base_url,
        api_key,
        model,
        ..
    }) = model
    {
        let name = format!("tangle/{model}");
        configuration["model"] = name.clone().into();
        configuration["small_model"] = name.into();
        configuration["enabled_providers"] = json!(["tangle"]);
        configuration["provider"] = json!({ "tangle": {
            "name": "Tangle",
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": base_url, "apiKey": api_key },
            "models": { model: { "name": model, "tool_call": true } },
        }});
    }
    configuration
}

/// A program by its name in `PATH`; one with a slash is taken as it is.
fn in_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program));
    }
    search(program, &std::env::var_os("PATH")?)
}

fn search(program: &str, folders: &OsStr) -> Option<PathBuf> {
    let candidates = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    candidates
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{AgentPrograms, Installed, KnownAgent, ModelAccess, Place, search};

    #[test]
    fn only_an_executable_file_of_the_path_is_a_program() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plain"), "").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        assert_eq!(search("plain", folder.path().as_os_str()), None);
        assert_eq!(search("folder", folder.path().as_os_str()), None);
        assert_eq!(
            search("sh", "relative:/bin".as_ref()),
            Some(PathBuf::from("/bin/sh"))
        );
    }

    #[test]
    fn an_agent_that_is_not_there_is_not_listed() {
        let programs = AgentPrograms {
            scripted: Some(PathBuf::from("/nowhere/scripted")),
            open_code: Some(PathBuf::from("/nowhere/opencode")),
            acp: Some(vec!["sh".to_owned(), "-c".to_owned()]),
        };
        let found = programs.detect();
        assert_eq!(
            found.iter().map(|one| one.agent).collect::<Vec<_>>(),
            [KnownAgent::Acp]
        );
        assert_eq!(found[0].args, ["-c"]);
        assert_eq!(
            programs.find(KnownAgent::OpenCode).unwrap_err().code(),
            "AGENT_NOT_INSTALLED"
        );
    }

    #[test]
    fn no_variable_shows_in_the_debug_text() {
        let place = Place {
            workspace: "/w".into(),
            home: "/h".into(),
            log: "/l".into(),
            env: Vec::new(),
        };
        let model = ModelAccess {
            base_url: "http://127.0.0.1:1".into(),
            api_key: "canary".into(),
            model: "m".into(),
            meter: None,
        };
        let installed = Installed {
            agent: KnownAgent::OpenCode,
            program: "/bin/true".into(),
            args: vec!["acp".to_owned()],
        };
        let launch = installed.launch(place, Some(&model));
        assert!(launch.env.iter().any(|(_, value)| value.contains("canary")));
        assert!(!format!("{launch:?}{model:?}").contains("canary"));
    }
}
