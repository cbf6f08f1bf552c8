//! Whether a model fits a harness, and the nearest choice when it does not (core contracts, 4.2).

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

use super::super::types::Harness;

/// The provider of a model id: the text before its first `/`, unless the id begins with it.
///
/// ```
/// use tangle_sandbox::contract::harness::model_provider;
///
/// assert_eq!(model_provider("openai/gpt-5"), Some("openai"));
/// assert_eq!(model_provider("default"), None);
/// assert_eq!(model_provider("/x"), None);
/// ```
pub fn model_provider(model: &str) -> Option<&str> {
    let (provider, _) = model.split_once('/')?;
    (!provider.is_empty()).then_some(provider)
}

impl Harness {
    /// Whether this harness can run `model`. A model id without a provider fits any harness.
    pub fn runs(self, model: &str) -> bool {
        match (self.provider(), model_provider(model)) {
            (Some(only), Some(provider)) => only == provider,
            _ => true,
        }
    }

    /// The harness that runs the models of this provider alone; `None` where no harness does.
    pub fn preferred_for(model: &str) -> Option<Self> {
        let provider = model_provider(model)?;
        Self::ALL
            .into_iter()
            .find(|harness| harness.provider() == Some(provider))
    }

    /// This harness where it runs `model`, else the one that does: the preferred one, or `opencode`.
    pub fn snapped_to(self, model: &str) -> Self {
        if self.runs(model) {
            return self;
        }
        Self::preferred_for(model).unwrap_or(Self::Opencode)
    }

    /// `model` where this harness runs it, else the best of `candidates`.
    ///
    /// The best is the highest version among the first kind of model that any candidate is of, then the first
    /// candidate that fits at all. Where none fits, `model` itself comes back.
    ///
    /// ```
    /// use tangle_sandbox::contract::types::Harness;
    ///
    /// let offered = ["openai/gpt-5.9", "openai/gpt-5.10", "openai/gpt-5-mini"];
    /// assert_eq!(Harness::Codex.snap("anthropic/claude-x", &offered), "openai/gpt-5.10");
    /// ```
    pub fn snap<'a, T: AsRef<str>>(self, model: &'a str, candidates: &'a [T]) -> &'a str {
        if self.runs(model) {
            return model;
        }
        let ids = || candidates.iter().map(AsRef::as_ref);
        let best = kinds(self).iter().find_map(|kind| {
            // Of equal versions the first counts, which `max_by` would pass over.
            ids()
                .filter(|id| kind(id))
                .reduce(|best, id| match by_version(id, best) {
                    Ordering::Greater => id,
                    _ => best,
                })
        });
        best.or_else(|| ids().find(|id| self.runs(id)))
            .unwrap_or(model)
    }
}

/// The kinds of models that a harness is best with, the best first.
fn kinds(harness: Harness) -> &'static [fn(&str) -> bool] {
    match harness {
        Harness::ClaudeCode => &[
            |id| has_plain_version(id, "anthropic/claude-opus-"),
            |id| has_plain_version(id, "anthropic/claude-sonnet-"),
            |id| id.starts_with("anthropic/"),
        ],
        Harness::Codex => &[
            is_plain_gpt,
            |id| id.starts_with("openai/gpt"),
            |id| id.starts_with("openai/"),
        ],
        Harness::KimiCode => &[|id| id.starts_with("moonshot/")],
        _ => &[],
    }
}

/// Whether `id` is `family` and behind it one or more of digits, `.` and `-`.
fn has_plain_version(id: &str, family: &str) -> bool {
    let Some(version) = id.strip_prefix(family) else {
        return false;
    };
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b'-';
    !version.is_empty() && version.bytes().all(plain)
}

/// Whether `id` is a GPT of a whole version or a version with one point, and no variant of it.
fn is_plain_gpt(id: &str) -> bool {
    let Some(version) = id.strip_prefix("openai/gpt-") else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match version.split_once('.') {
        Some((major, minor)) => digits(major) && digits(minor),
        None => digits(version),
    }
}

