//! One call: the deployment, the parameters of the path, the request.

use std::collections::HashMap;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};

use super::Shared;
use super::answer::Fault;
use crate::occupancy::Stay;
use crate::store::sandboxes::SandboxRow;
use crate::store::{StoreError, sandboxes};

pub(crate) struct Call {
    pub(crate) deployment: Shared,
    pub(crate) request: Request,
    parameters: HashMap<String, String>,
}

impl FromRequest<Shared> for Call {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, Fault> {
        let (mut parts, body) = request.into_parts();
        let raw = RawPathParams::from_request_parts(&mut parts, state)
            .await
            .map_err(|_| Fault::field("path", "must be UTF-8 after percent decoding"))?;
        let parameters = raw
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ok(Self {
            deployment: state.clone(),
            request: Request::from_parts(parts, body),
            parameters,
        })
    }
}

impl Call {
    /// A parameter of the path; empty when the route has none of that name.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// The sandbox's id.
    pub(crate) fn id(&self) -> &str {
        self.parameter("id")
    }

    /// The sandbox.
    ///
    /// The futures of a call borrow nothing of it, since a body is not `Sync`.
    ///
    /// # Errors
    ///
    /// 404 when there is none.
    pub(crate) fn sandbox(&self) -> impl Future<Output = Result<SandboxRow, Fault>> + Send + use<> {
        let (deployment, id) = (self.deployment.clone(), self.id().to_owned());
        async move { find(&deployment, &id).await }
    }

    /// The sandbox, running and ready, entered for as long as the stay is held.
    ///
    /// # Errors
    ///
    /// 404; 409 `INVALID_STATE` or `FILESYSTEM_INCARNATION_NOT_READY`.
    pub(crate) fn running(
        &self,
    ) -> impl Future<Output = Result<(SandboxRow, Stay), Fault>> + Send + use<> {
        let (deployment, id) = (self.deployment.clone(), self.id().to_owned());
        async move {
            let sandbox = find(&deployment, &id).await?;
            let stay = deployment.occupancy.enter(&id);
            // Read again, since only those who are inside keep it running.
            let sandbox = match stay {
                Some(_) => find(&deployment, &sandbox.id).await?,
                None => sandbox,
            };
            must_run(&sandbox)?;
            let stay = stay.ok_or_else(|| {
                let message = "another lifecycle operation is in progress";
                Fault::state(&sandbox.status, None, message)
            })?;
            Ok((sandbox, stay))
        }
    }
}

/// The sandbox with this id.
pub(crate) async fn find(deployment: &Shared, id: &str) -> Result<SandboxRow, Fault> {
    let wanted = id.to_owned();
    let found = deployment
        .store
        .read::<_, StoreError>(move |db| sandboxes::get(db, &wanted))
        .await?;
    found.ok_or_else(|| Fault::not_found("sandbox", id))
}

/// The rule of every runtime route (wire protocol, 4.4).
pub(crate) fn must_run(sandbox: &SandboxRow) -> Result<(), Fault> {
    if sandbox.status != "running" {
        let message = "the sandbox is not running";
        return Err(Fault::state(&sandbox.status, Some("running"), message));
    }
    if !sandbox.ready {
        return Err(Fault::conflict(
            "FILESYSTEM_INCARNATION_NOT_READY",
            "the sandbox's file system is still being prepared",
        )
        .with("currentState", "running"));
    }
    Ok(())
}
