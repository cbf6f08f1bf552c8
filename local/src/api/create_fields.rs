//! Which fields of a create request this deployment honours, in one table (wire protocol, 4.3 and 4.4).
//!
//! A field that it cannot honour is refused by name before anything is made. A value that asks for nothing, such as
//! `sshEnabled: false` or an empty list, is taken.

use serde_json::Value;

use super::answer::Fault;

/// What becomes of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Honoured {
    /// Every value that the schema allows.
    Always,
    /// Only values of this kind.
    When(fn(&Value) -> bool, &'static str),
}

use Honoured::{Always, When};

/// One row a field of the schema.
pub(super) const CREATE_FIELDS: &[(&str, Honoured)] = &[
    ("name", Always),
    ("environment", When(never, "there are no images")),
    (
        "cwd",
        When(root, "agents start at the root of the workspace"),
    ),
    // Nothing is ever added to the workspace.
    ("bare", Always),
    ("agent", Always),
    ("publicEdge", When(off, "there is no public edge")),
    ("ephemeral", When(off, "a stopped sandbox keeps its state")),
    (
        "driver",
        When(host_agent, "only `host-agent` without options"),
    ),
    ("git", When(never, "repositories are not cloned")),
    ("tools", When(empty, "tools are not installed")),
    // Its own fields are looked at one by one below.
    ("backend", Always),
    ("permissions", When(empty, "there is one user")),
    ("env", Always),
    ("secrets", When(empty, "there are no stored secrets")),
    ("resources", When(empty, "resources are not bounded")),
    ("sshEnabled", When(off, "there is no SSH")),
    ("webTerminalEnabled", When(off, "there is no web terminal")),
    ("sshPublicKey", When(never, "there is no SSH")),
    ("sshPublicKeys", When(empty, "there is no SSH")),
    ("sshKeyIds", When(empty, "there is no SSH")),
    ("maxLifetimeSeconds", Always),
    ("idleTimeoutSeconds", Always),
    ("deleteAfterStoppedSeconds", Always),
    ("storage", When(never, "there is no object storage")),
    ("fromSnapshot", When(never, "there are no snapshots")),
    ("fromSandboxId", When(never, "there are no snapshots")),
    ("metadata", Always),
    (
        "egressPolicy",
        When(open, "only the mode `open` can be enforced"),
    ),
    (
        "network",
        When(
            unbounded,
            "the network is not bounded and no port is opened",
        ),
    ),
    ("billingOwnerId", When(never, "there is one account")),
    ("teamId", When(never, "there is one account")),
    (
        "requireNativeSessionCapture",
        When(off, "native sessions are not captured"),
    ),
    ("capabilities", When(empty, "there are no extras")),
    ("confidential", When(never, "nothing is attested")),
    ("idempotencyKey", Always),
    (
        "agentIdentifier",
        When(default_agent, "only the agent `default`"),
    ),
];

/// One row a field of a backend block, below `backend`.
pub(super) const BACKEND_FIELDS: &[(&str, Honoured)] = &[
    ("type", Always),
    // Refused below, with a code of its own.
    ("profile", Always),
    // Its own fields are looked at one by one below.
    ("model", Always),
    ("server", When(empty, "the backend's own server is private")),
    (
        "interactions",
        When(asks_nothing, "nobody can be asked yet"),
    ),
    // Facts of the caller; they bind nothing.
    ("metadata", Always),
    (
        "runtimeAttachments",
        When(never, "attachments are not bound here"),
    ),
    ("runtimeSecrets", Always),
];

/// One row a field of a model block, below `backend.model`.
pub(super) const MODEL_FIELDS: &[(&str, Honoured)] = &[
    ("model", Always),
    (
        "provider",
        When(compatible, "only the provider `openai-compat`"),
    ),
    ("apiKey", Always),
    ("baseUrl", Always),
    ("apiKeyEnv", When(never, "there are no stored secrets")),
    ("maxThinkingTokens", When(never, "thinking is not bounded")),
    ("mode", When(by_api, "only the mode `api`")),
    ("authMode", When(by_key, "only the mode `api-key`")),
    ("authFiles", When(empty, "native logins are not supported")),
    ("cliAuth", When(never, "native logins are not supported")),
];

fn never(_: &Value) -> bool {
    false
}

fn root(value: &Value) -> bool {
    value == "."
}

fn off(value: &Value) -> bool {
    value == &Value::Bool(false)
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn host_agent(value: &Value) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.len() == 1 && members["type"] == "host-agent")
}

fn open(value: &Value) -> bool {
    value["mode"] == "open" && value.get("allowDomains").is_none_or(empty)
}

