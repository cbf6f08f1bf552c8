//! Rules that no schema can say: what two fields of one document must have to do with each other.

use serde_json::Value;
use std::net::IpAddr;

pub use super::event::rules::{ask, not_blank, stream_event};
pub use super::profile::rules::{
    credential_names, mcp_command, mcp_directory, mcp_url, public_text, secret_key, token_ceilings,
};

use super::check::Refused;
use super::types::{CreateSandbox, InputPart, Network, RunRequest};

pub(super) use super::backend::interaction_kind;
pub(super) use super::create::{
    checkpoint_reference, host_path, repository_path, workspace_request,
};
pub(super) use super::resources::whole_gigabytes;
pub(super) use super::retained::{
    cancel_acknowledgement, control_acknowledgement, own_request_digest,
};

pub use super::capability::rules::{
    capability_blocks, interactive_agent_control, secret_answers, whole_block,
};

impl CreateSandbox {
    /// The rules between fields (wire protocol, 4.3): the network settings, the list of secrets, the backend.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn rules(&self) -> Result<(), Refused> {
        if let Some(network) = &self.network {
            network_rules(network)?;
        }
        if let Some(secrets) = &self.secrets {
            secrets_rule(secrets)?;
        }
        match &self.backend {
            Some(backend) => backend
                .rules()
                .map_err(|refusal| Refused::from(refusal).under("/backend")),
            None => Ok(()),
        }
    }
}

impl RunRequest {
    /// Whether this asks for frames of a run that exists, rather than for a new run.
    pub fn is_rejoin(&self) -> bool {
        self.last_event_id.is_some()
            || (self.execution_id.is_some()
                && self.message.as_deref() == Some("")
                && self.parts.is_none())
    }

    /// The rules between fields (wire protocol, 7.1 and 7.2): one input, whole parts, a reference that agrees.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn rules(&self) -> Result<(), Refused> {
        let inputs = [
            self.message.is_some(),
            self.parts.is_some(),
            self.messages.is_some(),
        ];
        match inputs.iter().filter(|given| **given).count() {
            0 if !self.is_rejoin() => {
                return Err(Refused::new(
                    "",
                    "one of `message`, `parts`, `messages` is missing",
                ));
            }
            0 | 1 => {}
            _ => {
                return Err(Refused::new(
                    "",
                    "only one of `message`, `parts`, `messages` may be given",
                ));
            }
        }
        for (index, part) in self.parts.iter().flatten().enumerate() {
            part_rules(part).map_err(|refused| refused.under(&format!("/parts/{index}")))?;
        }
        if self.parts.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refused::new("/parts", "must not be empty"));
        }
        if let Some(reference) = &self.run_control_ref {
            let other = |given: Option<&str>, named: &str| given.is_some_and(|id| id != named);
            if other(self.session_id.as_deref(), &reference.session_id) {
                return Err(Refused::new(
                    "/runControlRef/sessionId",
                    "must be the session of the request",
                ));
            }
            if other(self.execution_id.as_deref(), &reference.execution_id) {
                return Err(Refused::new(
                    "/runControlRef/executionId",
                    "must be the execution of the request",
                ));
            }
        }
        match &self.backend {
            Some(backend) => backend
                .rules()
                .map_err(|refusal| Refused::from(refusal).under("/backend")),
            None => Ok(()),
        }
    }
}

fn network_rules(network: &Network) -> Result<(), Refused> {
    let list = network.allow_list.as_deref().unwrap_or_default();
    if network.block_outbound == Some(true) && !list.is_empty() {
        return Err(Refused::new(
            "/network",
            "`blockOutbound` and `allowList` exclude each other",
        ));
    }
    match list.iter().position(|range| !is_cidr(range)) {
        Some(index) => Err(Refused::new(
            format!("/network/allowList/{index}"),
            "must be a CIDR range",
        )),
        None => Ok(()),
    }
}

