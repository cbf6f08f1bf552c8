//! The rules between the fields of a workspace and of a checkpoint reference (core contracts, 7.2; branching, 2.2).

use serde_json::Value;

use crate::contract::check::Refused;

/// A workspace has one origin: an environment or an image, and a repository or a checkpoint.
pub(crate) fn workspace_request(workspace: &Value) -> Result<(), Refused> {
    let given = |field: &str| workspace.get(field).is_some();
    if given("environment") && given("image") {
        return Err(Refused::new(
            "/image",
            "must not stand beside `environment`",
        ));
    }
    if given("gitRef") && !given("repoUrl") {
        return Err(Refused::new("/gitRef", "needs `repoUrl`"));
    }
    if given("checkpoint") && given("repoUrl") {
        return Err(Refused::new(
            "/checkpoint",
            "must not stand beside `repoUrl`",
        ));
    }
    Ok(())
}

/// A checkpoint is of the provider whose run it was taken from.
pub(crate) fn checkpoint_reference(reference: &Value) -> Result<(), Refused> {
    if reference["provider"] == reference["source"]["provider"] {
        Ok(())
    } else {
        Err(Refused::new(
            "/provider",
            "must be the provider of `source`",
        ))
    }
}
