//! The identity of a turn: digests and the ids derived from them (provider runtime, 7.3).

use serde_json::{Map, Value, json};

use crate::contract::check::Refused;
use crate::contract::digest::Digest;
use crate::contract::retained::{self, NewRef};
use crate::contract::types::{
    BackendConfig, ExecutionId, Identifier, RequestDigest, RunControlRef, SandboxId, SessionId,
    TurnId,
};

use super::PROVIDER;
use super::turn::Turn;

/// The session of a dispatched turn that names none.
pub(crate) fn session_id(environment: &SandboxId, turn: &TurnId) -> Result<SessionId, Refused> {
    let provider = Identifier::new(PROVIDER)?;
    retained::session_id(&provider, &Identifier::new(environment.as_str())?, turn)
}

/// The exact reference under which a turn is sent: the execution follows from the turn, the digest from both.
pub(crate) fn mint(
    environment: &SandboxId,
    session: &SessionId,
    turn: &Turn,
) -> Result<RunControlRef, Refused> {
    let mut material = material(environment, session, turn);
    let base = Digest::of(&Value::Object(material.clone()));
    let execution = ExecutionId::new(format!("session-turn-{}", base.hex()))?;
    material.insert("executionId".into(), json!(execution));
    retained::mint_ref(NewRef {
        provider: Identifier::new(PROVIDER)?,
        environment_id: Identifier::new(environment.as_str())?,
        session_id: session.clone(),
        execution_id: execution,
        run_id: None,
        request_digest: Some(RequestDigest::of(&Value::Object(material))),
    })
}

/// What a turn is, without its secrets. A member that was not given is absent.
fn material(environment: &SandboxId, session: &SessionId, turn: &Turn) -> Map<String, Value> {
    let mut material = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            material.insert(key.to_owned(), value);
        }
    };
    put("provider", Some(json!(PROVIDER)));
    put("environmentId", Some(json!(environment)));
    put("sessionId", Some(json!(session)));
    put("turnId", turn.turn.as_ref().map(|turn| json!(turn)));
    put("prompt", Some(json!(turn.prompt)));
    put("model", turn.model.as_ref().map(|model| json!(model)));
    put(
        "timeoutMs",
        turn.deadline
            .map(|deadline| json!(u64::try_from(deadline.get().as_millis()).unwrap_or(u64::MAX))),
    );
    put("context", turn.context.clone().map(Value::Object));
    put(
        "interactions",
        turn.interactions.as_ref().map(|kinds| json!(kinds)),
    );
    put("backend", turn.backend.as_ref().map(backend_identity));
    material
}

/// A backend without the values of its credentials: a rotated key stays the same turn, another seat does not.
fn backend_identity(backend: &BackendConfig) -> Value {
    // Outside of a request body secrets are written as a mark; what is left of them is taken out here.
    let mut value = json!(backend);
    if let Some(model) = value.get_mut("model").and_then(Value::as_object_mut) {
        model.remove("apiKey");
        let files = model.get_mut("authFiles").and_then(Value::as_array_mut);
        for file in files.into_iter().flatten() {
            if let Some(file) = file.as_object_mut() {
                file.remove("content");
            }
        }
    }
    if let Some(secrets) = backend.runtime_secrets.as_ref() {
        value["runtimeSecrets"] = json!(secrets.keys().collect::<Vec<_>>());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::types::{BackendAuthFile, BackendModel};

    fn reference(turn: &Turn) -> RunControlRef {
        let environment = SandboxId::new("sbx_1").unwrap();
        let session = SessionId::new("ses_1").unwrap();
        mint(&environment, &session, turn).unwrap()
    }

    fn with_backend(key: &str, path: &str) -> Turn {
        let file = BackendAuthFile {
            path: path.parse().unwrap(),
            content: "canary".into(),
            mode: None,
        };
        Turn::new("go").backend(BackendConfig {
            model: Some(BackendModel {
                api_key: Some(key.into()),
                auth_files: Some(vec![file]),
                ..BackendModel::default()
            }),
            ..BackendConfig::default()
        })
    }

    #[test]
    fn a_rotated_key_is_the_same_turn_and_another_seat_is_not() {
        let first = reference(&with_backend("one", "a"));
        assert_eq!(first, reference(&with_backend("two", "a")));
        assert_ne!(first, reference(&with_backend("one", "b")));
    }

    #[test]
    fn the_execution_follows_from_the_turn() {
        let first = reference(&Turn::new("go"));
        assert_eq!(first, reference(&Turn::new("go")));
        assert_ne!(
            first.execution_id,
            reference(&Turn::new("stop")).execution_id
        );
        assert!(first.execution_id.starts_with("session-turn-"));
        assert_eq!(first.run_id.as_str(), first.execution_id.as_str());
    }

    /// Known answers: every party has to come to these.
    #[test]
    fn a_turn_has_the_digest_that_the_contract_says() {
        let environment = SandboxId::new("sbx-1").unwrap();
        let session = SessionId::new("session-1").unwrap();
        let plain = mint(&environment, &session, &Turn::new("hello")).unwrap();
        assert_eq!(
            plain.execution_id.as_str(),
            "session-turn-fe4d85029256708e894f705111324ad28d35ffd214b17fff5e571cf9452fef7e"
        );
        assert_eq!(
            plain.request_digest.to_string(),
            "sha256:fa8f33b8402983d9c1c3d247b4edc6ed455a9237d77e0d50720049df2824de5b"
        );
        let keyed = Turn::new("hello").turn("t-1".parse().unwrap());
        let keyed = mint(&environment, &session, &keyed).unwrap();
        assert_eq!(
            keyed.request_digest.to_string(),
            "sha256:4aae0ef7251fc02cb7202bf44a38c3a9d53659d6b9cec1f80b3de8f47169ac91"
        );
        let derived = session_id(&environment, &"turn-1".parse().unwrap()).unwrap();
        assert_eq!(
            derived.as_str(),
            "session-94141b8c424f8d0b3ecea31eb0421e825e5fbd601a666542f3ccc722afb585ad"
        );
    }

    #[test]
    fn the_session_of_a_turn_is_the_digest_of_its_place() {
        let id = session_id(&"sbx_1".parse().unwrap(), &"t".parse().unwrap()).unwrap();
        let expected = Digest::of_bytes(b"tangle-sandbox\0sbx_1\0t").hex();
        assert_eq!(id.as_str(), format!("session-{expected}"));
    }
}