/// Compares two ids as people do: runs of digits by their number, everything else letter by letter without case.
fn by_version(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.chars().peekable(), right.chars().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return Ordering::Equal,
            (Some(a), Some(b)) if a.is_ascii_digit() && b.is_ascii_digit() => {
                number(&mut left).cmp(&number(&mut right))
            }
            _ => letter(left.next()).cmp(&letter(right.next())),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes a run of digits: longer without leading zeros is larger, then digit by digit.
fn number(text: &mut Peekable<Chars<'_>>) -> (usize, String) {
    let mut digits = String::new();
    while let Some(digit) = text.next_if(char::is_ascii_digit) {
        if !(digits.is_empty() && digit == '0') {
            digits.push(digit);
        }
    }
    (digits.len(), digits)
}

/// Where a character stands: an end first, then punctuation, digits and letters.
fn letter(c: Option<char>) -> Option<(u8, char)> {
    let c = c?.to_ascii_lowercase();
    let class = match c {
        '0'..='9' => 1,
        c if c.is_alphabetic() => 2,
        _ => 0,
    };
    Some((class, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_4_2_a_harness_runs_the_models_of_its_provider_and_bare_ids() {
        assert!(!Harness::Codex.runs("anthropic/x"));
        assert!(Harness::Codex.runs("default"));
        assert!(Harness::Codex.runs("openai/a/b"));
        assert!(Harness::Codex.runs("/anthropic/x"));
        assert!(!Harness::Codex.runs("OpenAI/x"));
        assert!(Harness::Cursor.runs("anthropic/x"));
    }

    #[test]
    fn core_4_2_the_preferred_harness_is_the_inverse_of_the_lock() {
        assert_eq!(
            Harness::preferred_for("anthropic/x"),
            Some(Harness::ClaudeCode)
        );
        assert_eq!(Harness::preferred_for("zai/glm"), None);
        assert_eq!(Harness::preferred_for("openai"), None);
        assert_eq!(Harness::Codex.snapped_to("openai/x"), Harness::Codex);
        assert_eq!(Harness::Codex.snapped_to("zai/x"), Harness::Opencode);
    }

    #[test]
    fn versions_compare_as_numbers() {
        for (less, more) in [
            ("a-9", "a-10"),
            ("a-5", "a-5.1"),
            ("a-5-mini", "a-5.1"),
            ("a-4-1", "a-4-10"),
            ("a-04", "a-5"),
            ("a-18446744073709551616", "a-18446744073709551617"),
            ("a-3", "A-4"),
            ("a-1", "a-b"),
        ] {
            assert_eq!(by_version(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(by_version(more, less), Ordering::Greater, "{less} {more}");
        }
        assert_eq!(by_version("a-05", "A-5"), Ordering::Equal);
    }

    #[test]
    fn a_choice_falls_from_kind_to_kind() {
        let claude = |offered: &[&'static str]| -> &str {
            let offered: &'static [&'static str] = Vec::leak(offered.to_vec());
            Harness::ClaudeCode.snap("openai/x", offered)
        };
        assert_eq!(
            claude(&["anthropic/claude-opus-4-x", "anthropic/claude-sonnet-4.5"]),
            "anthropic/claude-sonnet-4.5"
        );
        assert_eq!(
            claude(&["anthropic/claude-opus-", "anthropic/claude-haiku-4"]),
            "anthropic/claude-opus-"
        );
        assert_eq!(claude(&["zai/glm", "default", "other"]), "default");
        assert_eq!(claude(&["zai/glm"]), "openai/x");
        assert_eq!(claude(&[]), "openai/x");
        assert_eq!(
            Harness::Codex.snap("zai/x", &["openai/gpt-5.1.2", "openai/gpt-4", "openai/o3"]),
            "openai/gpt-4"
        );
        assert_eq!(
            Harness::Codex.snap("openai/o3", &["openai/gpt-5"]),
            "openai/o3"
        );
    }
}
