//! Patterns of host names (core contracts, 3.10). Matching takes time linear in pattern and host.

/// Whether `pattern` matches the host name `host`, whatever the case of either.
///
/// Labels are compared one by one and their number must agree; a `*` stands for any run inside one label. An IPv6 address is
/// compared whole.
///
/// ```
/// use tangle_sandbox::contract::profile::host_matches;
///
/// assert!(host_matches("*.example.com", "API.example.com"));
/// assert!(!host_matches("*.example.com", "example.com"));
/// assert!(!host_matches("*.example.com", "a.b.example.com"));
/// assert!(!host_matches("*", "[::1]"));
/// ```
pub fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_lowercase(), host.to_lowercase());
    if pattern.contains(':') || host.contains(':') {
        return pattern == host;
    }
    let (mut patterns, mut labels) = (pattern.split('.'), host.split('.'));
    loop {
        match (patterns.next(), labels.next()) {
            (None, None) => return true,
            (Some(pattern), Some(label)) if label_matches(pattern, label) => {}
            _ => return false,
        }
    }
}

fn label_matches(pattern: &str, label: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == label;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = label
        .strip_prefix(start)
        .and_then(|rest| rest.strip_suffix(end));
    let Some(mut inner) = inner else {
        return false;
    };
    // The earliest place of each piece leaves the most room for the pieces behind it.
    middle.split('*').all(|piece| match inner.find(piece) {
        Some(at) => {
            inner = &inner[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_3_10_a_star_stays_inside_its_label() {
        for (pattern, host) in [
            ("a.example", "A.Example"),
            ("A.*", "a.b"),
            ("*.*", "a.b"),
            ("*-mid-*.example.com", "x-mid-y.example.com"),
            ("a*a", "aa"),
            ("a**b", "axb"),
            ("*ab*ab*", "abab"),
            ("[::1]", "[::1]"),
            ("*", "localhost"),
        ] {
            assert!(host_matches(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in [
            ("*.example.com", "example.com"),
            ("*.example.com", "a.b.example.com"),
            ("*.example.com", "evil-example.com"),
            ("*.example.com", "a.example.com."),
            ("a*a", "a"),
            ("*ab*ab*", "ab"),
            ("*aba*", "ab"),
            ("*", "[::1]"),
            ("*:1]", "[::1]"),
            ("a:80", "a"),
            ("", "a"),
            ("b*", "a"),
        ] {
            assert!(!host_matches(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn core_3_10_a_hostile_pattern_costs_linear_time() {
        let (pattern, host) = ("*a".repeat(200_000), "a".repeat(199_999));
        assert!(!host_matches(&pattern, &host));
        assert!(host_matches(&format!("{pattern}*"), &"a".repeat(400_000)));
    }
}
