//! The reference under which a turn is sent (provider runtime, 7.3); the recipes stand in the contract.

use crate::contract::check::Refused;
use crate::contract::retained;
use crate::contract::turn::{Place, ResolvedTurn};
use crate::contract::types::{Identifier, RunControlRef, SandboxId, SessionId, TurnId};

use super::PROVIDER;

/// The session of a dispatched turn that names none.
pub(crate) fn session_id(environment: &SandboxId, turn: &TurnId) -> Result<SessionId, Refused> {
    let provider = Identifier::new(PROVIDER)?;
    retained::session_id(&provider, &Identifier::new(environment.as_str())?, turn)
}

/// The exact reference under which a turn is sent: the execution follows from the turn, the digest from both.
pub(crate) fn mint(
    environment: &SandboxId,
    session: &SessionId,
    turn: &ResolvedTurn,
) -> Result<RunControlRef, Refused> {
    let place = Place {
        provider: Identifier::new(PROVIDER)?,
        environment_id: Identifier::new(environment.as_str())?,
        session_id: session.clone(),
        nonce: None,
    };
    Ok(turn.mint(&place, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::digest::Digest;
    use crate::contract::types::{BackendAuthFile, BackendConfig, BackendModel};
    use crate::provider::Turn;

    fn resolved(turn: Turn) -> ResolvedTurn {
        turn.into_input().unwrap().resolve().unwrap()
    }

    fn reference(turn: Turn) -> RunControlRef {
        let environment = SandboxId::new("sbx_1").unwrap();
        let session = SessionId::new("ses_1").unwrap();
        mint(&environment, &session, &resolved(turn)).unwrap()
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
        let first = reference(with_backend("one", "a"));
        assert_eq!(first, reference(with_backend("two", "a")));
        assert_ne!(first, reference(with_backend("one", "b")));
    }

    #[test]
    fn the_execution_follows_from_the_turn() {
        let first = reference(Turn::new("go"));
        assert_eq!(first, reference(Turn::new("go")));
        assert_ne!(
            first.execution_id,
            reference(Turn::new("stop")).execution_id
        );
        assert!(first.execution_id.starts_with("session-turn-"));
        assert_eq!(first.run_id.as_str(), first.execution_id.as_str());
    }

    /// Known answers: every party has to come to these.
    #[test]
    fn a_turn_has_the_digest_that_the_contract_says() {
        let environment = SandboxId::new("sbx-1").unwrap();
        let session = SessionId::new("session-1").unwrap();
        let plain = mint(&environment, &session, &resolved(Turn::new("hello"))).unwrap();
        assert_eq!(
            plain.execution_id.as_str(),
            "session-turn-fe4d85029256708e894f705111324ad28d35ffd214b17fff5e571cf9452fef7e"
        );
        assert_eq!(
            plain.request_digest.to_string(),
            "sha256:fa8f33b8402983d9c1c3d247b4edc6ed455a9237d77e0d50720049df2824de5b"
        );
        let keyed = resolved(Turn::new("hello").turn("t-1".parse().unwrap()));
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
