//! The security check of an inline profile against a policy (core contracts, 3.10).

use url::Url;

use super::super::document::{Node, Tree};
use super::super::types::{
    SecurityCode, SecurityIssue, SecurityLevel, SecurityPolicy, SecurityReport,
};
use super::hosts::host_matches;

impl SecurityPolicy {
    /// The policy of a cloud that knows nothing better: no local MCP servers, no hooks, everything else.
    pub fn cloud() -> Self {
        Self {
            allow_local_mcp: false,
            allow_hooks: false,
            allowed_mcp_hosts: None,
            allow_connections: None,
        }
    }
}

impl SecurityCode {
    /// The code in words.
    pub fn message(self) -> &'static str {
        match self {
            Self::BlockedLocalMcp => "MCP servers that start a process are not allowed",
            Self::InvalidMcpUrl => "the server has no URL whose host can be compared",
            Self::BlockedRemoteMcpHost => "the host of the server is not one that is allowed",
            Self::BlockedHooks => "hooks are not allowed",
            Self::BlockedConnections => "connections are not allowed",
        }
    }
}

/// Checks what `profile` brings along against `policy` and collects every issue.
///
/// It looks at the JSON alone, so that a profile which the schema would refuse is checked too. The servers are visited in the
/// order of the tree: that of the text where `profile` is a [`Document`](super::super::document::Document). Disabled servers
/// are passed over. Without a list of hosts this is no protection against requests into private networks.
///
/// ```
/// use tangle_sandbox::contract::profile::security_check;
/// use tangle_sandbox::contract::types::{SecurityCode, SecurityPolicy};
///
/// let profile = serde_json::json!({ "mcp": { "files": { "command": "node" } } });
/// let report = security_check(&profile, &SecurityPolicy::cloud());
/// assert!(!report.ok);
/// assert_eq!(report.issues[0].code, SecurityCode::BlockedLocalMcp);
/// assert_eq!(report.issues[0].path, "mcp.files");
/// ```
pub fn security_check<T: Tree>(profile: &T, policy: &SecurityPolicy) -> SecurityReport {
    let mut issues = Vec::new();
    let mut refuse = |code: SecurityCode, path: String| {
        issues.push(SecurityIssue {
            level: SecurityLevel::Error,
            code,
            message: code.message().to_owned(),
            path,
        });
    };
    for (alias, server) in members(member(profile, "mcp")) {
        if let Some(code) = server_issue(server, policy) {
            refuse(code, format!("mcp.{alias}"));
        }
    }
    if !policy.allow_hooks && members(member(profile, "hooks")).next().is_some() {
        refuse(SecurityCode::BlockedHooks, "hooks".to_owned());
    }
    let connected = matches!(
        member(profile, "connections").map(Tree::node),
        Some(Node::Array([_, ..]))
    );
    if policy.allow_connections == Some(false) && connected {
        refuse(SecurityCode::BlockedConnections, "connections".to_owned());
    }
    SecurityReport {
        ok: issues.is_empty(),
        issues,
    }
}

fn server_issue<T: Tree>(server: &T, policy: &SecurityPolicy) -> Option<SecurityCode> {
    if member(server, "enabled").and_then(Tree::as_bool) == Some(false) {
        return None;
    }
    // A command starts a process, whatever the transport says.
    if member(server, "command").is_some() || text(server, "transport") == Some("stdio") {
        return (!policy.allow_local_mcp).then_some(SecurityCode::BlockedLocalMcp);
    }
    let allowed = policy.allowed_mcp_hosts.as_deref()?;
    let Some(url) = text(server, "url").and_then(|url| Url::parse(url).ok()) else {
        return Some(SecurityCode::InvalidMcpUrl);
    };
    let host = url.host_str().unwrap_or_default();
    let matches = !host.is_empty() && allowed.iter().any(|pattern| host_matches(pattern, host));
    (!matches).then_some(SecurityCode::BlockedRemoteMcpHost)
}

