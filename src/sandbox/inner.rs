//! What every handle of one sandbox shares, and the calls that more than one of them makes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::contract::limits;
use crate::contract::routes::{self, Route};
use crate::contract::types::{
    CancelAcknowledgement, CancelRequest, ControlStatus, ExecutionId, OperationId, RunControlRef,
    RunOutcome, RunRequest, SandboxId, SessionId, TurnId, TurnRecord,
};
use crate::transport::{Call, EventStream, Repeat, RetryPolicy, Transport};

use super::error::Error;
use super::session;

/// The way to one sandbox's runtime. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inner {
    pub transport: Transport,
    id: Arc<SandboxId>,
}

/// What is known of a run.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub session: SessionId,
    pub execution: ExecutionId,
    pub turn: Option<TurnId>,
    /// The exact reference, once the service has admitted the run under one.
    pub reference: Option<RunControlRef>,
    /// Whether this client named the execution by itself, so that no other caller can know it.
    pub minted: bool,
    /// Whether this reader started the run, as far as is known; only then does its leaving end the run.
    pub owned: bool,
}

/// What answers a request for frames: a stream, or that nothing comes after the cursor.
pub(crate) enum Joined {
    Stream(Box<EventStream>),
    Over,
}

/// What the service's record says of a run whose stream was lost (wire protocol, 8.4).
pub(crate) enum Settled {
    Running,
    Over(Box<RunOutcome>),
    Unknown,
}

const CONTROL_LIMIT: Duration = Duration::from_millis(limits::INTERACTION_TIMEOUT_MS as u64);

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

    /// A call of a route below the session of a run.
    fn session_call(&self, route: &'static Route, run: &Identity) -> Call {
        let turn = run.turn.as_ref().map_or("", |turn| turn.as_str());
        let params = [
            ("id", self.id.as_str()),
            ("session_id", &run.session),
            ("execution_id", &run.execution),
            ("turn_id", turn),
        ];
        Call::new(route, &params)
    }

    /// Sends a new run and opens its stream. The request names its execution, so that it may be sent again: the service
    /// then rejoins instead of running twice.
    pub async fn start(&self, request: &RunRequest) -> Result<Joined, Error> {
        self.open(request, None).await
    }

    /// Asks once for the frames of a run after the cursor; how often that is repeated is for the reader to say.
    pub async fn rejoin(&self, request: &RunRequest) -> Result<Joined, Error> {
        self.open(request, Some(RetryPolicy::OFF)).await
    }

    async fn open(
        &self,
        request: &RunRequest,
        retry: Option<RetryPolicy>,
    ) -> Result<Joined, Error> {
        let mut call = self
            .call(&routes::AGENTS_RUN_STREAM)
            .body(request)
            .repeat(Repeat::Keyed);
        if let Some(retry) = retry {
            call = call.retry(retry);
        }
        match self.transport.stream(call).await? {
            Some(stream) => Ok(Joined::Stream(Box::new(stream))),
            None => Ok(Joined::Over),
        }
    }

    /// Cancels one execution: by the canonical request when its exact reference is known, else by the simple one.
    pub async fn cancel(&self, run: &Identity) -> Result<(), Error> {
        let Some(reference) = &run.reference else {
            let body = json!({ "executionId": run.execution, "sessionId": run.session });
            let call = self.call(&routes::AGENTS_RUN_CANCEL).body(&body);
            return Ok(self.transport.empty(call.time_limit(CONTROL_LIMIT)).await?);
        };
        let operation = format!("cancel-{}", uuid::Uuid::new_v4());
        let request = CancelRequest::new(OperationId::new(operation)?, reference.clone(), None);
        let call = self
            .call(&routes::SESSIONS_CANCEL_RUN)
            .body(&request)
            .repeat(Repeat::Keyed)
            .time_limit(CONTROL_LIMIT);
        let acknowledgement: CancelAcknowledgement = self.transport.json(call).await?;
        check_acknowledgement(&request, &acknowledgement)
    }

    /// Cancels a run whose reader has left, in a task of its own that ends within 5 seconds. A failure is logged.
    pub fn cancel_in_background(&self, run: Identity) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            tracing::warn!(execution = %run.execution, "a run was dropped outside of a runtime; the service ends it after its grace");
            return;
        };
        let inner = self.clone();
        runtime.spawn(async move {
            match tokio::time::timeout(CONTROL_LIMIT, inner.cancel(&run)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(execution = %run.execution, %error, "the cancel of a dropped run failed");
                }
                Err(_) => {
                    tracing::warn!(execution = %run.execution, "the cancel of a dropped run took too long");
                }
            }
        });
    }

    /// Asks for the recorded state of a run (wire protocol, 8.4).
    pub async fn settle(&self, run: &Identity) -> Settled {
        let call = self.session_call(&routes::SESSIONS_GET, run);
        if let Ok(answer) = self.transport.json::<Value>(call).await
            && session::record(answer).is_some_and(|record| record.active() == Some(&run.execution))
        {
            return Settled::Running;
        }
        self.recorded(run).await
    }

    /// Asks for the recorded result of a run that is said to be over.
    pub async fn recorded(&self, run: &Identity) -> Settled {
        let call = self.session_call(&routes::SESSIONS_RESULT, run);
        if let Ok(outcome) = self.transport.json::<RunOutcome>(call).await
            && outcome.execution_id.as_deref() == Some(&*run.execution)
            && outcome.status.as_deref().is_some_and(is_final)
        {
            return Settled::Over(Box::new(outcome));
        }
        let Some(turn) = &run.turn else {
            return Settled::Unknown;
        };
        let call = self.session_call(&routes::SESSIONS_TURN, run);
        let Ok(record) = self.transport.json::<TurnRecord>(call).await else {
            return Settled::Unknown;
        };
        let same = record.turn_id == turn.as_str() && record.session_id == run.session.as_str();
        match record.result {
            Some(mut outcome) if same && is_final(&record.status) => {
                outcome.status.get_or_insert(record.status);
                outcome.execution_id.get_or_insert(record.execution_id);
                Settled::Over(Box::new(outcome))
            }
            _ => Settled::Unknown,
        }
    }
}

/// Whether a status word says that the run has ended; one that is not known does not.
fn is_final(word: &str) -> bool {
    const FINAL: [&str; 10] = [
        "completed",
        "success",
        "failed",
        "error",
        "cancelled",
        "blocked_on_approval",
        "awaiting_question",
        "awaiting_interaction",
        "awaiting_plan_decision",
        "expired",
    ];
    FINAL.contains(&word)
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Inner").field(&self.id).finish()
    }
}

/// The acknowledgement has to be of this request and to say one of the things that the protocol allows.
fn check_acknowledgement(
    request: &CancelRequest,
    answer: &CancelAcknowledgement,
) -> Result<(), Error> {
    let no = |rule: String| Err(Error::protocol("cancel", rule));
    if let Err(refused) = answer.rules() {
        return no(refused.to_string());
    }
    if let Err(refusal) = answer.answers(request) {
        return no(refusal.to_string());
    }
    match answer.status {
        ControlStatus::Accepted | ControlStatus::Replayed => Ok(()),
        ControlStatus::Conflict => no("the operation id is known for another cancel".into()),
        ControlStatus::Unknown => no("the service does not know what became of the cancel".into()),
    }
}
