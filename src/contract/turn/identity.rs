//! The identity of a turn: what is hashed, and the ids that follow (provider runtime, 7.3).

use serde_json::{Map, Value, json};

use super::{Refusal, ResolvedTurn};
use crate::contract::check::Refused;
use crate::contract::retained::{NewRef, mint_ref};
use crate::contract::types::{
    ExecutionId, Identifier, RequestDigest, RunControlRef, SessionId, TurnDigest,
};

/// Where a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The provider.
    pub provider: Identifier,
    /// The environment.
    pub environment_id: Identifier,
    /// The session.
    pub session_id: SessionId,
    /// A random text that makes this turn one of its own: only for a prompt of a session that has neither a turn id, an
    /// execution id nor a reference, and replays nothing.
    pub nonce: Option<String>,
}

impl ResolvedTurn {
    /// What identifies this turn at `place`, without its secrets. A member that was not given is absent; `detach: false` and
    /// an empty prompt are given.
    ///
    /// Not part of it are the reference, the cursor, and the session and execution that the turn names besides: the session
    /// is that of the place, the execution follows, or is given here.
    pub fn material(&self, place: &Place, execution: Option<&ExecutionId>) -> Value {
        let turn = self.input();
        let members = [
            ("provider", Some(json!(place.provider))),
            ("environmentId", Some(json!(place.environment_id))),
            ("sessionId", Some(json!(place.session_id))),
            ("executionId", execution.map(|id| json!(id))),
            ("nonce", place.nonce.as_ref().map(|nonce| json!(nonce))),
            ("turnId", turn.turn_id.as_ref().map(|id| json!(id))),
            ("prompt", turn.prompt.as_ref().map(|prompt| json!(prompt))),
            ("parts", turn.parts.as_ref().map(|parts| json!(parts))),
            ("model", turn.model.as_ref().map(|model| json!(model))),
            ("timeoutMs", turn.timeout_ms.map(|limit| json!(limit))),
            ("detach", turn.detach.map(Value::Bool)),
            ("context", turn.context.clone().map(Value::Object)),
            (
                "interactions",
                turn.interactions.as_ref().map(|kinds| json!(kinds)),
            ),
            ("backend", self.block().map(|block| block.identity())),
        ];
        let given = members
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect::<Map<_, _>>())
    }

    /// The digest of this turn before its execution is known.
    pub fn digest(&self, place: &Place) -> TurnDigest {
        TurnDigest::of(&self.material(place, None))
    }

    /// The execution of this turn: the given one, else the one that follows from the turn.
    ///
    /// # Errors
    ///
    /// None in practice: the derived text has the bounds of an execution id.
    pub fn execution_id(
        &self,
        place: &Place,
        given: Option<&ExecutionId>,
    ) -> Result<ExecutionId, Refused> {
        match given {
            Some(execution) => Ok(execution.clone()),
            None => ExecutionId::new(format!("session-turn-{}", self.digest(place).hex())),
        }
    }

    /// The digest of this turn with its execution; it goes into references.
    pub fn request_digest(&self, place: &Place, execution: &ExecutionId) -> RequestDigest {
        RequestDigest::of(&self.material(place, Some(execution)))
    }

    /// The exact reference under which this turn is sent: the execution of the turn, else of `given`, else the one that
    /// follows from the turn.
    ///
    /// # Errors
    ///
    /// `conflict` where `given` carries another digest: the turn has changed since the reference was minted.
    /// `native-continuation-unsupported` for a turn that resumes a native session, which nobody would be told.
    pub fn mint(
        &self,
        place: &Place,
        given: Option<&RunControlRef>,
    ) -> Result<RunControlRef, Refusal> {
        if self.input().native_resume.is_some() {
            return Err(Refusal::NativeContinuationUnsupported);
        }
        let named = self
            .input()
            .execution_id
            .as_ref()
            .or(given.map(|given| &given.execution_id));
        let execution = self.execution_id(place, named).map_err(Refusal::Input)?;
        let digest = self.request_digest(place, &execution);
        if given.is_some_and(|given| given.request_digest != digest) {
            return Err(Refusal::Conflict {
                field: "controlRef",
            });
        }
        let new = NewRef {
            provider: place.provider.clone(),
            environment_id: place.environment_id.clone(),
            session_id: place.session_id.clone(),
            execution_id: execution,
            run_id: given.map(|given| given.run_id.clone()),
            request_digest: Some(digest),
        };
        mint_ref(new).map_err(Refusal::Input)
    }
}

#[cfg(test)]
mod tests;