fn member<'a, T: Tree>(object: &'a T, key: &str) -> Option<&'a T> {
    members(Some(object)).find_map(|(name, value)| (name == key).then_some(value))
}

fn members<T: Tree>(object: Option<&T>) -> impl Iterator<Item = (&str, &T)> {
    let members = match object.map(Tree::node) {
        Some(Node::Object(members)) => Some(members),
        _ => None,
    };
    members.into_iter().flatten()
}

fn text<'a, T: Tree>(object: &'a T, key: &str) -> Option<&'a str> {
    match member(object, key)?.node() {
        Node::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::strict::parse_document;

    fn issues(profile: &str, policy: &SecurityPolicy) -> Vec<(SecurityCode, String)> {
        let report = security_check(&parse_document(profile.as_bytes()).unwrap(), policy);
        assert_eq!(report.ok, report.issues.is_empty());
        let issues = report.issues.into_iter();
        issues.map(|issue| (issue.code, issue.path)).collect()
    }

    fn hosts(hosts: &[&str]) -> SecurityPolicy {
        SecurityPolicy {
            allowed_mcp_hosts: Some(hosts.iter().map(|&host| host.to_owned()).collect()),
            ..SecurityPolicy::cloud()
        }
    }

    #[test]
    fn core_3_10_servers_are_visited_in_the_order_of_the_document() {
        let profile = r#"{"hooks": {"H": []}, "mcp": {"b": {"transport": "stdio"}, "c": {"enabled": false, "command": "x"},
            "a.b": {"command": "y"}, "d": {"url": "https://h"}}}"#;
        assert_eq!(
            issues(profile, &SecurityPolicy::cloud()),
            [
                (SecurityCode::BlockedLocalMcp, "mcp.b".to_owned()),
                (SecurityCode::BlockedLocalMcp, "mcp.a.b".to_owned()),
                (SecurityCode::BlockedHooks, "hooks".to_owned()),
            ]
        );
    }

    #[test]
    fn core_3_10_an_allowed_local_server_is_never_compared_with_hosts() {
        let policy = SecurityPolicy {
            allow_local_mcp: true,
            ..hosts(&[])
        };
        let profile =
            r#"{"mcp": {"a": {"command": "x", "url": "https://h"}, "b": {"url": "https://h"}}}"#;
        let only = [(SecurityCode::BlockedRemoteMcpHost, "mcp.b".to_owned())];
        assert_eq!(issues(profile, &policy), only);
    }

    #[test]
    fn core_3_10_a_url_without_a_host_matches_no_pattern() {
        let codes = |server: &str| -> Vec<SecurityCode> {
            let profile = format!(r#"{{"mcp": {{"a": {server}}}}}"#);
            issues(&profile, &hosts(&["*", "*.*"]))
                .into_iter()
                .map(|issue| issue.0)
                .collect()
        };
        assert_eq!(
            codes(r#"{"url": "mailto:a@b.c"}"#),
            [SecurityCode::BlockedRemoteMcpHost]
        );
        assert_eq!(
            codes(r#"{"url": "file:///x"}"#),
            [SecurityCode::BlockedRemoteMcpHost]
        );
        assert_eq!(codes(r#"{"url": ""}"#), [SecurityCode::InvalidMcpUrl]);
        assert_eq!(codes(r#"{"url": 1}"#), [SecurityCode::InvalidMcpUrl]);
        assert_eq!(codes("null"), [SecurityCode::InvalidMcpUrl]);
        assert_eq!(codes(r#"{"url": "https://u@B.c:1"}"#), []);
    }

    #[test]
    fn a_value_that_is_no_profile_has_no_issues() {
        for profile in [
            "null",
            "[]",
            r#""p""#,
            r#"{"mcp": [1], "hooks": [1], "connections": {"a": 1}}"#,
        ] {
            let strictest = SecurityPolicy {
                allow_connections: Some(false),
                ..hosts(&[])
            };
            assert_eq!(issues(profile, &strictest), []);
        }
    }
}
