//! References of runs (provider runtime, 7.3 and 8.1).

use serde_json::{Value, json};

use crate::contract::check::Refused;
use crate::contract::digest::Digest;
use crate::contract::from_value;
use crate::contract::types::{
    ExecutionId, Identifier, LooseRunRef, RequestDigest, RunControlRef, RunId, SessionId, TurnId,
};

use super::Refusal;

/// What is known of a run whose exact reference is minted.
#[derive(Debug, Clone)]
pub struct NewRef {
    /// The provider.
    pub provider: Identifier,
    /// The environment.
    pub environment_id: Identifier,
    /// The session.
    pub session_id: SessionId,
    /// The execution.
    pub execution_id: ExecutionId,
    /// The run; its execution when none is given.
    pub run_id: Option<RunId>,
    /// Digest of the admitted request; without one, that of the place and the ids.
    pub request_digest: Option<RequestDigest>,
}

/// Mints the exact reference of a run (provider runtime, 8.1).
///
/// # Errors
///
/// None in practice: an execution id has the bounds of a run id.
pub fn mint_ref(new: NewRef) -> Result<RunControlRef, Refused> {
    let run_id = match new.run_id {
        Some(run) => run,
        None => RunId::new(new.execution_id.as_str())?,
    };
    let request_digest = new.request_digest.unwrap_or_else(|| {
        RequestDigest::of(&json!({
            "provider": new.provider,
            "environmentId": new.environment_id,
            "sessionId": new.session_id,
            "executionId": new.execution_id,
        }))
    });
    Ok(RunControlRef {
        run_id,
        provider: new.provider,
        environment_id: new.environment_id,
        session_id: new.session_id,
        execution_id: new.execution_id,
        request_digest,
    })
}

/// The session of a dispatched turn that names none: `session-` and the 64 hexadecimal digits of a digest of provider,
/// environment and turn (provider runtime, 7.3).
///
/// # Errors
///
/// None in practice: the text has the bounds of a session id.
pub fn session_id(
    provider: &Identifier,
    environment: &Identifier,
    turn: &TurnId,
) -> Result<SessionId, Refused> {
    let place = format!("{provider}\0{environment}\0{turn}");
    SessionId::new(format!(
        "session-{}",
        Digest::of_bytes(place.as_bytes()).hex()
    ))
}

/// Whether two references name one run: all fields are equal, the present and the absent ones (core contracts, 2).
pub fn same_run(left: &LooseRunRef, right: &LooseRunRef) -> bool {
    left == right
}

impl From<RunControlRef> for LooseRunRef {
    fn from(exact: RunControlRef) -> Self {
        LooseRunRef {
            run_id: exact.run_id,
            provider: exact.provider,
            environment_id: exact.environment_id,
            session_id: Some(exact.session_id),
            execution_id: Some(exact.execution_id),
            request_digest: Some(exact.request_digest),
        }
    }
}

impl TryFrom<LooseRunRef> for RunControlRef {
    type Error = Refused;

    /// The exact reference, when all six fields are known.
    fn try_from(loose: LooseRunRef) -> Result<Self, Refused> {
        let missing = |path: &'static str| Refused::new(path, "is missing");
        Ok(RunControlRef {
            run_id: loose.run_id,
            provider: loose.provider,
            environment_id: loose.environment_id,
            session_id: loose.session_id.ok_or_else(|| missing("/sessionId"))?,
            execution_id: loose.execution_id.ok_or_else(|| missing("/executionId"))?,
            request_digest: loose
                .request_digest
                .ok_or_else(|| missing("/requestDigest"))?,
        })
    }
}

/// Where a reference is used: the fields that it has to agree with. The run id is the platform's own and never compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The provider.
    pub provider: Identifier,
    /// The environment.
    pub environment_id: Identifier,
    /// The session, when one is bound.
    pub session_id: Option<SessionId>,
    /// The execution, when one is bound.
    pub execution_id: Option<ExecutionId>,
    /// The digest of the request, when one is known.
    pub request_digest: Option<RequestDigest>,
}

impl Target {
    /// Reads a reference that a caller gives: it has to be exact and to name this target.
    ///
    /// # Errors
    ///
    /// [`Refusal::Document`] for a reference that is not exact, `reference-other-target` for one of elsewhere.
    pub fn read(&self, candidate: &Value) -> Result<RunControlRef, Refusal> {
        let reference: RunControlRef = from_value(candidate.clone())?;
        self.check(&reference)?;
        Ok(reference)
    }

    /// Checks that a reference names this target.
    ///
    /// # Errors
    ///
    /// `reference-other-target` with the first field that differs.
    pub fn check(&self, reference: &RunControlRef) -> Result<(), Refusal> {
        match self.difference(reference) {
            None => Ok(()),
            Some(field) => Err(Refusal::ReferenceOtherTarget { field }),
        }
    }

    /// The first field in which a reference differs from this target.
    pub fn difference(&self, reference: &RunControlRef) -> Option<&'static str> {
        fn other<T: PartialEq>(bound: Option<&T>, named: &T) -> bool {
            bound.is_some_and(|bound| bound != named)
        }
        let fields = [
            (self.provider != reference.provider, "provider"),
            (
                self.environment_id != reference.environment_id,
                "environmentId",
            ),
            (
                other(self.session_id.as_ref(), &reference.session_id),
                "sessionId",
            ),
            (
                other(self.execution_id.as_ref(), &reference.execution_id),
                "executionId",
            ),
            (
                other(self.request_digest.as_ref(), &reference.request_digest),
                "requestDigest",
            ),
        ];
        fields
            .into_iter()
            .find_map(|(differs, field)| differs.then_some(field))
    }
}

impl From<&RunControlRef> for Target {
    /// The target that only this run is; its run id stays open.
    fn from(run: &RunControlRef) -> Self {
        Target {
            provider: run.provider.clone(),
            environment_id: run.environment_id.clone(),
            session_id: Some(run.session_id.clone()),
            execution_id: Some(run.execution_id.clone()),
            request_digest: Some(run.request_digest),
        }
    }
}