fn is_cidr(range: &str) -> bool {
    let Some((address, bits)) = range.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn secrets_rule(secrets: &Value) -> Result<(), Refused> {
    let fine = match secrets {
        Value::String(all) => all == "all",
        Value::Array(names) => names.iter().all(|name| {
            name.as_str()
                .is_some_and(|name| super::types::StoredSecretName::new(name).is_ok())
        }),
        _ => false,
    };
    if fine {
        Ok(())
    } else {
        Err(Refused::new(
            "/secrets",
            "must be a list of names of stored secrets, or `all`",
        ))
    }
}

/// A part other than text says where its content is.
fn part_rules(part: &InputPart) -> Result<(), Refused> {
    let given = match part {
        InputPart::Text { .. } => return Ok(()),
        InputPart::Image { url, path, .. } => [url, path].iter().filter(|it| it.is_some()).count(),
        InputPart::File {
            url, path, content, ..
        } => [url, path, content]
            .iter()
            .filter(|it| it.is_some())
            .count(),
    };
    match given {
        1 => Ok(()),
        0 => Err(Refused::new(
            "",
            "one of `url`, `path`, `content` is missing",
        )),
        _ => Err(Refused::new(
            "",
            "only one of `url`, `path`, `content` may be given",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::read;

    fn create(text: &str) -> String {
        let refused = read::<CreateSandbox>(text.as_bytes()).and_then(|create| create.rules());
        refused.map_or_else(|refused| refused.to_string(), |()| "taken".into())
    }

    #[test]
    fn wire_4_8_a_create_with_bad_git_or_network_is_refused() {
        assert_eq!(
            create(r#"{"git": {"url": "https://h/r", "depth": 0}}"#),
            "/git/depth: must be at least 1"
        );
        let eleven = format!(
            r#"{{"network": {{"allowList": [{}]}}}}"#,
            ["\"10.0.0.0/8\""; 11].join(",")
        );
        assert_eq!(
            create(&eleven),
            "/network/allowList: must have at most 10 items"
        );
        assert_eq!(
            create(r#"{"network": {"blockOutbound": true, "allowList": ["10.0.0.0/8"]}}"#),
            "/network: `blockOutbound` and `allowList` exclude each other"
        );
        assert_eq!(
            create(r#"{"network": {"allowList": ["10.0.0.0/33"]}}"#),
            "/network/allowList/0: must be a CIDR range"
        );
        assert_eq!(
            create(r#"{"network": {"blockOutbound": true, "allowList": []}}"#),
            "taken"
        );
    }

    #[test]
    fn unknown_fields_are_named_at_once_and_sorted() {
        assert_eq!(
            create(r#"{"zeta": 1, "alpha": 2}"#),
            "unknown fields `alpha`, `zeta`"
        );
    }

    #[test]
    fn secrets_are_names_or_all() {
        assert_eq!(create(r#"{"secrets": "all"}"#), "taken");
        assert_eq!(create(r#"{"secrets": ["A", "b_1"]}"#), "taken");
        for secrets in [r#""some""#, r#"["1A"]"#, "{}"] {
            assert!(create(&format!(r#"{{"secrets": {secrets}}}"#)).starts_with("/secrets: "));
        }
    }

    #[test]
    fn one_input_makes_a_run() {
        let run = |text: &str| {
            let refused = read::<RunRequest>(text.as_bytes()).and_then(|run| run.rules());
            refused.map_or_else(|refused| refused.to_string(), |()| "taken".into())
        };
        assert_eq!(run(r#"{"message": "hi"}"#), "taken");
        assert_eq!(run(r#"{"executionId": "e", "message": ""}"#), "taken");
        assert!(run("{}").contains("is missing"));
        assert!(run(r#"{"message": "hi", "parts": []}"#).contains("only one"));
        assert_eq!(run(r#"{"parts": []}"#), "/parts: must not be empty");
        assert_eq!(
            run(r#"{"parts": [{"type": "file"}]}"#),
            "/parts/0: one of `url`, `path`, `content` is missing"
        );
        assert_eq!(
            run(r#"{"lastEventId": "4", "message": ""}"#),
            "`lastEventId` needs `executionId`"
        );
    }
}
