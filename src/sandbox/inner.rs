//! What every handle of one sandbox shares, and the calls that more than one of them makes.

use std::sync::Arc;

use serde_json::Value;

use crate::contract::routes::{self, Route};
use crate::contract::types::{
    CancelAcknowledgement, CancelEffect, CancelRequest, CancelStatus, OperationId, RunOutcome,
    RunRequest, SandboxId, SessionRecord,
};
use crate::transport::{Call, Repeat, Transport};

use super::error::Error;
use super::feed::{Identity, Joined};

/// The way to one sandbox's runtime. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inner {
    pub transport: Transport,
    id: Arc<SandboxId>,
}

/// What the service's record says of a run whose stream was lost (wire protocol, 8.4).
pub(crate) enum Settled {
    Running,
    Over(Box<RunOutcome>),
    Unknown,
}

impl Inner {
    pub fn new(transport: Transport, id: SandboxId) -> Self {
        Inner {
            transport,
            id: Arc::new(id),
        }
    }

    pub fn id(&self) -> &SandboxId {
        &self.id
    }

    /// A call of a route of this sandbox.
    pub fn call(&self, route: &'static Route) -> Call {
        Call::new(route, &[("id", &self.id)])
    }

    /// A call of a route below a session of this sandbox.
    fn session_call(&self, route: &'static Route, session: &str, execution: &str) -> Call {
        let params = [
            ("id", self.id.as_str()),
            ("session_id", session),
            ("execution_id", execution),
        ];
        Call::new(route, &params)
    }

    /// Sends a run request and opens its stream. A request that names its execution may be sent again: the service then
    /// rejoins instead of running twice.
    pub async fn run_stream(&self, request: &RunRequest) -> Result<Joined, Error> {
        let repeat = match request.execution_id {
            Some(_) => Repeat::Keyed,
            None => Repeat::Never,
        };
        let call = self
            .call(&routes::AGENTS_RUN_STREAM)
            .body(request)
            .repeat(repeat);
        match self.transport.stream(call).await? {
            Some(stream) => Ok(Joined::Stream(Box::new(stream))),
            None => Ok(Joined::Over),
        }
    }

    /// The frames of a run after its cursor.
    pub async fn rejoin(&self, request: RunRequest) -> Result<Joined, Error> {
        self.run_stream(&request).await
    }

    /// Cancels one execution: by the canonical request when its exact reference is known, else by the simple one.
    pub async fn cancel(&self, identity: &Identity) -> Result<(), Error> {
        match &identity.reference {
            Some(reference) => {
                let operation = format!("cancel-{}", uuid::Uuid::new_v4());
                let mut request = CancelRequest {
                    operation_id: OperationId::new(operation)?,
                    run: reference.clone(),
                    reason: None,
                    request_digest: reference.request_digest,
                };
                request.request_digest = request.digest();
                let call = self
                    .call(&routes::SESSIONS_CANCEL_RUN)
                    .body(&request)
                    .repeat(Repeat::Keyed);
                let acknowledgement: CancelAcknowledgement = self.transport.json(call).await?;
                check_acknowledgement(&request, &acknowledgement)
            }
            None => {
                let mut body = serde_json::Map::new();
                body.insert("executionId".into(), identity.execution.to_string().into());
                if let Some(session) = &identity.session {
                    body.insert("sessionId".into(), session.to_string().into());
                }
                let call = self
                    .call(&routes::AGENTS_RUN_CANCEL)
                    .body(&Value::Object(body));
                Ok(self.transport.empty(call).await?)
            }
        }
    }

    /// Asks for the recorded state of a run; `lost` says that its stream was cut, rather than said to be over.
    pub async fn settle(&self, identity: &Identity, lost: bool) -> Settled {
        let Some(session) = &identity.session else {
            return Settled::Unknown;
        };
        let execution = identity.execution.as_str();
        if lost {
            let call = self.session_call(&routes::SESSIONS_GET, session, execution);
            if let Ok(record) = self.transport.json::<SessionRecord>(call).await
                && active_execution(&record).as_deref() == Some(execution)
            {
                return Settled::Running;
            }
        }
        let call = self.session_call(&routes::SESSIONS_RESULT, session, execution);
        match self.transport.json::<RunOutcome>(call).await {
            Ok(outcome) if outcome.execution_id.as_deref() != Some(execution) => Settled::Unknown,
            Ok(outcome) if outcome.status.as_deref() == Some("running") => Settled::Unknown,
            Ok(outcome) => Settled::Over(Box::new(outcome)),
            Err(_) => Settled::Unknown,
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Inner").field(&self.id).finish()
    }
}

/// The execution that a session runs; it stands on the record, or beside it as an object.
fn active_execution(record: &SessionRecord) -> Option<String> {
    let text = |value: &Option<Value>, key: Option<&str>| {
        let value = value.as_ref()?;
        let value = match key {
            Some(key) => value.get(key)?,
            None => value,
        };
        value.as_str().map(str::to_owned)
    };
    text(&record.active_execution_id, None).or_else(|| text(&record.active_execution, Some("id")))
}

/// The acknowledgement has to be of this request and to say one of the things that the protocol allows.
fn check_acknowledgement(
    request: &CancelRequest,
    answer: &CancelAcknowledgement,
) -> Result<(), Error> {
    let no = |rule: &str| Err(Error::protocol("cancel", rule));
    if answer.operation_id != request.operation_id
        || answer.request_digest != request.request_digest
        || answer.run != request.run
    {
        return no("the acknowledgement is of another request");
    }
    match (answer.status, answer.effect) {
        (CancelStatus::Accepted | CancelStatus::Replayed, CancelEffect::Unknown) => {
            no("an accepted cancel names its effect")
        }
        (CancelStatus::Accepted | CancelStatus::Replayed, _) => Ok(()),
        (CancelStatus::Conflict, _) => no("the operation id is known for another cancel"),
        (CancelStatus::Unknown, _) => no("the service does not know what became of the cancel"),
    }
}
