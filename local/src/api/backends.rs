//! The backend catalogue (wire protocol, 5.1) and the list of agents (7.7).

use axum::response::Response;
use serde_json::json;
use tangle_sandbox::contract::types::BackendCatalog;

use super::answer::{Fault, bare};
use super::call::Call;
use crate::ids::{now, rfc3339};

/// `GET C/backends`: those that are installed.
pub(super) async fn list(call: Call) -> Result<Response, Fault> {
    Ok(bare(&BackendCatalog {
        backends: call.deployment.backends.catalogue(),
        timestamp: Some(rfc3339(now())),
    }))
}

/// `GET R/agents`: each sandbox has one agent, `default`, unless it was made without.
pub(super) async fn agents(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    let agents = match sandbox.managed {
        true => vec![json!({ "identifier": "default", "displayName": "Agent" })],
        false => Vec::new(),
    };
    Ok(bare(&json!({ "count": agents.len(), "agents": agents })))
}
