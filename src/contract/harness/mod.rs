//! The harnesses: which models, efforts, system prompts and native logins each takes (core contracts, 4).
//!
//! * `table`: the one row of facts of each harness.
//! * `models`: whether a model fits, and what to choose when it does not.

mod models;
mod table;

use super::types::{
    CliAuthFormat, HarnessFacts, ModelReasoning, NativeControl, SystemPromptSupport,
};

pub use super::types::{Harness, ReasoningEffort};
pub use models::model_provider;
use table::row;

/// Every effort, the least first.
pub const EFFORTS: [ReasoningEffort; 7] = [
    ReasoningEffort::None,
    ReasoningEffort::Minimal,
    ReasoningEffort::Low,
    ReasoningEffort::Medium,
    ReasoningEffort::High,
    ReasoningEffort::Xhigh,
    ReasoningEffort::Ultracode,
];

impl Harness {
    /// Every harness, in the order of the schema.
    pub const ALL: [Self; 16] = [
        Self::ClaudeCode,
        Self::Nanoclaw,
        Self::Codex,
        Self::Opencode,
        Self::KimiCode,
        Self::Pi,
        Self::Prime,
        Self::Gemini,
        Self::Hermes,
        Self::Openclaw,
        Self::Amp,
        Self::FactoryDroids,
        Self::Forge,
        Self::Cursor,
        Self::Acp,
        Self::CliBase,
    ];

    /// All facts of this harness in one document.
    pub fn facts(self) -> HarnessFacts {
        let told = |effort| self.native_control(effort).map(str::to_owned);
        HarnessFacts {
            harness: self,
            providers: self.provider().map(|provider| vec![provider.to_owned()]),
            efforts: self.efforts().to_vec(),
            native_control: NativeControl {
                none: told(ReasoningEffort::None),
                minimal: told(ReasoningEffort::Minimal),
                low: told(ReasoningEffort::Low),
                medium: told(ReasoningEffort::Medium),
                high: told(ReasoningEffort::High),
                xhigh: told(ReasoningEffort::Xhigh),
                ultracode: told(ReasoningEffort::Ultracode),
            },
            honors_model: self.honors_model(),
            honors_effort: self.honors_effort(),
            system_prompt: self.system_prompt(),
            credential_formats: self.credential_formats().to_vec(),
        }
    }

