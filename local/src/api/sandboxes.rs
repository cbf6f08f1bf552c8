//! Sandboxes (wire protocol, 4).

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tangle_sandbox::contract::limits;
use tangle_sandbox::contract::types::{
    Connection, CreateReceipt, DeletedSandbox, DriverCapabilities, DriverRecord, SandboxId,
    SandboxList, SandboxRecord, UpdateSandbox,
};

use super::Shared;
use super::answer::{Fault, bare, json_response};
use super::call::Call;
use super::create::{self, Wanted};
use super::request::{document, number, query, value, value_or_empty};
use crate::ids::rfc3339;
use crate::lifecycle;
use crate::store::StoreError;
use crate::store::sandboxes::{self, Created, SandboxRow};

/// `POST C/sandboxes`.
pub(super) async fn create(call: Call) -> Result<Response, Fault> {
    let deployment = call.deployment.clone();
    let headers = call.request.headers().clone();
    let body = value(call.request, deployment.settings.create_body).await?;
    let wanted = read(&deployment, headers, body).await?;
    lifecycle::whole(&deployment.clone(), made(deployment, wanted)).await
}

/// Away from the threads that serve, since it takes a while and looks for programs.
async fn read(deployment: &Shared, headers: HeaderMap, body: Value) -> Result<Wanted, Fault> {
    let deployment = deployment.clone();
    let read = tokio::task::spawn_blocking(move || create::read(&deployment, &headers, body));
    read.await.unwrap_or_else(|_| {
        Err(Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            "the request could not be read",
        ))
    })
}

/// Records the sandbox and has it prepared. Whoever asks again prepares one that nobody prepares, and brings the
/// credentials that count from now on.
async fn made(deployment: Shared, wanted: Wanted) -> Result<Response, Fault> {
    let keyed = wanted.key.is_some();
    let (row, key, digest) = (wanted.row.clone(), wanted.key, wanted.digest);
    let created = deployment
        .store
        .write(move |db| sandboxes::create(db, &row, key.as_deref().map(|key| (key, digest))))
        .await
        .map_err(|error: StoreError| {
            let refused = matches!(error, StoreError::Full | StoreError::ReadOnly);
            let mut fault = Fault::from(error);
            if refused {
                fault.message.push_str("; nothing was made");
            }
            fault
        })?;
    let (status, row, outcome) = match created {
        Created::Fresh => (StatusCode::CREATED, wanted.row, "created"),
        Created::Replay(row) => (StatusCode::OK, *row, "idempotent_replay"),
        Created::Gone => {
            return Err(Fault::state(
                "deleted",
                None,
                "the sandbox of this idempotency key was deleted",
            ));
        }
        Created::Conflict => {
            return Err(Fault::conflict(
                "IDEMPOTENCY_CONFLICT",
                "the idempotency key belongs to another request",
            ));
        }
    };
    let alive = matches!(&*row.status, "provisioning" | "running");
    if let Some(backend) = wanted.backend.filter(|_| alive) {
        deployment.credentials.keep(&row.id, backend);
    }
    if row.status == "provisioning" {
        lifecycle::provision(&deployment, row.id.clone());
    }
    answer(&deployment, status, &row, outcome, keyed)
}

fn answer(
    deployment: &Shared,
    status: StatusCode,
    row: &SandboxRow,
    outcome: &str,
    keyed: bool,
) -> Result<Response, Fault> {
    let mut record = record(deployment, row)?;
    record.create_receipt = Some(CreateReceipt {
        outcome: outcome.to_owned(),
        idempotency_key_applied: keyed,
        capture_proof: None,
    });
    Ok(json_response(status, &record))
}

