//! What a create request becomes (wire protocol, 2 and 4.3).

use axum::http::HeaderMap;
use serde_json::{Map, Value};
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::types::{CreateSandbox, IdempotencyKey, SentBackend};

use super::Shared;
use super::answer::Fault;
use super::create_fields::{honour_backend, honour_create};
use super::request::{checked, header_text};
use crate::agent::KnownAgent;
use crate::ids::{mint, now};
use crate::store::sandboxes::SandboxRow;

/// A create that was found good.
pub(super) struct Wanted {
    pub(super) row: SandboxRow,
    pub(super) key: Option<String>,
    /// Of the request without its key and without the values of secrets.
    pub(super) digest: Digest,
    /// With its credentials; kept in memory only.
    pub(super) backend: Option<SentBackend>,
}

/// Checks the request; nothing is made yet.
pub(super) fn read(
    deployment: &Shared,
    headers: &HeaderMap,
    mut body: Value,
) -> Result<Wanted, Fault> {
    older_spellings(&mut body)?;
    let request: CreateSandbox = checked(body.clone())?;
    request.rules()?;
    honour_create(&body)?;
    check_environment(&request)?;
    if let Some(backend) = &request.backend {
        check_secrets(backend)?;
    }
    let backend = match &request.backend {
        Some(backend) => Some(known(deployment, backend, true)?),
        None => None,
    };
    let key = idempotency_key(headers, request.idempotency_key.as_ref())?;
    let bound = CreateSandbox {
        idempotency_key: None,
        ..request.clone()
    };
    Ok(Wanted {
        row: row(&request)?,
        key,
        digest: Digest::of(&redacted(&bound)?),
        backend,
    })
}

/// A backend block whose type is installed here and that holds nothing which cannot be honoured.
///
/// # Errors
///
/// 400 for a type that is unknown or not installed; 501 naming the field.
pub(super) fn known(
    deployment: &Shared,
    backend: &SentBackend,
    lasting: bool,
) -> Result<SentBackend, Fault> {
    let value = redacted(backend)?;
    honour_backend(&value)?;
    if lasting && backend.runtime_secrets.is_some() {
        return Err(Fault::field_not_supported(
            "backend.runtimeSecrets",
            "they belong to a turn",
        ));
    }
    check_secrets(backend)?;
    let Some(name) = &backend.type_ else {
        return Ok(backend.clone());
    };
    let Some(installed) = deployment.backends.find(name) else {
        return Err(Fault::field(
            "backend.type",
            "must be a backend that is installed here; list them with `GET /v1/backends`",
        ));
    };
    if backend.model.is_some() && installed.agent != KnownAgent::OpenCode {
        return Err(Fault::field_not_supported(
            "backend.model",
            "this backend does not let its model be chosen",
        ));
    }
    Ok(backend.clone())
}

/// JSON with `[redacted]` in the place of each secret.
pub(super) fn redacted(value: &impl serde::Serialize) -> Result<Value, Fault> {
    serde_json::to_value(value).map_err(|_| Fault::field("body", "cannot be written as JSON"))
}

fn row(request: &CreateSandbox) -> Result<SandboxRow, Fault> {
    let created_at = now();
    let seconds = |count: Option<u64>| {
        let count = count.unwrap_or(0);
        i64::try_from(count)
            .unwrap_or(i64::MAX / 1000)
            .min(i64::MAX / 4000)
    };
    let lifetime = seconds(request.max_lifetime_seconds.map(|count| count.get()));
    let managed = request.agent != Some(false);
    let mut metadata = request.metadata.clone().unwrap_or_default();
    if !managed {
        metadata.insert("runtimeMode".to_owned(), "control".into());
    }
    let text = |value: Value| value.to_string();
    let backend = request.backend.as_ref().map(public_backend).transpose()?;
    let egress = request.egress_policy.as_ref().map(redacted).transpose()?;
    Ok(SandboxRow {
        id: mint("sbx_"),
        name: request.name.as_ref().map(ToString::to_string),
        status: "provisioning".to_owned(),
        error: None,
        created_at,
        started_at: None,
        last_activity_at: None,
        expires_at: (lifetime > 0).then(|| created_at.saturating_add(lifetime * 1000)),
        stopped_at: None,
        idle_seconds: seconds(request.idle_timeout_seconds.map(|count| count.get())),
        delete_after_seconds: seconds(
            request
                .delete_after_stopped_seconds
                .map(|count| count.get()),
        ),
        metadata: text(Value::Object(metadata)),
        env: text(redacted(&request.env.clone().unwrap_or_default())?),
        backend: backend.map(text),
        egress: egress.map(text),
        managed,
        marker: mint(""),
        processes: false,
        incarnation: mint("fsi_"),
        ready: false,
    })
}

