//! Content of files (wire protocol, 13.2).

use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tangle_sandbox::contract::types::{
    Count, FileContent, FileEncoding, FileWritten, ReadFile, WriteFile,
};

use super::answer::{Fault, data};
use super::call::Call;
use super::request::{document, held};
use crate::workspace::{PathError, Workspace};

/// Mode of a file when the request names none.
const DEFAULT_MODE: u16 = 0o644;

/// `POST R/files/read`.
pub(super) async fn read(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let wanted: ReadFile = document(call.request, deployment.settings.other_body).await?;
    let (sandbox, stay) = running.await?;
    let limit = deployment.settings.read;
    let encoding = wanted.encoding.unwrap_or(FileEncoding::Utf8);
    let workspace = deployment.places.workspace(&sandbox.id);
    let (content, size, hash) = blocking(move || {
        let content = Workspace::open(&workspace)?.read(&wanted.path, limit);
        drop(stay);
        let content = content?;
        let (size, hash) = (content.len() as u64, hex(&content));
        let content = match encoding {
            FileEncoding::Base64 => Some(STANDARD.encode(&content)),
            FileEncoding::Utf8 => String::from_utf8(content).ok(),
        };
        Ok((content, size, hash))
    })
    .await?;
    let content = content
        .ok_or_else(|| Fault::field("encoding", "must be `base64`: the file is not UTF-8"))?;
    Ok(data(&FileContent {
        content,
        encoding,
        size: Count::try_from(size)?,
        hash,
    }))
}

/// `POST R/files/write`, and its alias on the control plane.
pub(super) async fn write(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let (wanted, room) = held::<WriteFile>(call.request, deployment.settings.run_body).await?;
    let (sandbox, stay) = running.await?;
    let mode = wanted.mode.map_or(DEFAULT_MODE, |mode| mode.get());
    let workspace = deployment.places.workspace(&sandbox.id);
    let written = blocking(move || {
        let content = match wanted.encoding {
            None | Some(FileEncoding::Utf8) => Some(wanted.content.into_bytes()),
            Some(FileEncoding::Base64) => STANDARD.decode(&wanted.content).ok(),
        };
        let Some(content) = content else {
            return Ok(None);
        };
        Workspace::open(&workspace)?.write(&wanted.path, &content, mode)?;
        drop((stay, room));
        Ok(Some((content.len() as u64, hex(&content))))
    })
    .await?;
    let written =
        written.ok_or_else(|| Fault::field("content", "must be standard base64 with padding"))?;
    Ok(data(&FileWritten {
        size: Count::try_from(written.0)?,
        hash: written.1,
    }))
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Work on files, away from the threads that serve.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PathError> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or(Err(PathError::Io(std::io::ErrorKind::Other)));
    done.map_err(refusal)
}

/// What a refused path means for the caller.
pub(super) fn refusal(error: PathError) -> Fault {
    let message = format!("the path {error}");
    match error {
        PathError::Malformed
        | PathError::NotAFile
        | PathError::NotADirectory
        | PathError::Links
        | PathError::IntoItself => Fault::field("path", error.to_string()),
        PathError::Outside => Fault::new(StatusCode::FORBIDDEN, "FORBIDDEN", message),
        PathError::Absent => {
            Fault::new(StatusCode::NOT_FOUND, "NOT_FOUND", "there is no such file")
                .with("resourceType", "file")
        }
        PathError::Exists | PathError::NotEmpty => Fault::conflict("INVALID_STATE", &message),
        PathError::TooLarge { size } => {
            Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "FILE_TOO_LARGE", message).with("size", size)
        }
        PathError::Full => Fault::storage_full("the disk of the deployment is full"),
        PathError::Io(std::io::ErrorKind::PermissionDenied) => {
            Fault::new(StatusCode::FORBIDDEN, "FORBIDDEN", message)
        }
        PathError::Io(_) => Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "SERVER_ERROR", message),
    }
}
