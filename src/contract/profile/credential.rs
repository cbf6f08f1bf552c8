//! What looks like a credential, by value and by name (core contracts, 3.7). Defence in depth over a few fields: prompts,
//! files and metadata are not searched.

use url::Url;

use super::super::text;

/// Words that make a name that of a credential; the parts of one may be joined by `_`, `-` or nothing.
const WORDS: [&[&str]; 13] = [
    &["api", "key"],
    &["access", "key"],
    &["private", "key"],
    &["token"],
    &["secret"],
    &["password"],
    &["credential"],
    &["credentials"],
    &["authorization"],
    &["cookie"],
    &["database", "url"],
    &["dsn"],
    &["pat"],
];

/// Whether `value` looks like a credential: a well-known spelling anywhere in it, or a URL with a user name, a password or a
/// query key that names a credential.
///
/// ```
/// use tangle_sandbox::contract::profile::looks_like_credential;
///
/// assert!(looks_like_credential("Bearer abc"));
/// assert!(looks_like_credential("postgres://user:word@host/db"));
/// assert!(!looks_like_credential("--port=80"));
/// ```
pub fn looks_like_credential(value: &str) -> bool {
    // Without a colon there is no scheme, and with that no URL.
    has_known_spelling(value)
        || (value.contains(':') && Url::parse(value).is_ok_and(|url| carries_credential(&url)))
}

/// Whether `name` names a credential, such as `API_KEY` or `x-token`; `TOKENS` and `KEY` do not.
pub fn names_credential(name: &str) -> bool {
    let name = name.as_bytes();
    (0..name.len())
        .filter(|&at| at == 0 || is_joint(name[at - 1]))
        .any(|at| WORDS.iter().any(|parts| is_word_there(&name[at..], parts)))
}

/// Whether `text` begins with the word of these parts, and the word ends there.
fn is_word_there(mut text: &[u8], parts: &[&str]) -> bool {
    for (index, part) in parts.iter().enumerate() {
        if index > 0
            && let [joint, rest @ ..] = text
            && is_joint(*joint)
        {
            text = rest;
        }
        match text.split_at_checked(part.len()) {
            Some((word, rest)) if word.eq_ignore_ascii_case(part.as_bytes()) => text = rest,
            _ => return false,
        }
    }
    text.first().is_none_or(|&byte| is_joint(byte))
}

fn is_joint(byte: u8) -> bool {
    byte == b'_' || byte == b'-'
}

/// Each spelling is found in one pass: a start costs the run behind it, and no run has more than a few starts.
fn has_known_spelling(value: &str) -> bool {
    let bytes = value.as_bytes();
    let starts_word = |at: usize| is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1]));
    (0..bytes.len()).any(|at| starts_word(at) && is_token(&bytes[at..]))
        || find("Bearer x", "Bearer", value).any(|(at, word)| {
            let rest = &value[at + word.len()..];
            starts_word(at)
                && rest.starts_with(text::is_white_space)
                && !text::trim(rest).is_empty()
        })
        || find("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", value).any(|(at, word)| {
            let rest = &bytes[at + word.len()..];
            let (kind, rest) =
                rest.split_at(run(rest, |byte| byte.is_ascii_uppercase() || byte == b' '));
            kind.ends_with(b"PRIVATE KEY") && rest.starts_with(b"-----")
        })
}

/// Where `word` stands in `text`; not looked for in a text that is shorter than the shortest spelling with it.
fn find<'t>(
    shortest: &str,
    word: &'static str,
    text: &'t str,
) -> impl Iterator<Item = (usize, &'t str)> {
    let text = Some(text).filter(|text| text.len() >= shortest.len());
    text.into_iter()
        .flat_map(move |text| text.match_indices(word))
}

/// Whether `text`, which begins with a word, begins with a key of a model provider, of GitHub or of AWS.
fn is_token(text: &[u8]) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    // A run that must end its word, and the fewest characters that it has.
    let ends_word = |rest: &[u8], length: usize| {
        length >= 12 && rest.get(length).is_none_or(|&byte| !is_word(byte))
    };
    match text {
        [b's', b'k', b'-' | b'_', rest @ ..] => {
            let length = run(rest, |byte| alphanumeric(byte) || is_joint(byte));
            let at = |index: usize| rest.get(index).is_some_and(|&byte| is_word(byte));
            (10..=length).any(|end| at(end - 1) != at(end))
        }
        [
            b'g',
            b'h',
            b'p' | b'o' | b'u' | b's' | b'r',
            b'_',
            rest @ ..,
        ] => ends_word(rest, run(rest, alphanumeric)),
        [b'A', b'K', b'I', b'A', rest @ ..] => ends_word(rest, run(rest, upper)),
        text => text
            .strip_prefix(b"github_pat_")
            .is_some_and(|rest| ends_word(rest, run(rest, is_word))),
    }
}