/// The record of a sandbox (wire protocol, 4.2).
pub(super) fn record(deployment: &Shared, row: &SandboxRow) -> Result<SandboxRecord, Fault> {
    let parse = |text: &Option<String>| {
        text.as_deref()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let running = row.status == "running";
    let active = deployment.occupancy.last_activity(&row.id);
    let metadata = serde_json::from_str(&row.metadata).ok();
    let egress = parse(&row.egress);
    Ok(SandboxRecord {
        id: SandboxId::new(&*row.id)?,
        name: row.name.clone(),
        status: row.status.clone(),
        connection: running.then(|| Connection {
            runtime_url: deployment
                .announced_url
                .as_ref()
                .map(|base| format!("{base}/v1/sandboxes/{}/runtime", row.id)),
            sidecar_url: None,
            auth_token: None,
            auth_token_expires_at: None,
            edge_status: None,
            ssh: None,
            web_terminal_url: None,
        }),
        metadata,
        created_at: rfc3339(row.created_at),
        started_at: row.started_at.map(rfc3339),
        last_activity_at: row.last_activity_at.max(active).map(rfc3339),
        expires_at: row.expires_at.map(rfc3339),
        error: row.error.clone(),
        filesystem_incarnation_id: Some(json!(row.incarnation)),
        filesystem_incarnation_provenance: Some(json!("fresh")),
        filesystem_incarnation_readiness: Some(json!(if row.ready {
            "ready"
        } else {
            "transitioning"
        })),
        egress_policy_source: egress.is_some().then(|| json!("request")),
        egress_policy: egress,
        gpu_lease: None,
        resources: None,
        backend: parse(&row.backend),
        create_receipt: None,
        capture_proof: None,
    })
}

/// `GET C/sandboxes`.
pub(super) async fn list(call: Call) -> Result<Response, Fault> {
    let query = query(&call.request)?;
    let statuses: Vec<String> = query
        .iter()
        .filter(|(name, _)| name == "status")
        .flat_map(|(_, value)| value.split(','))
        .filter(|status| !status.is_empty())
        .map(str::to_owned)
        .collect();
    for (name, value) in &query {
        match name.as_str() {
            "status" | "limit" | "offset" => {}
            "scope" if value == "personal" || value == "all" => {}
            "scope" | "teamId" => {
                return Err(Fault::field_not_supported(name, "there is one account"));
            }
            _ => return Err(Fault::field("query", "has an unknown parameter")),
        }
    }
    let limit = number(&query, "limit", 1..=limits::MAX_PAGE as u64)?;
    let limit = limit.unwrap_or(limits::DEFAULT_PAGE as u64) as usize;
    let offset = number(&query, "offset", 0..=u64::MAX)?.unwrap_or(0);
    let rows = call
        .deployment
        .store
        .read::<_, StoreError>(move |db| sandboxes::list(db, &statuses, limit, offset))
        .await?;
    let records = rows.iter().map(|row| record(&call.deployment, row));
    Ok(bare(&SandboxList {
        sandboxes: records.collect::<Result<_, _>>()?,
    }))
}

/// `GET C/sandboxes/{id}`.
pub(super) async fn get(call: Call) -> Result<Response, Fault> {
    let row = call.sandbox().await?;
    Ok(bare(&record(&call.deployment, &row)?))
}

/// `PATCH C/sandboxes/{id}`.
pub(super) async fn update(call: Call) -> Result<Response, Fault> {
    let (deployment, id) = (call.deployment.clone(), call.id().to_owned());
    let update: UpdateSandbox = document(call.request, deployment.settings.other_body).await?;
    let seconds = i64::try_from(update.idle_timeout_seconds.get()).unwrap_or(i64::MAX);
    let seconds = seconds.min(i64::MAX / 4000);
    lifecycle::whole(&deployment.clone(), async move {
        let wanted = id.clone();
        let row = deployment
            .store
            .write::<_, StoreError>(move |db| {
                sandboxes::set_idle(db, &wanted, seconds)?;
                sandboxes::get(db, &wanted)
            })
            .await?;
        let row = row.ok_or_else(|| Fault::not_found("sandbox", &id))?;
        deployment.sandbox_changed();
        Ok(bare(&record(&deployment, &row)?))
    })
    .await
}

/// `POST C/sandboxes/{id}/stop`.
pub(super) async fn stop(call: Call) -> Result<Response, Fault> {
    let (deployment, id) = no_body(call).await?;
    let row = lifecycle::stop(&deployment, &id).await?;
    Ok(bare(&record(&deployment, &row)?))
}

/// `POST C/sandboxes/{id}/resume`.
pub(super) async fn resume(call: Call) -> Result<Response, Fault> {
    let (deployment, id) = no_body(call).await?;
    let row = lifecycle::resume(&deployment, &id).await?;
    Ok(bare(&record(&deployment, &row)?))
}

/// `DELETE C/sandboxes/{id}`.
pub(super) async fn remove(call: Call) -> Result<Response, Fault> {
    let id = call.id().to_owned();
    lifecycle::delete(&call.deployment, &id).await?;
    Ok(bare(&DeletedSandbox {
        success: true,
        sandbox_id: Some(SandboxId::new(id)?),
        outcome: Some("destroyed".to_owned()),
    }))
}

/// A body is not needed; an object is taken, whatever it holds would be ignored and is therefore refused.
async fn no_body(call: Call) -> Result<(Shared, String), Fault> {
    let (deployment, id) = (call.deployment.clone(), call.id().to_owned());
    let body = value_or_empty(call.request, deployment.settings.other_body).await?;
    match body.as_object() {
        Some(members) if members.is_empty() => Ok((deployment, id)),
        _ => Err(Fault::field("body", "must be empty")),
    }
}

/// `GET C/sandboxes/{id}/driver`: processes of this machine, and nothing that they would have to be isolated for.
pub(super) async fn driver(call: Call) -> Result<Response, Fault> {
    call.sandbox().await?;
    Ok(bare(&DriverRecord {
        type_: "host-agent".to_owned(),
        available: true,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: DriverCapabilities {
            criu: false,
            gpu: false,
            vsock: false,
            snapshots: false,
            user_management: false,
            network_isolation: false,
        },
        hosts: Some(1),
        capacity: None,
    }))
}
