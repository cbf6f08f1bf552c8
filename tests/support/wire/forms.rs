//! Values that differ from run to run. Each is replaced by a placeholder only after its form was asserted, so that a
//! change of form still fails.

use std::sync::LazyLock;

use regress::Regex;

/// A digest that the tests give themselves, and which therefore stays as it is.
pub const GIVEN_DIGEST: &str =
    "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Where a value stands (the first group), the form that it must have, what is written instead.
struct Rule {
    place: Regex,
    form: Regex,
    placeholder: &'static str,
}

fn regex(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |place: &str, form: &str, placeholder| Rule {
        place: regex(place),
        form: regex(&format!("^(?:{form})$")),
        placeholder,
    };
    let member = |names: &str, form: &str, placeholder| {
        let place = format!(r#""(?:{names})":("(?:[^"\\]|\\.)*"|(?!null)[^,}}\]]+)"#);
        rule(&place, form, placeholder)
    };
    vec![
        member(
            "at|createdAt|startedAt|lastActivityAt|expiresAt|completedAt|updatedAt|lastEventAt|timestamp|modTime|accessTime",
            r#""\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z""#,
            "[time]",
        ),
        member("durationMs", r"\d+", "[ms]"),
        member("duration", r"\d+(?:\.\d+)?", "[ms]"),
        member("uptime", r"\d+(?:\.\d+)?", "[s]"),
        member("rssBytes|pid", r"[1-9]\d*", "[count]"),
        member(
            "filesystemIncarnationId",
            r#""fsi_[a-z2-7]{26}""#,
            "[incarnation]",
        ),
        member("owner|group", r#""\d+""#, "[account]"),
        rule(
            r#""(?:requestDigest|existingRequestDigest)":("(?!sha256:a{64}")[^"]*")"#,
            r#""sha256:[0-9a-f]{64}""#,
            "[digest]",
        ),
        // What a folder itself occupies, and its mode after the user's mask, are the machine's own affair.
        rule(r#""isDir":true[^{}]*"size":(\d+)"#, r"\d+", "[size]"),
        rule(r#""isDir":true[^{}]*"permissions":(\d+)"#, r"\d+", "[mode]"),
        rule(
            r#""operationId":("cancel-[^"]*")"#,
            r#""cancel-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}""#,
            "[operation]",
        ),
        // The number of the agent's process group stands in the ids of parts.
        rule(r"prt_(\d+)_\d+_\d+", r"[1-9]\d*", "[group]"),
    ]
});

/// What must be left in no snapshot, whatever the rules missed.
static LEFT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?:sbx|fsi|req|exe|ses|tsk)_[0-9a-z]{26}",
        r"127\.0\.0\.1",
        r"\d{4}-\d\d-\d\dT\d\d:",
        r"sha256:(?!a{64})[0-9a-f]{64}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-",
    ]
    .map(regex)
    .into()
});

/// The values of one deployment.
#[derive(Debug, Default)]
pub struct Forms {
    known: Vec<(String, String)>,
    secrets: Vec<String>,
}

impl Forms {
    /// From here on `value` is written as `[placeholder]`; its form is asserted first.
    pub fn learn(&mut self, placeholder: &str, value: &str, form: &str) {
        let fits = regex(&format!("^(?:{form})$")).find(value).is_some();
        assert!(fits, "[{placeholder}] has another form: {value}");
        self.known
            .push((value.to_owned(), format!("[{placeholder}]")));
        // A value that holds another one is replaced first.
        self.known
            .sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    }

    /// What must never be written.
    pub fn hide(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    /// The header `authorization`, when its credential is one of the tests'.
    pub fn bearer(&self, value: &str) -> &'static str {
        let token = value.strip_prefix("Bearer ").expect("a bearer credential");
        assert!(
            self.secrets.iter().any(|secret| secret == token),
            "an unknown credential"
        );
        "Bearer [bearer]"
    }

    /// The text with placeholders. `quoted` keeps JSON valid where a placeholder stands for a number.
    pub fn apply(&self, text: &str, quoted: bool) -> String {
        let mut text = text.to_owned();
        for (value, placeholder) in &self.known {
            text = text.replace(value, placeholder);
        }
        for rule in RULES.iter() {
            text = rule.apply(&text, quoted);
        }
        text
    }

    /// Fails when a snapshot holds a secret or a value of this run.
    pub fn check(&self, name: &str, text: &str) {
        for secret in &self.secrets {
            assert!(!text.contains(secret), "{name}: a secret would be written");
        }
        for left in LEFT.iter() {
            if let Some(found) = left.find(text) {
                panic!(
                    "{name}: a value of this run is left: {}",
                    &text[found.range()]
                );
            }
        }
    }
}

impl Rule {
    fn apply(&self, text: &str, quoted: bool) -> String {
        let (mut changed, mut from) = (String::with_capacity(text.len()), 0);
        for found in self.place.find_iter(text) {
            let range = found.group(1).expect("a place has one group");
            let value = &text[range.clone()];
            assert!(
                self.form.find(value).is_some(),
                "{} has another form: {value} in {}",
                self.placeholder,
                &text[found.range()]
            );
            let quote = value.starts_with('"') || (quoted && self.placeholder != "[group]");
            changed.push_str(&text[from..range.start]);
            changed.push_str(if quote { "\"" } else { "" });
            changed.push_str(self.placeholder);
            changed.push_str(if quote { "\"" } else { "" });
            from = range.end;
        }
        changed.push_str(&text[from..]);
        changed
    }
}
