//! The facts of every harness, a row each (core contracts, 4; credentials, 2.3). A new pair of harness and format is a
//! change here and nowhere else.

use super::super::types::{CliAuthFormat, Harness, ReasoningEffort};
use super::EFFORTS;
use ReasoningEffort::{High, Low, Medium, None as NoEffort, Ultracode, Xhigh};

/// The facts of one harness.
pub(super) struct Row {
    /// The provider that its models must come from, if any.
    pub provider: Option<&'static str>,
    pub efforts: &'static [ReasoningEffort],
    /// What it is told for each of [`EFFORTS`].
    pub control: Control,
    pub honors_model: bool,
    pub honors_effort: bool,
    /// Whether a system prompt can replace its own, and whether it can be added.
    pub system_prompt: (bool, bool),
    pub credential_formats: &'static [CliAuthFormat],
}

type Control = [Option<&'static str>; 7];

/// A harness that heeds everything and is told nothing.
const PLAIN: Row = Row {
    provider: None,
    efforts: &EFFORTS,
    control: [None; 7],
    honors_model: true,
    honors_effort: true,
    system_prompt: (false, false),
    credential_formats: &[],
};

pub(super) const fn row(harness: Harness) -> Row {
    match harness {
        Harness::ClaudeCode => Row {
            provider: Some("anthropic"),
            efforts: &[Low, Medium, High, Xhigh, Ultracode],
            control: told(["low", "low", "low", "medium", "high", "xhigh", "max"]),
            system_prompt: (true, true),
            credential_formats: &[CliAuthFormat::Token, CliAuthFormat::Bundle],
            ..PLAIN
        },
        Harness::Codex => Row {
            provider: Some("openai"),
            control: named("none", "ultra"),
            system_prompt: (true, false),
            credential_formats: &[CliAuthFormat::Bundle],
            ..PLAIN
        },
        Harness::KimiCode => Row {
            provider: Some("moonshot"),
            efforts: &[NoEffort, High],
            control: [
                Some("--no-thinking"),
                Some("--no-thinking"),
                Some("--no-thinking"),
                None,
                Some("--thinking"),
                Some("--thinking"),
                Some("--thinking"),
            ],
            credential_formats: &[CliAuthFormat::Files],
            ..PLAIN
        },
        Harness::Opencode => Row {
            control: named("none", "ultracode"),
            system_prompt: (false, true),
            ..PLAIN
        },
        Harness::Pi => Row {
            control: named("off", "xhigh"),
            system_prompt: (true, true),
            ..PLAIN
        },
        Harness::Prime => Row {
            control: named("off", "max"),
            system_prompt: (true, true),
            ..PLAIN
        },
        Harness::Gemini => Row {
            system_prompt: (true, false),
            ..PLAIN
        },
        Harness::Nanoclaw => Row {
            efforts: &[NoEffort],
            honors_model: false,
            honors_effort: false,
            ..PLAIN
        },
        Harness::Openclaw => Row {
            honors_model: false,
            ..PLAIN
        },
        Harness::Amp => Row {
            honors_model: false,
            honors_effort: false,
            ..PLAIN
        },
        Harness::Hermes | Harness::FactoryDroids | Harness::Acp => Row {
            honors_effort: false,
            ..PLAIN
        },
        Harness::CliBase => Row {
            efforts: &[NoEffort],
            ..PLAIN
        },
        Harness::Forge | Harness::Cursor => PLAIN,
    }
}

/// A harness that has a word for every effort.
const fn told(words: [&'static str; 7]) -> Control {
    let [none, minimal, low, medium, high, xhigh, ultracode] = words;
    [
        Some(none),
        Some(minimal),
        Some(low),
        Some(medium),
        Some(high),
        Some(xhigh),
        Some(ultracode),
    ]
}

/// A harness that calls the efforts as we do, except the least and the most.
const fn named(none: &'static str, ultracode: &'static str) -> Control {
    told([none, "minimal", "low", "medium", "high", "xhigh", ultracode])
}
