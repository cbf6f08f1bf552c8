//! Which agent a turn gets, with which model and which private identity.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::json;
use tangle_sandbox::contract::Secret;
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::secret::in_body;
use tangle_sandbox::contract::types::{BackendModel, SentBackend};

use crate::agent::{Installed, ModelTarget};
use crate::api::Shared;
use crate::api::answer::Fault;
use crate::store::sandboxes::SandboxRow;

/// The agent of a turn.
#[derive(Clone)]
pub(crate) struct Chosen {
    /// Backend type.
    pub(crate) name: String,
    pub(crate) installed: Installed,
    /// The model's name at its endpoint.
    pub(crate) model: Option<String>,
    pub(crate) target: Option<ModelTarget>,
    /// Environment of this turn's secrets.
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Of everything that the process is started with, the values of secrets included; kept in memory only.
    pub(crate) identity: Digest,
}

/// The block of the turn over that of the sandbox.
///
/// # Errors
///
/// 400 for a backend that is not installed or a model that cannot be reached; 409 when credentials were not kept.
pub(crate) fn choose(
    deployment: &Shared,
    sandbox: &SandboxRow,
    turn: Option<&SentBackend>,
) -> Result<Chosen, Fault> {
    let base = base(deployment, sandbox);
    let own = turn.and_then(|turn| turn.type_.as_deref());
    let inherited = base.as_ref().and_then(|base| base.type_.as_deref());
    let name = match own.or(inherited) {
        Some(name) => name.to_owned(),
        None => deployment.backends.default_name().ok_or_else(|| {
            Fault::field("backend.type", "no agent is installed here; configure one")
        })?,
    };
    let installed = deployment.backends.find(&name).ok_or_else(|| {
        Fault::field(
            "backend.type",
            "must be a backend that is installed here; list them with `GET /v1/backends`",
        )
    })?;
    let same = inherited == Some(name.as_str()) || own.is_none();
    let model = match turn.and_then(|turn| turn.model.clone()) {
        Some(model) => Some(model),
        None if same => base.and_then(|base| base.model),
        None => None,
    };
    let secrets = turn
        .and_then(|turn| turn.runtime_secrets.clone())
        .map(BTreeMap::from)
        .unwrap_or_default();
    let identity = identity(sandbox, &name, &installed, model.as_ref(), &secrets);
    let (model, target) = match &model {
        Some(model) => reach(deployment, sandbox, model)?,
        None => (None, None),
    };
    Ok(Chosen {
        name,
        installed,
        model,
        target,
        secrets,
        identity,
    })
}

/// The sandbox's block: with its credentials when they are still in memory, else as it is recorded.
fn base(deployment: &Shared, sandbox: &SandboxRow) -> Option<SentBackend> {
    let recorded = || serde_json::from_str(sandbox.backend.as_deref()?).ok();
    deployment.credentials.get(&sandbox.id).or_else(recorded)
}

/// The endpoint of a model, as the deployment's own proxy will call it.
fn reach(
    deployment: &Shared,
    sandbox: &SandboxRow,
    model: &BackendModel,
) -> Result<(Option<String>, Option<ModelTarget>), Fault> {
    let name = model
        .model
        .as_ref()
        .ok_or_else(|| Fault::field("backend.model.model", "is missing"))?;
    let url = model.base_url.as_ref().ok_or_else(|| {
        Fault::field(
            "backend.model.baseUrl",
            "is missing: this deployment has no model router of its own",
        )
    })?;
    let Some(key) = &model.api_key else {
        if deployment.credentials.get(&sandbox.id).is_none() {
            return Err(Fault::new(
                StatusCode::CONFLICT,
                "INVALID_STATE",
                "name the backend with its credentials again: they are not kept over a stop or a restart",
            )
            .with("currentState", "running"));
        }
        return Err(Fault::field("backend.model.apiKey", "is missing"));
    };
    let target = ModelTarget::new(url, key.expose())
        .map_err(|error| Fault::field("backend.model", error.to_string()))?;
    Ok((Some(name.to_string()), Some(target)))
}

/// Compared only with others of this process, so that a changed secret gets a fresh agent.
fn identity(
    sandbox: &SandboxRow,
    name: &str,
    installed: &Installed,
    model: Option<&BackendModel>,
    secrets: &BTreeMap<String, Secret>,
) -> Digest {
    let secrets: BTreeMap<&str, &str> = secrets
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    let text = in_body(|| {
        json!({
            "name": name,
            "program": installed.program,
            "args": installed.args,
            "env": sandbox.env,
            "model": model,
            "secrets": secrets,
        })
        .to_string()
    });
    Digest::of_bytes(text.as_bytes())
}
