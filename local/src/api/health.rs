//! Health (wire protocol, 18).

use axum::response::Response;
use serde_json::json;
use tangle_sandbox::contract::types::Health;

use super::answer::{Fault, bare};
use super::call::Call;
use crate::ids::{now, rfc3339};

fn health(call: &Call) -> Health {
    let total = call.deployment.backends.installed().len();
    Health {
        status: "ok".to_owned(),
        backends: Some(serde_json::Map::from_iter([(
            "total".to_owned(),
            total.into(),
        )])),
        timestamp: Some(rfc3339(now())),
    }
}

/// `GET {base}/health`, without a credential.
pub(super) async fn server(_: Call) -> Result<Response, Fault> {
    Ok(bare(&Health {
        status: "ok".to_owned(),
        backends: None,
        timestamp: Some(rfc3339(now())),
    }))
}

/// `GET R/health`.
pub(super) async fn runtime(call: Call) -> Result<Response, Fault> {
    let _running = call.running().await?;
    Ok(bare(&health(&call)))
}

/// `GET R/health/detailed`.
pub(super) async fn detailed(call: Call) -> Result<Response, Fault> {
    let _running = call.running().await?;
    let health = health(&call);
    Ok(bare(&json!({
        "status": health.status,
        "backends": health.backends,
        "timestamp": health.timestamp,
        "memory": memory(),
        "process": { "pid": std::process::id() },
        "uptime": call.deployment.started_at.elapsed().as_secs_f64(),
    })))
}

/// Resident bytes of the server, where the system tells.
fn memory() -> serde_json::Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok());
    match resident {
        Some(kilobytes) => json!({ "rssBytes": kilobytes * 1024 }),
        None => json!({}),
    }
}
