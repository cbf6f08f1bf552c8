//! One turn of an environment.

use serde_json::{Map, Value};

use crate::contract::check::Refused;
use crate::contract::types::{
    BackendConfig, PromptText, RequestedInteractions, SessionId, TurnId, TurnInput, TurnOptions,
};
use crate::contract::verify;
use crate::sandbox::Deadline;

/// One turn for the agent of an environment.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub(crate) prompt: String,
    pub(crate) session: Option<SessionId>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) model: Option<String>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) context: Option<Map<String, Value>>,
    pub(crate) interactions: Option<RequestedInteractions>,
    pub(crate) backend: Option<BackendConfig>,
}

impl Turn {
    /// A turn with this text.
    pub fn new(prompt: impl Into<String>) -> Self {
        Turn {
            prompt: prompt.into(),
            ..Turn::default()
        }
    }

    /// The session whose conversation goes on; without one, a dispatched turn begins the session that its turn id names.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    /// The key of this turn: a repeat of the same turn runs nothing, a changed one under the same key is refused.
    #[must_use]
    pub fn turn(mut self, turn: TurnId) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The model of this turn.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How long a caller waits for this turn. A dispatched turn goes on when it passes.
    #[must_use]
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// One fact of the caller's own; part of the turn's identity.
    #[must_use]
    pub fn context(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.context
            .get_or_insert_default()
            .insert(key.to_owned(), value.into());
        self
    }

    /// Which asks of the agent the caller answers.
    #[must_use]
    pub fn interactions(mut self, interactions: RequestedInteractions) -> Self {
        self.interactions = Some(interactions);
        self
    }

    /// The backend of this turn.
    #[must_use]
    pub fn backend(mut self, backend: BackendConfig) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The same turn in the terms of the contract, checked.
    pub(crate) fn into_input(self) -> Result<TurnInput, Refused> {
        let prompt = PromptText::new(self.prompt);
        let model = self.model.map(|model| model.parse());
        let timeout = self
            .deadline
            .map(|deadline| u64::try_from(deadline.get().as_millis()).unwrap_or(u64::MAX))
            .map(TryInto::try_into);
        let input = TurnInput {
            prompt: Some(prompt.map_err(|refused| refused.under("/prompt"))?),
            session_id: self.session,
            turn_id: self.turn,
            model: model.transpose().map_err(at("/model"))?,
            timeout_ms: timeout.transpose().map_err(at("/timeoutMs"))?,
            context: self.context,
            interactions: self.interactions,
            provider_options: self.backend.map(|backend| TurnOptions {
                backend: Some(backend),
            }),
            ..TurnInput::default()
        };
        verify(&input)?;
        Ok(input)
    }
}

fn at(path: &'static str) -> impl Fn(Refused) -> Refused {
    move |refused| refused.under(path)
}

impl From<&str> for Turn {
    fn from(prompt: &str) -> Self {
        Turn::new(prompt)
    }
}

impl From<String> for Turn {
    fn from(prompt: String) -> Self {
        Turn::new(prompt)
    }
}
