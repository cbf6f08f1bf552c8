//! The handle of a sandbox in one of its states.

use std::marker::PhantomData;
use std::time::Duration;

use tokio::time::Instant;

use crate::contract::limits;
use crate::contract::routes;
use crate::contract::types::{CreateReceipt, DeletedSandbox, SandboxId, SandboxRecord};
use crate::transport::{self, Call as Sent, Repeat, Transport};

use super::error::{Error, Kept};
use super::inner::Inner;
use super::record::Status;
use super::state::{Deadline, Ended, Provisioning, Running, State, Stopped};

/// A sandbox in state `S`.
///
/// The type says what may be done: only a `Sandbox<Running>` can be prompted. A transition takes the handle and gives
/// back another one, so that a handle never lies about its state; when a transition fails, [`Kept`] has the handle as it
/// was. A handle has no `Clone`. Dropping it does nothing to the sandbox.
///
/// ```text
/// create ─► Sandbox<Provisioning> ── wait_ready ─► Sandbox<Running> ── stop ─► Sandbox<Stopped>
///                     ▲                                                             │
///                     └───────────────────────── resume ────────────────────────────┘
/// ```
pub struct Sandbox<S> {
    shared: Box<Shared>,
    state: PhantomData<fn() -> S>,
}

struct Shared {
    inner: Inner,
    record: SandboxRecord,
    receipt: Option<CreateReceipt>,
}

/// How long a state is waited for unless the caller says otherwise.
const DEFAULT_WAIT: Deadline = Deadline::from_millis(limits::READY_TIMEOUT_MS as u64);

/// What a deletion found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deleted {
    /// The sandbox was there and is gone.
    Destroyed,
    /// It was gone already.
    AlreadyAbsent,
    /// The service took the deletion and says that it does not know what it found.
    Unknown,
}

impl<S> Sandbox<S> {
    pub(crate) fn new(transport: &Transport, record: SandboxRecord) -> Self {
        let receipt = record.create_receipt.clone();
        Sandbox {
            shared: Box::new(Shared {
                inner: Inner::new(transport.clone(), record.id.clone()),
                record,
                receipt,
            }),
            state: PhantomData,
        }
    }

    /// Its identity; store it to come back with `Client::get`.
    pub fn id(&self) -> &SandboxId {
        &self.shared.record.id
    }

    /// The record as it was last read; this makes no request.
    pub fn record(&self) -> &SandboxRecord {
        &self.shared.record
    }

    /// The receipt of the create call that made this handle; `None` after `Client::get`.
    pub fn receipt(&self) -> Option<&CreateReceipt> {
        self.shared.receipt.as_ref()
    }