/// The backend block without anything that is a credential.
pub(super) fn public_backend(backend: &SentBackend) -> Result<Value, Fault> {
    let mut value = redacted(backend)?;
    if let Some(block) = value.as_object_mut() {
        block.remove("runtimeSecrets");
    }
    if let Some(model) = value.get_mut("model").and_then(Value::as_object_mut) {
        model.remove("apiKey");
        model.remove("authFiles");
    }
    Ok(value)
}

/// What the operating system cannot hold as an environment.
fn check_environment(request: &CreateSandbox) -> Result<(), Fault> {
    for (name, value) in request.env.iter().flatten() {
        check_lasting("env", name, value)?;
    }
    Ok(())
}

/// Secrets of a turn as the operating system has to hold them.
fn check_secrets(backend: &SentBackend) -> Result<(), Fault> {
    let secrets = backend.runtime_secrets.iter();
    for (name, value) in secrets.flat_map(|secrets| secrets.iter()) {
        check_lasting("backend.runtimeSecrets", name, value.expose())?;
    }
    Ok(())
}

/// A variable of everything in a sandbox or of an agent: the private folders stay the deployment's.
fn check_lasting(field: &str, name: &str, value: &str) -> Result<(), Fault> {
    check_variable(field, name, value)?;
    if matches!(name, "HOME" | "TMPDIR") || name.starts_with("XDG_") {
        let rule = "is set by the deployment";
        return Err(Fault::field(&format!("{field}.{name}"), rule));
    }
    Ok(())
}

/// A variable of an environment: its name is not empty and has no `=` or NUL, its value no NUL.
pub(super) fn check_variable(field: &str, name: &str, value: &str) -> Result<(), Fault> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Fault::field(
            field,
            "a name must not be empty and holds no `=` and no NUL",
        ));
    }
    if value.contains('\0') {
        return Err(Fault::field(field, "a value holds no NUL"));
    }
    if name.starts_with("TANGLE_") {
        let rule = "begins with `TANGLE_`, which is the deployment's";
        return Err(Fault::field(&format!("{field}.{name}"), rule));
    }
    Ok(())
}

/// The key of body and header, which must be equal when both are there (wire protocol, 1.3).
fn idempotency_key(
    headers: &HeaderMap,
    body: Option<&IdempotencyKey>,
) -> Result<Option<String>, Fault> {
    let Some(header) = header_text(headers, "idempotency-key")? else {
        return Ok(body.map(ToString::to_string));
    };
    let header = IdempotencyKey::new(header)
        .map_err(|refused| Fault::field("idempotencyKey", refused.rule()))?;
    match body {
        Some(body) if *body != header => Err(Fault::field(
            "idempotencyKey",
            "must be the key of the header `Idempotency-Key`",
        )),
        _ => Ok(Some(header.to_string())),
    }
}

/// `image` is `environment`; `cpu`, `memoryMb` and `storageMb` are `cpuCores`, `memoryMB` and `diskGB`.
fn older_spellings(body: &mut Value) -> Result<(), Fault> {
    let Some(body) = body.as_object_mut() else {
        return Ok(());
    };
    rename(body, "", "image", "environment", |value| value)?;
    if let Some(resources) = body.get_mut("resources").and_then(Value::as_object_mut) {
        let same = |value| value;
        rename(resources, "resources.", "cpu", "cpuCores", same)?;
        rename(resources, "resources.", "memoryMb", "memoryMB", same)?;
        rename(
            resources,
            "resources.",
            "storageMb",
            "diskGB",
            |value| match value.as_f64() {
                Some(megabytes) => (megabytes / 1024.0).into(),
                None => value,
            },
        )?;
    }
    Ok(())
}

fn rename(
    members: &mut Map<String, Value>,
    prefix: &str,
    old: &str,
    new: &str,
    convert: impl Fn(Value) -> Value,
) -> Result<(), Fault> {
    let Some(value) = members.remove(old) else {
        return Ok(());
    };
    if members.contains_key(new) {
        return Err(Fault::field(
            &format!("{prefix}{old}"),
            format!("must not stand beside `{new}`"),
        ));
    }
    members.insert(new.to_owned(), convert(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::older_spellings;

    #[test]
    fn older_spellings_are_read() {
        let mut body =
            json!({"image": "x", "resources": {"cpu": 2, "memoryMb": 512, "storageMb": 2048}});
        older_spellings(&mut body).unwrap();
        let newer = json!({"environment": "x", "resources": {"cpuCores": 2, "memoryMB": 512, "diskGB": 2.0}});
        assert_eq!(body, newer);
        let both = &mut json!({"image": "x", "environment": "y"});
        assert_eq!(older_spellings(both).unwrap_err().status.as_u16(), 400);
    }
}
