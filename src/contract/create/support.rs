//! Whether a provider can carry a mapped request out (provider runtime, 3.1, step 9).

use super::Refusal;
use crate::contract::capability::Capabilities;
use crate::contract::types::{CreateInput, CreateSandbox};

/// Checks a mapped request against the declared capabilities for its backend: a checkpoint that is to be restored, runtime
/// attachments that are to be bound.
///
/// # Errors
///
/// `checkpoint-unsupported`, `attachments-unsupported`.
pub fn supported(
    input: &CreateInput,
    request: &CreateSandbox,
    declared: &Capabilities,
) -> Result<(), Refusal> {
    let create = declared.create.as_ref();
    let restores = input
        .workspace
        .as_ref()
        .is_some_and(|workspace| workspace.checkpoint.is_some());
    if restores && create.is_none_or(|create| create.workspace_checkpoint != Some(true)) {
        return Err(Refusal::CheckpointUnsupported);
    }
    let backend = request.backend.as_ref();
    let attaches = backend.is_some_and(|backend| backend.runtime_attachments.is_some());
    let named = backend.is_some_and(|backend| backend.type_.is_some());
    let takes = create.is_some_and(|create| create.runtime_attachments.is_some());
    if attaches && !(named && takes) {
        return Err(Refusal::AttachmentsUnsupported);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