    /// The only provider whose models this harness runs; `None` where it runs the models of any.
    pub fn provider(self) -> Option<&'static str> {
        row(self).provider
    }

    /// The efforts that this harness can express, the least first (core contracts, 4.3).
    pub fn efforts(self) -> &'static [ReasoningEffort] {
        row(self).efforts
    }

    /// The efforts of this harness that `model` allows: `none` alone where it does not reason at all, else those up to
    /// its own most.
    ///
    /// ```
    /// use tangle_sandbox::contract::types::{Harness, ModelReasoning, ReasoningEffort};
    ///
    /// let model = ModelReasoning { max_effort: Some(ReasoningEffort::Medium), ..Default::default() };
    /// assert_eq!(
    ///     Harness::ClaudeCode.efforts_for(&model),
    ///     [ReasoningEffort::Low, ReasoningEffort::Medium],
    /// );
    /// ```
    pub fn efforts_for(self, model: &ModelReasoning) -> Vec<ReasoningEffort> {
        if model.supports_reasoning == Some(false) {
            return vec![ReasoningEffort::None];
        }
        let most = model.max_effort.unwrap_or(ReasoningEffort::Ultracode);
        let efforts = self.efforts().iter().copied();
        efforts.filter(|effort| *effort <= most).collect()
    }

    /// What this harness is told for `effort`, as it spells it; `None` where it is told nothing (core contracts, 4.3).
    pub fn native_control(self, effort: ReasoningEffort) -> Option<&'static str> {
        let at = EFFORTS.iter().position(|each| *each == effort)?;
        row(self).control.get(at).copied().flatten()
    }

    /// Whether this harness heeds a model that one turn names.
    pub fn honors_model(self) -> bool {
        row(self).honors_model
    }

    /// Whether this harness heeds an effort that one turn names.
    pub fn honors_effort(self) -> bool {
        row(self).honors_effort
    }

    /// Which system prompts this harness carries out when they are forwarded to it. A harness that is not known
    /// carries out neither (core contracts, 4.4).
    pub fn system_prompt(self) -> SystemPromptSupport {
        let (replace, append) = row(self).system_prompt;
        SystemPromptSupport { replace, append }
    }

    /// The formats of a native login that this harness takes (credentials, 2.3).
    pub fn credential_formats(self) -> &'static [CliAuthFormat] {
        row(self).credential_formats
    }

    /// Whether this harness takes a native login of `format`; a pair that the table does not hold is refused.
    pub fn takes(self, format: CliAuthFormat) -> bool {
        self.credential_formats().contains(&format)
    }

    /// Whether a native login of `format` can be handed to this harness anew with each turn: only a token of
    /// `claude-code` can (core contracts, 4.5).
    pub fn takes_each_turn(self, format: CliAuthFormat) -> bool {
        self == Self::ClaudeCode && format == CliAuthFormat::Token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_4_1_old_names_of_harnesses_are_refused() {
        for name in ["claude", "claudish", "kimi", "Codex", "", "codex "] {
            assert!(name.parse::<Harness>().is_err(), "{name:?}");
        }
        for harness in Harness::ALL {
            assert_eq!(harness.to_string().parse::<Harness>().unwrap(), harness);
        }
    }

    #[test]
    fn efforts_are_ordered_and_unique() {
        assert!(EFFORTS.is_sorted_by(|less, more| less < more));
        for harness in Harness::ALL {
            assert!(harness.efforts().is_sorted_by(|less, more| less < more));
        }
    }

    #[test]
    fn core_4_4_opencode_refuses_a_system_prompt_that_replaces() {
        let both = |harness: Harness| {
            let SystemPromptSupport { replace, append } = harness.system_prompt();
            (replace, append)
        };
        assert_eq!(both(Harness::Opencode), (false, true));
        assert_eq!(both(Harness::Codex), (true, false));
        assert_eq!(both(Harness::Pi), (true, true));
        assert_eq!(both(Harness::Acp), (false, false));
    }

    #[test]
    fn core_4_5_codex_takes_no_token() {
        use CliAuthFormat::{Bundle, Files, Token};
        for (harness, formats) in [
            (Harness::ClaudeCode, &[Token, Bundle] as &[_]),
            (Harness::Codex, &[Bundle]),
            (Harness::KimiCode, &[Files]),
        ] {
            assert_eq!(harness.credential_formats(), formats);
            for format in [Token, Bundle, Files] {
                assert_eq!(harness.takes(format), formats.contains(&format));
            }
        }
        let takers = Harness::ALL
            .iter()
            .filter(|it| !it.credential_formats().is_empty());
        assert_eq!(takers.count(), 3);
        assert!(Harness::ClaudeCode.takes_each_turn(Token));
        assert!(!Harness::ClaudeCode.takes_each_turn(Bundle));
        assert!(!Harness::Codex.takes_each_turn(Token));
    }

    #[test]
    fn core_4_3_a_model_that_does_not_reason_leaves_no_effort() {
        let mut model = ModelReasoning {
            supports_reasoning: Some(false),
            ..Default::default()
        };
        assert_eq!(
            Harness::ClaudeCode.efforts_for(&model),
            [ReasoningEffort::None]
        );
        model.supports_reasoning = Some(true);
        assert_eq!(Harness::ClaudeCode.efforts_for(&model).len(), 5);
        model.max_effort = Some(ReasoningEffort::None);
        assert_eq!(Harness::ClaudeCode.efforts_for(&model), []);
        assert_eq!(
            Harness::KimiCode.efforts_for(&model),
            [ReasoningEffort::None]
        );
    }

    #[test]
    fn the_facts_of_a_harness_are_a_document() {
        for harness in Harness::ALL {
            crate::contract::verify(&harness.facts()).unwrap();
        }
        let facts = Harness::KimiCode.facts();
        assert_eq!(facts.native_control.low.as_deref(), Some("--no-thinking"));
        assert_eq!(facts.native_control.medium, None);
        assert_eq!(facts.providers, Some(vec!["moonshot".to_owned()]));
        assert_eq!(Harness::Opencode.facts().providers, None);
    }
}
