//! The default mapping of a create input to the request that the service gets (core contracts, 7.5; provider runtime, 3.3).

use serde_json::{Map, Value, json};

use super::{CHECKPOINT_MARKER, Refusal};
use crate::contract::check::Refused;
use crate::contract::profile::{ProfileRefusal, has_reserved_segment, is_safe_relative_path};
use crate::contract::types::{
    AgentProfile, CheckpointRef, CreateInput, CreateSandbox, CredentialSource, Egress, EgressMode,
    EgressPolicy, GitSource, Identifier, ResourceRef, SentBackend, WorkingDirectory,
    WorkspaceRequest,
};

/// The backend of a create that names none, nor any harness.
const FALLBACK: &str = "opencode";

/// The default mapping of one provider.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// The name of the provider; a checkpoint has to be of it.
    pub provider: Identifier,
    /// The backend of a create that names none.
    pub default_backend: Option<Identifier>,
}

impl Mapping {
    /// The backend of a create: the one that it names, else the default of the provider, else the harness of its profile, else
    /// `opencode`.
    pub fn backend(&self, input: &CreateInput) -> String {
        let harness = || input.inline_profile().and_then(|profile| profile.harness);
        match input.backend.as_ref().or(self.default_backend.as_ref()) {
            Some(backend) => backend.to_string(),
            None => harness().map_or_else(|| FALLBACK.to_owned(), |harness| harness.to_string()),
        }
    }

    /// The request of a create. What the input does not give is absent; nothing is rounded.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: `credential_intent_invalid`, `reserved-metadata`, `credentials_missing` for a profile that says
    /// `subscription`, since nothing is selected here, `profile-reference`, a code of file mounts, `workspace-cwd-base`,
    /// `workspace` for a checkpoint of another provider.
    ///
    /// ```
    /// use serde_json::json;
    /// use tangle_sandbox::contract::create::{self, Mapping};
    ///
    /// let mapping = Mapping { provider: "tangle-sandbox".parse()?, default_backend: None };
    /// let input = create::read(json!({ "profile": { "harness": "codex" }, "resources": { "diskMb": 1024 } }))?;
    /// let request = mapping.map(&input)?;
    /// assert_eq!(
    ///     json!(request),
    ///     json!({ "backend": { "type": "codex", "profile": { "harness": "codex" } }, "resources": { "diskGB": 1.0 } }),
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map(&self, input: &CreateInput) -> Result<CreateSandbox, Refusal> {
        if input.credential_source()? == CredentialSource::Subscription {
            return Err(Refusal::CredentialsMissing);
        }
        let profile = input.inline_profile().ok_or(Refusal::ProfileReference)?;
        check_mounts(profile).map_err(Refusal::Unsupported)?;
        let mut request = CreateSandbox {
            resources: match &input.resources {
                Some(resources) => resources.to_wire().map_err(Refusal::Resources)?,
                None => None,
            },
            env: input.env.clone().map(|env| env.into()),
            secrets: input.secrets.as_ref().map(|names| json!(names)),
            egress_policy: input.egress.as_ref().map(policy).transpose()?,
            billing_owner_id: input.billing_owner.clone(),
            name: input
                .name
                .as_ref()
                .map(|name| name.parse())
                .transpose()
                .map_err(Refusal::Name)?,
            idempotency_key: input.idempotency_key.clone(),
            backend: Some(SentBackend {
                type_: Some(self.backend(input).parse().map_err(Refusal::Backend)?),
                profile: Some(profile.clone().into()),
                runtime_attachments: input.runtime_attachments.clone(),
                ..SentBackend::default()
            }),
            ..CreateSandbox::default()
        };
        let mut metadata = input.metadata.clone().unwrap_or_default();
        if let Some(workspace) = &input.workspace {
            self.fill(&mut request, &mut metadata, workspace)?;
        }
        request.metadata = (!metadata.is_empty()).then_some(metadata);
        Ok(request)
    }

    /// What the workspace of the input says.
    fn fill(
        &self,
        request: &mut CreateSandbox,
        metadata: &mut Map<String, Value>,
        workspace: &WorkspaceRequest,
    ) -> Result<(), Refusal> {
        let environment = workspace
            .environment
            .as_deref()
            .or(workspace.image.as_deref());
        let text = |text: &str| text.parse().map_err(Refusal::Workspace);
        request.environment = environment.map(text).transpose()?;
        request.cwd = match &workspace.cwd {
            Some(WorkingDirectory::Repository(path)) => Some(text(&path.normalised())?),
            Some(WorkingDirectory::Host(_)) => return Err(Refusal::WorkspaceCwdBase),
            None => None,
        };
        if let Some(url) = &workspace.repo_url {
            request.git = Some(GitSource {
                url: url.clone(),
                ref_: workspace.git_ref.as_deref().map(text).transpose()?,
                depth: None,
                sparse: None,
                auth: None,
            });
        }
        if let Some(checkpoint) = &workspace.checkpoint {
            self.own(checkpoint)?;
            let id = checkpoint.checkpoint_id.as_str();
            request.from_snapshot = Some(text(id)?);
            let source = checkpoint.source.environment_id.as_str();
            request.from_sandbox_id = Some(source.parse().map_err(Refusal::Workspace)?);
            metadata.insert(CHECKPOINT_MARKER.to_owned(), id.into());
        }
        Ok(())
    }

    /// Checks that a checkpoint was taken by this provider.
    pub(super) fn own(&self, checkpoint: &CheckpointRef) -> Result<(), Refusal> {
        if checkpoint.provider == self.provider {
            return Ok(());
        }
        Err(Refusal::Workspace(Refused::new(
            "/workspace/checkpoint/provider",
            "must be this provider",
        )))
    }
}

fn policy(egress: &Egress) -> Result<EgressPolicy, Refusal> {
    let (mode, domains) = match egress {
        Egress::Open => (EgressMode::Open, None),
        Egress::Blocked => (EgressMode::Blocked, None),
        Egress::Strict { allow_domains } => (EgressMode::Strict, allow_domains.as_ref()),
    };
    let copied = domains.map(|domains| domains.iter().map(|domain| domain.parse()).collect());
    Ok(EgressPolicy {
        mode,
        allow_domains: copied.transpose().map_err(Refusal::Egress)?,
        include_implicit_domains: None,
    })
}

/// An inline file is written by the client, so that its path is checked whatever `failOnError` says (core contracts, 3.13).
pub(super) fn check_mounts(profile: &AgentProfile) -> Result<(), ProfileRefusal> {
    let files = profile
        .resources
        .as_ref()
        .and_then(|resources| resources.files.as_deref());
    for (mount, file) in files.into_iter().flatten().enumerate() {
        if !matches!(file.resource, ResourceRef::Inline { .. }) {
            continue;
        }
        if !is_safe_relative_path(&file.path) {
            return Err(ProfileRefusal::MountPathInvalid { mount });
        }
        if has_reserved_segment(&file.path) {
            return Err(ProfileRefusal::MountPathReserved { mount });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