    /// Deletes the sandbox with everything in it. While another lifecycle operation is under way, the client waits and
    /// repeats.
    ///
    /// # Errors
    ///
    /// [`Kept`] with this handle. After `NETWORK_ERROR` or `TIMEOUT` the sandbox may be gone; delete again to know.
    pub async fn delete(self) -> Result<Deleted, Kept<Self>> {
        let call = self.inner().call(&routes::SANDBOXES_DELETE);
        match self
            .inner()
            .transport
            .json_or_empty::<DeletedSandbox>(call)
            .await
        {
            Ok(Some(answer)) => match deleted(self.id(), &answer) {
                Ok(deleted) => Ok(deleted),
                Err(error) => Err(Kept::new(self, error)),
            },
            Ok(None) => Ok(Deleted::Destroyed),
            Err(transport::Error::NotFound { .. }) => Ok(Deleted::AlreadyAbsent),
            Err(error) => Err(Kept::new(self, error)),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.shared.inner
    }

    /// The same sandbox, known to be in another state.
    fn into_state<T: State>(mut self, record: Option<SandboxRecord>) -> Sandbox<T> {
        if let Some(record) = record {
            self.shared.record = record;
        }
        Sandbox {
            shared: self.shared,
            state: PhantomData,
        }
    }

    async fn refresh(&self) -> Result<SandboxRecord, Error> {
        let call = self.inner().call(&routes::SANDBOXES_GET);
        self.same(self.inner().transport.json(call).await?)
    }

    /// Sends a lifecycle call, which has one effect however often it is sent; an empty answer is followed by a read.
    async fn transit(&self, call: Sent) -> Result<SandboxRecord, Error> {
        let call = call.repeat(Repeat::Safe);
        match self.inner().transport.json_or_empty(call).await? {
            Some(record) => self.same(record),
            None => self.refresh().await,
        }
    }

    fn same(&self, record: SandboxRecord) -> Result<SandboxRecord, Error> {
        match record.id == *self.id() {
            true => Ok(record),
            false => Err(Error::protocol(
                "sandbox",
                "the answer is about another sandbox",
            )),
        }
    }

    /// Reads the record until it says what is waited for: at once, then after 25 ms, doubling up to every 2 seconds. A
    /// record that says so already is not read again.
    async fn wait_until(
        &mut self,
        deadline: Deadline,
        reached: impl Fn(&SandboxRecord) -> bool,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(limits::READY_POLL_FIRST_MS as u64);
        let longest = Duration::from_millis(limits::READY_POLL_LAST_MS as u64);
        let mut reads = 0;
        loop {
            if reached(self.record()) {
                return Ok(());
            }
            let status = self.record().lifecycle();
            if status.is_terminal() {
                let reason = self.record().error.clone();
                return Err(Error::Over { status, reason });
            }
            if reads > 0 {
                let left = deadline.get().saturating_sub(started.elapsed());
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(longest);
            }
            let waited = started.elapsed();
            let left = deadline.get().saturating_sub(waited);
            if left.is_zero() {
                return Err(Error::NotReady { status, waited });
            }
            // A read that the deadline cuts off leaves the record as it was; the next turn of the loop reports it.
            if let Ok(record) = tokio::time::timeout(left, self.refresh()).await {
                self.shared.record = record?;
            }
            reads += 1;
        }
    }
}

/// What an acknowledged deletion found.
fn deleted(id: &SandboxId, answer: &DeletedSandbox) -> Result<Deleted, Error> {
    let no = |rule| Err(Error::protocol("delete", rule));
    if answer.sandbox_id.as_ref().is_some_and(|named| named != id) {
        return no("the answer is about another sandbox");
    }
    if !answer.success {
        return no("the answer has a good status and says that it failed");
    }
    Ok(match answer.outcome.as_deref() {
        Some("destroyed") | None => Deleted::Destroyed,
        Some("already_absent") => Deleted::AlreadyAbsent,
        Some(_) => Deleted::Unknown,
    })
}

impl Sandbox<Provisioning> {
    /// Waits until the sandbox runs and its file system is ready, up to 120 seconds.
    ///
    /// # Errors
    ///
    /// [`Kept`] with this handle: [`Over`](Error::Over) when the sandbox failed, [`NotReady`](Error::NotReady) when the
    /// time is over. Nothing is deleted.
    pub async fn wait_ready(self) -> Result<Sandbox<Running>, Kept<Self>> {
        self.wait_ready_within(DEFAULT_WAIT).await
    }

    /// Waits until the sandbox is ready, up to `deadline`.
    ///
    /// The status is read at once (not at all when the last answer says that it is ready), then after 25 ms, doubling up
    /// to every 2 seconds.
    ///
    /// # Errors
    ///
    /// As [`wait_ready`](Self::wait_ready).
    pub async fn wait_ready_within(
        mut self,
        deadline: Deadline,
    ) -> Result<Sandbox<Running>, Kept<Self>> {
        match self.wait_until(deadline, SandboxRecord::is_ready).await {
            Ok(()) => Ok(self.into_state(None)),
            Err(error) => Err(Kept::new(self, error)),
        }
    }
}

impl Sandbox<Running> {
    /// Stops the sandbox; its state is kept. Runs that are still going on end as cancelled. A service that stops it later
    /// than it answers is waited for, up to 120 seconds.
    ///
    /// # Errors
    ///
    /// [`Kept`] with this handle: as the call, [`Over`](Error::Over) when the sandbox ended instead,
    /// [`NotReady`](Error::NotReady) when it did not stop in time.
    pub async fn stop(self) -> Result<Sandbox<Stopped>, Kept<Self>> {
        let call = self.inner().call(&routes::SANDBOXES_STOP);
        let mut stopping: Self = match self.transit(call).await {
            Ok(record) => self.into_state(Some(record)),
            Err(error) => return Err(Kept::new(self, error)),
        };
        let stopped = |record: &SandboxRecord| record.lifecycle() == Status::Stopped;
        match stopping.wait_until(DEFAULT_WAIT, stopped).await {
            Ok(()) => Ok(stopping.into_state(None)),
            Err(error) => Err(Kept::new(stopping, error)),
        }
    }
}

impl Sandbox<Stopped> {
    /// Starts the sandbox again; it has to get ready before it can be used. The first prompt after that names its backend
    /// again.
    ///
    /// # Errors
    ///
    /// [`Kept`] with this handle.
    pub async fn resume(self) -> Result<Sandbox<Provisioning>, Kept<Self>> {
        let call = self.inner().call(&routes::SANDBOXES_RESUME);
        match self.transit(call).await {
            Ok(record) => Ok(self.into_state(Some(record))),
            Err(error) => Err(Kept::new(self, error)),
        }
    }
}

impl<S: State> std::fmt::Debug for Sandbox<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("state", &S::NAME)
            .field("id", self.id())
            .field("status", &self.record().status)
            .finish_non_exhaustive()
    }
}

