//! Where an environment runs (provider runtime, 4).

use serde_json::Value;

use super::check::Refused;
use super::from_value;
use super::types::{Placement, SandboxId};

impl Placement {
    /// The placement that the service describes: that of the sandbox itself when it describes none, or names no sandbox.
    /// Members that are not known are dropped.
    ///
    /// # Errors
    ///
    /// [`Refused`] for another kind, a fleet without its id, or an id that is no identifier.
    pub fn read(described: &Value, own: &SandboxId) -> Result<Self, Refused> {
        let Value::Object(members) = described else {
            return Ok(Self::Sandbox {
                sandbox_id: own.clone(),
                machine_id: None,
                region: None,
            });
        };
        let mut members = members.clone();
        if members.get("kind").and_then(Value::as_str) == Some("sandbox") {
            members
                .entry("sandboxId")
                .or_insert_with(|| Value::from(own.as_str()));
        }
        from_value(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(described: Value) -> Result<Value, String> {
        let own = SandboxId::new("sbx-1").unwrap();
        Placement::read(&described, &own)
            .map(|placement| json!(placement))
            .map_err(|refused| refused.path().to_owned())
    }

    #[test]
    fn provider_4_a_sandbox_names_itself_and_drops_what_is_not_known() {
        let own = json!({"kind": "sandbox", "sandboxId": "sbx-1"});
        assert_eq!(read(json!(null)), Ok(own.clone()));
        assert_eq!(read(json!([])), Ok(own));
        assert_eq!(
            read(
                json!({"kind": "sandbox", "sandboxId": "s", "machineId": "m", "region": "r", "rack": 1})
            ),
            Ok(json!({"kind": "sandbox", "sandboxId": "s", "machineId": "m", "region": "r"}))
        );
    }

    #[test]
    fn provider_4_a_fleet_has_an_id_and_no_sandbox() {
        assert_eq!(
            read(json!({"kind": "fleet", "fleetId": "f", "sandboxId": "s"})),
            Ok(json!({"kind": "fleet", "fleetId": "f"}))
        );
        assert!(read(json!({"kind": "fleet"})).is_err());
        assert!(read(json!({"kind": "fleet", "fleetId": ""})).is_err());
    }

    #[test]
    fn provider_4_another_kind_and_a_member_that_is_no_identifier_are_refused() {
        assert_eq!(read(json!({"kind": "local"})), Err("/kind".into()));
        assert_eq!(read(json!({})), Err("/kind".into()));
        for member in ["sandboxId", "machineId", "region"] {
            for value in [json!(""), json!("a".repeat(513)), json!(null), json!(1)] {
                let described = json!({"kind": "sandbox", member: value});
                assert_eq!(read(described), Err(format!("/{member}")));
            }
        }
    }
}
