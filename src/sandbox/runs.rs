//! Prompting an agent: `prompt` for the result, `stream` for the events.

use std::time::Duration;

use crate::contract::types::{ExecutionId, RunRequest, SessionId};

use super::call::Call;
use super::error::Error;
use super::feed::Feed;
use super::handle::Sandbox;
use super::inner::{Identity, Inner, Joined, Settled};
use super::prompt::{Prompt, PromptResult};
use super::run::{Attached, Run};
use super::state::{Deadline, Ready};
use super::verdict::Verdict;

/// How much longer than the turn's own limit the client waits, so that the service's verdict arrives.
const TURN_GRACE: Duration = Duration::from_secs(5);

impl<S> Sandbox<S> {
    /// Runs one turn of the agent and gives its result.
    ///
    /// A run that fails is a result with [`PromptStatus::Failed`](super::PromptStatus::Failed) and a code, not an error. Dropping the future
    /// cancels the run.
    ///
    /// # Errors
    ///
    /// Only what is wrong here, before anything is sent: an empty prompt or a broken rule (`VALIDATION_ERROR`), a file
    /// system that is not ready (`FILESYSTEM_INCARNATION_NOT_READY`).
    ///
    /// See the wire protocol, 7.8.
    ///
    /// ```no_run
    /// # async fn example(sandbox: tangle_sandbox::sandbox::Sandbox<tangle_sandbox::sandbox::Running>) -> Result<(), Box<dyn std::error::Error>> {
    /// let result = sandbox.prompt("say hello").await?;
    /// println!("{:?}: {}", result.status, result.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Call<'_, PromptResult>
    where
        S: Ready,
    {
        let prompt = prompt.into();
        let (inner, ready) = (self.inner().clone(), self.record().is_ready());
        Call::new(async move {
            check(&prompt, ready)?;
            run_to_result(&inner, prompt).await
        })
    }

    /// Runs one turn of the agent and yields its events.
    ///
    /// # Errors
    ///
    /// What is wrong here, as in [`prompt`](Self::prompt), and what the service answers before it starts the run:
    /// `SESSION_BUSY`, `TURN_CONFLICT`, `RUN_CONFLICT`, `INVALID_STATE`, `AGENT_EXECUTION_FAILED`.
    ///
    /// See the wire protocol, 7.1 to 7.6.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> Call<'_, Run<Attached>>
    where
        S: Ready,
    {
        let mut prompt = prompt.into();
        let (inner, ready) = (self.inner().clone(), self.record().is_ready());
        Call::new(async move {
            check(&prompt, ready)?;
            let identity = name(&mut prompt.request)?;
            open(&inner, prompt, identity).await
        })
    }
}

fn check(prompt: &Prompt, ready: bool) -> Result<(), Error> {
    prompt.check()?;
    match ready {
        true => Ok(()),
        false => Err(Error::FilesystemNotReady),
    }
}

/// A run that was asked for and has not answered yet: leaving it cancels it too.
struct Opening {
    inner: Inner,
    identity: Identity,
    cancels: bool,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.cancels {
            self.inner.cancel_in_background(self.identity.clone());
        }
    }
}

/// Names session and execution here, so that the client can come back before the service answers.
fn name(request: &mut RunRequest) -> Result<Identity, Error> {
    let session = match request.session_id.take() {
        Some(session) => session,
        None => SessionId::new(format!("ses_{}", uuid::Uuid::new_v4().simple()))?,
    };
    let given = request.execution_id.take();
    let minted = given.is_none();
    let execution = match given {
        Some(execution) => execution,
        None => ExecutionId::new(format!("exe_{}", uuid::Uuid::new_v4().simple()))?,
    };
    request.session_id = Some(session.clone());
    request.execution_id = Some(execution.clone());
    Ok(Identity {
        session,
        execution,
        turn: request.turn_id.clone(),
        reference: None,
        minted,
        owned: true,
    })
}

/// Starts the run.
async fn open(inner: &Inner, prompt: Prompt, identity: Identity) -> Result<Run<Attached>, Error> {
    let limit = prompt.deadline.map(limit);
    let mut opening = Opening {
        inner: inner.clone(),
        identity: identity.clone(),
        cancels: true,
    };
    let joined = inner.start(&prompt.request).await;
    // Without an answer the run may have started; an answer says whether it did.
    opening.cancels = matches!(&joined, Err(error) if is_unanswered(error));
    match joined? {
        Joined::Stream(stream) => {
            let feed = Feed::new(inner.clone(), stream, prompt.rejoin, identity);
            Ok(Run::attached(feed.limited(limit)))
        }
        Joined::Over => Err(Error::protocol("stream", "a new run answers with events")),
    }
}

fn is_unanswered(error: &Error) -> bool {
    use crate::transport::Error as E;
    let unanswered = matches!(error, Error::Call(E::Network { .. } | E::Timeout { .. }));
    unanswered && error.failure().is_some_and(|at| at.status().is_none())
}

/// How long the client waits for a turn with this deadline.
fn limit(deadline: Deadline) -> Duration {
    deadline.get().saturating_add(TURN_GRACE)
}

async fn run_to_result(inner: &Inner, mut prompt: Prompt) -> Result<PromptResult, Error> {
    let identity = name(&mut prompt.request)?;
    let limit = prompt.deadline.map_or(Duration::MAX, limit);
    let known = Verdict::new(&identity);
    let run = identity.clone();
    let work = async { open(inner, prompt, identity).await?.result().await };
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) if is_refused_here(&error) => Err(error),
        Ok(Err(error)) if is_unanswered(&error) => {
            // The run may have happened; the record tells, when it can be asked.
            let mut verdict = known;
            verdict.interrupt(error.to_string());
            if let Settled::Over(outcome) = inner.settle(&run).await {
                verdict.settle(*outcome);
            }
            Ok(verdict.finish(0.0))
        }
        Ok(Err(error)) => {
            // A run that the service refused has no identity.
            let refused = error.failure().is_some_and(|at| at.status().is_some());
            let verdict = if refused { Verdict::default() } else { known };
            Ok(verdict.failed(error.code().as_str(), error.to_string()))
        }
        // The run was dropped with the future, which cancels it.
        Err(_) => {
            let message = "the turn took longer than its deadline";
            Ok(known.failed("TIMEOUT", message.to_owned()))
        }
    }
}

fn is_refused_here(error: &Error) -> bool {
    use crate::transport::Error as E;
    matches!(error, Error::Refused(_) | Error::Call(E::Refused(_)))
}
