//! How a sandbox record is read: status, readiness, the direct runtime.

use serde_json::Value;

use crate::contract::types::{Connection, SandboxRecord};

/// Lifecycle status of a sandbox (wire protocol, 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Accepted, not placed.
    Pending,
    /// Being built.
    Provisioning,
    /// The runtime answers; usable only when the file system is ready too.
    Running,
    /// Stopped, state kept.
    Stopped,
    /// Failed for good; the record's `error` says why.
    Failed,
    /// Its lifetime is over.
    Expired,
    /// Deleted.
    Deleted,
    /// A status that this version does not know: neither over nor running.
    Other(String),
}

impl Status {
    /// The status as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Status::Pending => "pending",
            Status::Provisioning => "provisioning",
            Status::Running => "running",
            Status::Stopped => "stopped",
            Status::Failed => "failed",
            Status::Expired => "expired",
            Status::Deleted => "deleted",
            Status::Other(text) => text,
        }
    }

    /// Whether nothing can bring the sandbox back.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Status::Failed | Status::Expired | Status::Deleted)
    }
}

impl From<&str> for Status {
    fn from(text: &str) -> Self {
        match text {
            "pending" => Status::Pending,
            "provisioning" => Status::Provisioning,
            "running" => Status::Running,
            "stopped" => Status::Stopped,
            "failed" => Status::Failed,
            "expired" => Status::Expired,
            "deleted" => Status::Deleted,
            other => Status::Other(other.to_owned()),
        }
    }
}

/// Identity and readiness of the present file system of a sandbox; all three facts stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Identity of the file system.
    pub id: String,
    /// `fresh`, `restored` or `unknown`.
    pub provenance: String,
    /// Whether it may be used; `false` while it is being built or replaced.
    pub ready: bool,
}

impl SandboxRecord {
    /// The lifecycle status.
    pub fn lifecycle(&self) -> Status {
        Status::from(self.status.as_str())
    }

    /// The file system's identity and readiness; `None` when any of the three facts is missing or malformed.
    pub fn incarnation(&self) -> Option<Incarnation> {
        let text = |value: &Option<Value>, allowed: &[&str]| {
            let value = value.as_ref()?.as_str()?;
            (allowed.is_empty() || allowed.contains(&value)).then(|| value.to_owned())
        };
        let id = text(&self.filesystem_incarnation_id, &[])?;
        crate::contract::types::Identifier::new(id.as_str()).ok()?;
        let provenance = text(
            &self.filesystem_incarnation_provenance,
            &["fresh", "restored", "unknown"],
        )?;
        let readiness = text(
            &self.filesystem_incarnation_readiness,
            &["ready", "transitioning"],
        )?;
        Some(Incarnation {
            id,
            provenance,
            ready: readiness == "ready",
        })
    }

    /// Whether the sandbox runs and its file system may be used.
    pub fn is_ready(&self) -> bool {
        self.lifecycle() == Status::Running
            && self
                .incarnation()
                .is_some_and(|incarnation| incarnation.ready)
    }
}

impl Connection {
    /// Origin of the direct runtime, in the newer or the older spelling.
    pub fn runtime_origin(&self) -> Option<&str> {
        self.runtime_url.as_deref().or(self.sidecar_url.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(more: Value) -> SandboxRecord {
        let mut value =
            json!({ "id": "sbx_1", "status": "running", "createdAt": "2026-01-01T00:00:00Z" });
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn wire_4_1_transitioning_is_not_ready() {
        let facts = |readiness: &str| {
            json!({
                "filesystemIncarnationId": "fs1",
                "filesystemIncarnationProvenance": "fresh",
                "filesystemIncarnationReadiness": readiness,
            })
        };
        assert!(!record(facts("transitioning")).is_ready());
        assert!(record(facts("ready")).is_ready());
    }

    #[test]
    fn wire_4_2_one_missing_or_malformed_fact_makes_all_three_unknown() {
        let whole = json!({
            "filesystemIncarnationId": "fs1",
            "filesystemIncarnationProvenance": "fresh",
            "filesystemIncarnationReadiness": "ready",
        });
        for key in whole.as_object().unwrap().keys() {
            let mut part = whole.clone();
            part[key] = json!(7);
            assert_eq!(record(part).incarnation(), None, "{key}");
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(key);
            assert_eq!(record(part).incarnation(), None, "{key}");
        }
    }

    #[test]
    fn wire_4_7_unknown_status_and_fields_still_parse_and_the_older_origin_is_read() {
        let record = record(json!({
            "status": "hibernating",
            "novelty": { "a": 1 },
            "connection": { "sidecarUrl": "http://h:1", "extra": 1 },
        }));
        assert_eq!(record.lifecycle(), Status::Other("hibernating".into()));
        assert!(!record.lifecycle().is_terminal());
        let connection = record.connection.as_ref().unwrap();
        assert_eq!(connection.runtime_origin(), Some("http://h:1"));
    }

    #[test]
    fn wire_4_9_a_record_hides_its_token_in_debug_and_json() {
        let record = record(json!({ "connection": { "authToken": "canary-token" } }));
        assert!(!format!("{record:?}").contains("canary"));
        assert!(!serde_json::to_string(&record).unwrap().contains("canary"));
    }
}