/// How many bytes `text` begins with that are of a kind.
fn run(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter()
        .position(|&byte| !is(byte))
        .unwrap_or(text.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn carries_credential(url: &Url) -> bool {
    !url.username().is_empty()
        || url.password().is_some_and(|password| !password.is_empty())
        || url.query_pairs().any(|(key, _)| names_credential(&key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regress::Regex;
    use std::sync::LazyLock;

    #[test]
    fn core_3_7_well_known_spellings_are_found() {
        for tail in [
            ["sk", "-abcdefghij"],
            ["a sk", "_abc-defghij"],
            ["gho", "_ABCDEFabcdef"],
            ["github", "_pat_abc_defghijk"],
            ["x AKIA", "ABCD12345678"],
            ["-----BEGIN ", "PRIVATE KEY-----"],
            ["-----BEGIN EC ", "PRIVATE KEY-----\nx"],
            ["Bearer", "\u{FEFF}\n x"],
            ["https://u", "@h.example"],
            ["postgres://:p", "@h/db"],
            ["https://h/?a=1&API", "-KEY=2"],
            ["https://h/?x%5F", "token"],
            ["mailto:a@h?", "token=1"],
        ] {
            assert!(looks_like_credential(&tail.concat()), "{tail:?}");
        }
        for harmless in [
            "",
            "sk-abcdefghi",
            "task-abcdefghijk",
            "ghx_ABCDEFabcdef",
            "ghp_ABCDEFabcdef_",
            "akiaABCD12345678",
            "Bearer",
            "Bearer ",
            "bearer x",
            "xBearer x",
            "-----BEGIN PUBLIC KEY-----",
            "https://h.example/?tokens=1#token",
            "https://:@h.example",
            "see https://u:p@h.example",
        ] {
            assert!(!looks_like_credential(harmless), "{harmless:?}");
        }
    }

    #[test]
    fn core_3_7_a_name_is_matched_by_whole_words_without_case() {
        for name in [
            "token",
            "API_KEY",
            "apikey",
            "x-api-key",
            "Access-Key",
            "MY_PRIVATEKEY_2",
            "Authorization",
            "CREDENTIAL",
            "credentials",
            "set-cookie",
            "DATABASE_URL",
            "databaseurl",
            "dsn",
            "GH_PAT",
            "pat-",
        ] {
            assert!(names_credential(name), "{name}");
        }
        for name in [
            "",
            "TOKENS",
            "MYTOKEN",
            "KEY",
            "APIKEYS",
            "PATH",
            "to\u{212A}en",
            "pa\u{17F}\u{17F}word",
            "a.token",
        ] {
            assert!(!names_credential(name), "{name}");
        }
    }

    #[test]
    fn a_long_value_is_searched_in_linear_time() {
        for part in [
            "sk-",
            "-----BEGIN ",
            "Bearer ",
            "sk------------ ",
            "ghp_aaaaaaaaaaaaa_",
            "a",
        ] {
            let _ = looks_like_credential(&part.repeat(1 << 18));
        }
        let _ = looks_like_credential(&format!("Bearer{}", " ".repeat(1 << 20)));
        let _ = looks_like_credential(&format!("-----BEGIN {}", "A".repeat(1 << 20)));
        let _ = names_credential(&"api_".repeat(1 << 18));
    }

    /// The patterns as the contract gives them; slow, and therefore only an oracle.
    const VALUE: &str = r"\bsk[-_][-_A-Za-z0-9]{10,}\b|\bgh[pousr]_[A-Za-z0-9]{12,}\b|\bgithub_pat_[A-Za-z0-9_]{12,}\b|\bAKIA[A-Z0-9]{12,}\b|-----BEGIN [A-Z ]*PRIVATE KEY-----|\bBearer\s+\S+";
    const NAME: &str = r"(?:^|[_-])(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|password|credentials?|authorization|cookie|database[_-]?url|dsn|pat)(?:[_-]|$)";

    static VALUES: LazyLock<Regex> = LazyLock::new(|| Regex::new(VALUE).unwrap());
    static NAMES: LazyLock<Regex> = LazyLock::new(|| Regex::with_flags(NAME, "i").unwrap());

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn spellings_agree_with_the_pattern(
            pieces in proptest::collection::vec(prop_oneof![
                Just("sk-"), Just("sk_"), Just("ghp_"), Just("gh"), Just("github_pat_"), Just("AKIA"), Just("Bearer"),
                Just(" "), Just("\u{FEFF}"), Just("-----BEGIN "), Just("PRIVATE KEY"), Just("-----"), Just("RSA "),
                Just("abcdefghijkl"), Just("ABCDEFGHIJ12"), Just("a1"), Just("Z"), Just("_"), Just("-"), Just("é"), Just("\n"),
            ], 0..9)
        ) {
            let value = pieces.concat();
            prop_assert_eq!(has_known_spelling(&value), VALUES.find(&value).is_some(), "{}", value);
        }

        #[test]
        fn names_agree_with_the_pattern(
            pieces in proptest::collection::vec(prop_oneof![
                Just("api"), Just("KEY"), Just("access"), Just("private"), Just("Token"), Just("secret"), Just("password"),
                Just("credential"), Just("s"), Just("database"), Just("url"), Just("dsn"), Just("pat"), Just("x"),
                Just("_"), Just("-"), Just("."),
            ], 0..7)
        ) {
            let name = pieces.concat();
            prop_assert_eq!(names_credential(&name), NAMES.find(&name).is_some(), "{}", name);
        }
    }
}
