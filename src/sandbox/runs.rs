//! Prompting an agent: `prompt` for the result, `stream` for the events.

use std::time::Duration;

use crate::contract::types::{ExecutionId, SessionId};

use super::call::Call;
use super::error::Error;
use super::feed::{Feed, Identity, Joined};
use super::handle::Sandbox;
use super::inner::Inner;
use super::prompt::{Prompt, PromptResult};
use super::run::{Attached, Run};
use super::state::Ready;

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
        let prompt = prompt.into();
        let (inner, ready) = (self.inner().clone(), self.record().is_ready());
        Call::new(async move {
            check(&prompt, ready)?;
            open(&inner, prompt).await
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

/// Starts the run. The client names session and execution itself, so that it can come back before the service answers.
pub(crate) async fn open(inner: &Inner, prompt: Prompt) -> Result<Run<Attached>, Error> {
    let mut request = prompt.request;
    let execution = match request.execution_id.take() {
        Some(execution) => execution,
        None => ExecutionId::new(format!("exe_{}", uuid::Uuid::new_v4().simple()))?,
    };
    let session = match request.session_id.take() {
        Some(session) => session,
        None => SessionId::new(format!("ses_{}", uuid::Uuid::new_v4().simple()))?,
    };
    request.execution_id = Some(execution.clone());
    request.session_id = Some(session.clone());
    let identity = Identity {
        session: Some(session),
        execution,
        reference: None,
        admitted: false,
    };
    match inner.run_stream(&request).await? {
        Joined::Stream(stream) => {
            let feed = Feed::new(inner.clone(), stream, prompt.rejoin, identity);
            Ok(Run::attached(feed))
        }
        Joined::Over => Err(Error::protocol("stream", "a new run answers with events")),
    }
}

async fn run_to_result(inner: &Inner, prompt: Prompt) -> Result<PromptResult, Error> {
    let limit = prompt.deadline.map(|deadline| deadline.get() + TURN_GRACE);
    let work = async {
        let run = open(inner, prompt).await?;
        run.result().await
    };
    let result = match limit {
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            // The run was dropped with the future, which cancels it.
            Err(_) => {
                return Ok(PromptResult::failed(
                    "TIMEOUT",
                    "the turn took longer than its deadline".into(),
                ));
            }
        },
        None => work.await,
    };
    match result {
        Ok(result) => Ok(result),
        Err(Error::Refused(refused)) => Err(Error::Refused(refused)),
        Err(error) => Ok(PromptResult::failed(
            error.code().as_str(),
            error.to_string(),
        )),
    }
}
