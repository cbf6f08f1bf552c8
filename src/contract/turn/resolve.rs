//! Whether the parts of a turn agree, and the block that is sent (core contracts, 6 and 8.1; provider runtime, 7.1 and 7.2).

use super::Refusal;
use crate::contract::check::Refused;
use crate::contract::profile::ProfileSnapshot;
use crate::contract::retained::Target;
use crate::contract::types::{AgentProfile, BackendConfig, RunControlRef, SentBackend, TurnInput};

/// A turn whose parts agree: profile, harness, model and interactions say the same wherever they stand, and the block holds
/// every rule between its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedTurn {
    input: TurnInput,
    /// The declared block with the profile of the turn in it.
    block: Option<BackendConfig>,
}

impl TurnInput {
    /// Checks that the parts of this turn agree. Nothing is preferred where they do not.
    ///
    /// The shape has been checked before: by [`read`](super::read), or by [`verify`](crate::contract::verify) for a turn that
    /// was put together in memory.
    ///
    /// # Errors
    ///
    /// [`Refusal::Conflict`], code `conflict`, or a code of the credentials and attachments of the block.
    pub fn resolve(self) -> Result<ResolvedTurn, Refusal> {
        let declared = self
            .provider_options
            .as_ref()
            .and_then(|options| options.backend.clone());
        let block = match &self.profile {
            Some(profile) => Some(with_profile(declared.unwrap_or_default(), profile)?),
            None => declared,
        };
        if let Some(block) = &block {
            self.agrees_with(block)?;
            block.rules().map_err(|refusal| {
                let own = self.profile.is_some() && refusal.path().starts_with("/profile");
                match own {
                    true => Refusal::Profile(refusal),
                    false => refusal.into(),
                }
            })?;
        }
        Ok(ResolvedTurn { input: self, block })
    }

    fn agrees_with(&self, block: &BackendConfig) -> Result<(), Refusal> {
        let declared = block
            .model
            .as_ref()
            .and_then(|model| model.model.as_deref());
        if let (Some(model), Some(declared)) = (&self.model, declared)
            && model.as_str() != declared
        {
            return Err(Refusal::Conflict { field: "model" });
        }
        match (&self.interactions, &block.interactions) {
            (Some(turn), Some(declared)) if !turn.agrees_with(declared) => Err(Refusal::Conflict {
                field: "interactions",
            }),
            _ => Ok(()),
        }
    }
}

/// The block with the profile of the turn, which has to be the block's own where it has one, and of its harness.
fn with_profile(
    mut block: BackendConfig,
    profile: &AgentProfile,
) -> Result<BackendConfig, Refusal> {
    let at = |path: &'static str| move |refused: Refused| Refusal::Input(refused.under(path));
    if let Some(own) = &block.profile {
        let own = own.digest().map_err(Refusal::BackendProfile)?;
        let typed = ProfileSnapshot::new(profile).map_err(at("/profile"))?;
        if own != typed.digest() {
            return Err(Refusal::Conflict { field: "profile" });
        }
    }
    if let (Some(backend), Some(harness)) = (&block.type_, profile.harness)
        && backend.as_str() != harness.to_string()
    {
        return Err(Refusal::Conflict {
            field: "profile/harness",
        });
    }
    block.profile = Some(profile.clone());
    Ok(block)
}

impl ResolvedTurn {
    /// The turn as it was given.
    pub fn input(&self) -> &TurnInput {
        &self.input
    }

    /// The declared block with the profile of the turn in it; what the turn's identity is about.
    pub(super) fn block(&self) -> Option<&BackendConfig> {
        self.block.as_ref()
    }

    /// The block that is sent; none when neither block, profile nor interactions are given.
    ///
    /// The interactions of the turn are what is sent, custom kinds included, also without a declared block. Its secrets are
    /// real values: write it within [`in_body`](crate::contract::secret::in_body) only.
    pub fn backend(&self) -> Option<SentBackend> {
        let mut sent: Option<SentBackend> = self.block.clone().map(Into::into);
        if let Some(kinds) = &self.input.interactions {
            sent.get_or_insert_default().interactions = Some(kinds.clone());
        }
        sent
    }

    /// The reference of this turn, read at the target that it is sent to: it has to be exact, to name the target, and to agree
    /// with the session and the execution of the turn.
    ///
    /// # Errors
    ///
    /// `reference-other-target`, `conflict`, or `VALIDATION_ERROR` for a reference that is not exact.
    pub fn reference(&self, target: &Target) -> Result<Option<RunControlRef>, Refusal> {
        let Some(loose) = &self.input.control_ref else {
            return Ok(None);
        };
        let exact = RunControlRef::try_from(loose.clone())
            .map_err(crate::contract::retained::Refusal::from)?;
        target.check(&exact)?;
        let (session, execution) = (&self.input.session_id, &self.input.execution_id);
        if session
            .as_ref()
            .is_some_and(|given| *given != exact.session_id)
        {
            return Err(Refusal::Conflict { field: "sessionId" });
        }
        if execution
            .as_ref()
            .is_some_and(|given| *given != exact.execution_id)
        {
            return Err(Refusal::Conflict {
                field: "executionId",
            });
        }
        Ok(Some(exact))
    }
}

#[cfg(test)]
mod tests;
