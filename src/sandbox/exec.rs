//! Shell commands in a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contract::check::Refused;
use crate::contract::types::{ExecOutput, ExecRequest, NonEmptyText, SessionId};
use crate::contract::{limits, routes};

use super::call::Call;
use super::handle::Sandbox;
use super::state::{Deadline, Ready};

/// A command for the sandbox's shell.
#[derive(Clone, Debug)]
pub struct Exec {
    request: ExecRequest,
    limit: Deadline,
    refused: Option<Refused>,
}

impl Exec {
    /// This command, in the workspace, for at most 30 seconds.
    pub fn new(command: impl Into<String>) -> Self {
        Exec {
            request: ExecRequest {
                command: command.into(),
                cwd: None,
                env: None,
                session_id: None,
                timeout: None,
            },
            limit: Deadline::from_millis(limits::REQUEST_TIMEOUT_MS as u64),
            refused: None,
        }
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(mut self, path: &str) -> Self {
        match NonEmptyText::new(path) {
            Ok(path) => self.request.cwd = Some(path),
            Err(refused) => self.refuse("/cwd", &refused),
        }
        self
    }

    /// One more environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let env: &mut BTreeMap<String, String> = self.request.env.get_or_insert_default();
        env.insert(name.into(), value.into());
        self
    }

    /// The session in whose directory the command runs.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.request.session_id = Some(session);
        self
    }

    /// How long the command may run. When it passes, the service ends the command and all that it started.
    #[must_use]
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.limit = deadline;
        self
    }

    fn refuse(&mut self, path: &str, refused: &Refused) {
        let refused = Refused::new(path, refused.rule().to_owned());
        self.refused.get_or_insert(refused);
    }

    fn build(mut self) -> Result<(ExecRequest, Duration), Refused> {
        let millis = u64::try_from(self.limit.get().as_millis()).unwrap_or(u64::MAX);
        match millis.try_into() {
            Ok(millis) => self.request.timeout = Some(millis),
            Err(refused) => self.refuse("/timeout", &refused),
        }
        match self.refused {
            Some(refused) => Err(refused),
            None => Ok((
                self.request,
                self.limit.get() + Duration::from_millis(limits::EXEC_GRACE_MS as u64),
            )),
        }
    }
}

impl From<&str> for Exec {
    fn from(command: &str) -> Self {
        Exec::new(command)
    }
}

impl From<String> for Exec {
    fn from(command: String) -> Self {
        Exec::new(command)
    }
}

impl<S> Sandbox<S> {
    /// Runs a shell command to its end. An exit status other than 0 is an answer, not an error.
    ///
    /// Of each output stream the first 10 MiB come back; `truncated` tells that there was more. The call is never
    /// repeated by itself.
    ///
    /// # Errors
    ///
    /// `EXEC_TIMEOUT` when the command's own limit has passed: the service has ended it. `TIMEOUT` when no answer came
    /// for 10 seconds more: what became of the command is not known. `FORBIDDEN` for a directory outside the sandbox.
    ///
    /// See the wire protocol, 14.1.
    pub fn exec(&self, command: impl Into<Exec>) -> Call<'_, ExecOutput>
    where
        S: Ready,
    {
        let command = command.into();
        let inner = self.inner().clone();
        Call::new(async move {
            let (request, limit) = command.build()?;
            // Two streams of 10 MiB, each byte escaped at worst to six.
            let answer = 2 * 6 * limits::MAX_EXEC_OUTPUT + limits::MAX_ERROR_BODY;
            let call = inner
                .call(&routes::EXEC)
                .body(&request)
                .time_limit(limit)
                .answer_limit(answer);
            Ok(inner.transport.json(call).await?)
        })
    }
}