fn unbounded(value: &Value) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.values().all(|member| off(member) || empty(member)))
}

fn default_agent(value: &Value) -> bool {
    value == "default"
}

fn asks_nothing(value: &Value) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.values().all(off))
}

fn compatible(value: &Value) -> bool {
    value == "openai-compat"
}

fn by_api(value: &Value) -> bool {
    value == "api"
}

fn by_key(value: &Value) -> bool {
    value == "api-key"
}

/// 501 for the first field that is not honoured.
pub(super) fn honour_create(request: &Value) -> Result<(), Fault> {
    honour(CREATE_FIELDS, "", request)?;
    honour_backend(&request["backend"])
}

/// The same for a backend block, of a create, a session or a turn.
pub(super) fn honour_backend(backend: &Value) -> Result<(), Fault> {
    if backend.get("profile").is_some() {
        return Err(Fault::profile_unsupported("backend.profile"));
    }
    honour(BACKEND_FIELDS, "backend.", backend)?;
    honour(MODEL_FIELDS, "backend.model.", &backend["model"])
}

/// The asks that the caller of a turn wants to answer.
pub(super) fn honour_interactions(interactions: &Value) -> Result<(), Fault> {
    if interactions.is_null() || asks_nothing(interactions) {
        return Ok(());
    }
    Err(Fault::field_not_supported(
        "interactions",
        "nobody can be asked yet",
    ))
}

fn honour(table: &[(&str, Honoured)], prefix: &str, request: &Value) -> Result<(), Fault> {
    for (name, honoured) in table {
        let Some(value) = request.get(name) else {
            continue;
        };
        if let When(fits, why) = honoured
            && !fits(value)
        {
            return Err(Fault::field_not_supported(&format!("{prefix}{name}"), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use tangle_sandbox::contract::checker::Checked;
    use tangle_sandbox::contract::types::{BackendModel, CreateSandbox, SentBackend};

    use super::{BACKEND_FIELDS, CREATE_FIELDS, Honoured, MODEL_FIELDS, honour_create};

    fn covers<T: Checked>(table: &[(&str, Honoured)]) {
        let rows: BTreeSet<&str> = table.iter().map(|(name, _)| *name).collect();
        assert_eq!(rows.len(), table.len(), "a field has two rows");
        assert_eq!(rows, T::node().fields().collect(), "{}", T::NAME);
    }

    #[test]
    fn every_field_of_the_schema_has_one_row() {
        covers::<CreateSandbox>(CREATE_FIELDS);
        covers::<SentBackend>(BACKEND_FIELDS);
        covers::<BackendModel>(MODEL_FIELDS);
    }

    #[test]
    fn a_value_that_asks_for_nothing_is_taken() {
        let nothing = json!({
            "publicEdge": false, "ephemeral": false, "tools": {}, "secrets": [], "resources": {},
            "sshEnabled": false, "egressPolicy": {"mode": "open"}, "network": {"blockOutbound": false, "ports": []},
            "driver": {"type": "host-agent"}, "backend": {"type": "scripted", "interactions": {"plan": false}},
        });
        assert!(honour_create(&nothing).is_ok());
    }

    #[test]
    fn a_profile_is_refused_with_a_code_of_its_own() {
        for profile in [json!({}), json!({"name": "p"}), json!("a-hash")] {
            let fault = honour_create(&json!({"backend": {"profile": profile}})).unwrap_err();
            assert_eq!(
                (fault.status.as_u16(), fault.code),
                (501, "PROFILE_UNSUPPORTED")
            );
            assert!(fault.message.contains("`backend.profile`"));
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (request, field) in [
            (json!({"git": {"url": "https://h/r"}}), "git"),
            (json!({"network": {"ports": [80]}}), "network"),
            (json!({"egressPolicy": {"mode": "blocked"}}), "egressPolicy"),
            (
                json!({"driver": {"type": "host-agent", "gpuCount": 1}}),
                "driver",
            ),
            (
                json!({"backend": {"interactions": {"plan": true}}}),
                "backend.interactions",
            ),
            (
                json!({"backend": {"model": {"cliAuth": {}}}}),
                "backend.model.cliAuth",
            ),
            (
                json!({"backend": {"runtimeAttachments": {"mcp": {}}}}),
                "backend.runtimeAttachments",
            ),
            (json!({"cwd": "a"}), "cwd"),
        ] {
            let fault = honour_create(&request).unwrap_err();
            assert_eq!((fault.status.as_u16(), fault.code), (501, "NOT_SUPPORTED"));
            assert!(fault.message.contains(&format!("`{field}`")), "{field}");
        }
    }
}
