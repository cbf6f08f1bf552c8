//! The capability document: what is true, and nothing else (wire protocol, 6).

use axum::response::Response;
use serde_json::Map;
use tangle_sandbox::contract::types::{
    CancelFlags, DeploymentDocument, DispatchFlags, InteractionFlags, RunFlags, SchemaVersion,
};

use super::answer::{Fault, bare};
use super::call::Call;

/// `GET R/capabilities`.
pub(super) async fn document(call: Call) -> Result<Response, Fault> {
    let (sandbox, _stay) = call.running().await?;
    Ok(bare(&capabilities(sandbox.managed)?))
}

/// A sandbox without a managed agent runs nothing, so that nothing about runs is claimed for it.
fn capabilities(managed: bool) -> Result<DeploymentDocument, Fault> {
    Ok(DeploymentDocument {
        schema: SchemaVersion::try_from(1)?,
        agent_interface: env!("CARGO_PKG_VERSION").to_owned(),
        sidecar_version: concat!("tangle-sandbox-local/", env!("CARGO_PKG_VERSION")).to_owned(),
        image: "host".to_owned(),
        dispatch: DispatchFlags {
            run_control_ref: Some(managed),
            execution_id_on_admission: Some(managed),
            extra: Map::new(),
        },
        cancel: CancelFlags {
            canonical_run_cancellation: Some(managed),
            digest_bound: Some(managed),
            idempotent: Some(managed),
            extra: Map::new(),
        },
        runs: RunFlags {
            execution_scoped_status: Some(managed),
            event_replay: Some(managed),
            extra: Map::new(),
        },
        interactions: InteractionFlags {
            response_dedupe: None,
            extra: Map::new(),
        },
        interactive_agent: None,
        native_session_capture_version: None,
        native_session_capture_harnesses: None,
        cli_auth_references: None,
        claude_token_continuations: None,
        extra: Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::capabilities;

    #[test]
    fn wire_20_3_nothing_interactive_is_claimed() {
        let document = serde_json::to_value(capabilities(true).unwrap()).unwrap();
        assert!(document.get("interactiveAgent").is_none());
        assert_eq!(document["interactions"], serde_json::json!({}));
        assert_eq!(document["cancel"]["digestBound"], true);
    }

    #[test]
    fn a_sandbox_without_an_agent_claims_no_runs() {
        let document = serde_json::to_value(capabilities(false).unwrap()).unwrap();
        assert_eq!(document["dispatch"]["runControlRef"], false);
        assert_eq!(document["runs"]["eventReplay"], false);
    }
}