/// A sandbox whose state is known only now: what `Client::get` finds.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySandbox {
    /// Not yet usable, or in a status that this version does not know; wait until it is ready.
    Provisioning(Sandbox<Provisioning>),
    /// Ready.
    Running(Sandbox<Running>),
    /// Stopped.
    Stopped(Sandbox<Stopped>),
    /// Failed, expired or deleted.
    Ended(Sandbox<Ended>),
}

impl AnySandbox {
    pub(crate) fn new(transport: &Transport, record: SandboxRecord) -> Self {
        match record.lifecycle() {
            Status::Running if record.is_ready() => {
                AnySandbox::Running(Sandbox::new(transport, record))
            }
            Status::Stopped => AnySandbox::Stopped(Sandbox::new(transport, record)),
            status if status.is_terminal() => AnySandbox::Ended(Sandbox::new(transport, record)),
            _ => AnySandbox::Provisioning(Sandbox::new(transport, record)),
        }
    }

    /// Its identity.
    pub fn id(&self) -> &SandboxId {
        &self.record().id
    }

    /// The record as it was read.
    pub fn record(&self) -> &SandboxRecord {
        match self {
            AnySandbox::Provisioning(sandbox) => sandbox.record(),
            AnySandbox::Running(sandbox) => sandbox.record(),
            AnySandbox::Stopped(sandbox) => sandbox.record(),
            AnySandbox::Ended(sandbox) => sandbox.record(),
        }
    }

    /// Brings the sandbox to a running one: resumes it when it is stopped, waits until it is ready.
    ///
    /// # Errors
    ///
    /// [`Kept`] with the handle in the state that was reached: [`Over`](Error::Over) when the sandbox has ended; else as
    /// `resume` and `wait_ready`. Nothing is deleted.
    pub async fn into_running(self) -> Result<Sandbox<Running>, Kept<Self>> {
        let waiting = match self {
            AnySandbox::Running(sandbox) => return Ok(sandbox),
            AnySandbox::Provisioning(sandbox) => sandbox,
            AnySandbox::Stopped(sandbox) => sandbox
                .resume()
                .await
                .map_err(|kept| kept.map(AnySandbox::Stopped))?,
            AnySandbox::Ended(sandbox) => {
                let error = Error::Over {
                    status: sandbox.record().lifecycle(),
                    reason: sandbox.record().error.clone(),
                };
                return Err(Kept::new(AnySandbox::Ended(sandbox), error));
            }
        };
        let ready = waiting.wait_ready().await;
        ready.map_err(|kept| kept.map(AnySandbox::Provisioning))
    }

    /// Deletes the sandbox, whatever its state.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::delete`].
    pub async fn delete(self) -> Result<Deleted, Kept<Self>> {
        match self {
            AnySandbox::Provisioning(sandbox) => sandbox
                .delete()
                .await
                .map_err(|kept| kept.map(AnySandbox::Provisioning)),
            AnySandbox::Running(sandbox) => sandbox
                .delete()
                .await
                .map_err(|kept| kept.map(AnySandbox::Running)),
            AnySandbox::Stopped(sandbox) => sandbox
                .delete()
                .await
                .map_err(|kept| kept.map(AnySandbox::Stopped)),
            AnySandbox::Ended(sandbox) => sandbox
                .delete()
                .await
                .map_err(|kept| kept.map(AnySandbox::Ended)),
        }
    }
}
