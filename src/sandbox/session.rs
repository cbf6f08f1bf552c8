//! How the record of a session is read (wire protocol, 9.3).

use serde_json::Value;

use crate::contract::types::SessionRecord;

/// The record in an answer: nested as `session`, or the answer itself; the execution may stand beside it.
pub(crate) fn record(answer: Value) -> Option<SessionRecord> {
    let mut answer = answer;
    let session = match answer.get_mut("session") {
        Some(session) if session.is_object() => {
            let mut session = session.take();
            if let (None, Some(active)) = (
                session.get("activeExecution"),
                answer.get("activeExecution"),
            ) {
                session["activeExecution"] = active.clone();
            }
            session
        }
        _ => answer,
    };
    serde_json::from_value(session).ok()
}

impl SessionRecord {
    /// The execution that the session runs now.
    pub fn active(&self) -> Option<&str> {
        let id = self.active_execution_id.as_ref().and_then(Value::as_str);
        let execution = self.active_execution.as_ref();
        id.or_else(|| execution?.get("id")?.as_str())
    }

    /// Whether the session has nothing more to do: no execution runs, no ask waits for an answer, and its state is one of
    /// an end. A turn must not be given up before that.
    pub fn is_terminal(&self) -> bool {
        const ENDS: [&str; 6] = [
            "completed",
            "failed",
            "aborted",
            "expired",
            "idle",
            "terminal",
        ];
        let asks = [&self.outstanding_interactions, &self.interactions];
        let waits = asks.into_iter().flatten().any(|asks| !asks.is_empty());
        if self.active().is_some() || self.reconnectable == Some(true) || waits {
            return false;
        }
        let state = self.state.as_deref().or(self.status.as_deref());
        state.is_some_and(|state| ENDS.contains(&state)) || self.reconnectable == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(more: Value) -> SessionRecord {
        let mut value = json!({ "id": "ses_1" });
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        record(value).unwrap()
    }

    #[test]
    fn wire_9_1_a_nested_record_and_one_at_top_level_read_the_same() {
        let whole = json!({
            "id": "ses_1", "state": "running", "activeExecutionId": null,
            "activeExecution": { "id": "exe_1", "status": "running" },
        });
        let mut inner = whole.clone();
        let active = inner.as_object_mut().unwrap().remove("activeExecution");
        let top = record(whole.clone());
        assert_eq!(record(json!({ "session": whole })), top);
        assert_eq!(
            record(json!({ "session": inner, "activeExecution": active })),
            top
        );
        assert_eq!(top.unwrap().active(), Some("exe_1"));
    }

    #[test]
    fn wire_9_2_an_outstanding_ask_is_not_the_end_and_an_unknown_state_may_be() {
        assert!(read(json!({ "state": "idle" })).is_terminal());
        assert!(read(json!({ "status": "failed" })).is_terminal());
        assert!(read(json!({ "state": "weird", "reconnectable": false })).is_terminal());
        for open in [
            json!({ "state": "idle", "outstandingInteractions": [{ "id": "i" }] }),
            json!({ "state": "idle", "interactions": [{ "id": "i" }] }),
            json!({ "state": "idle", "reconnectable": true }),
            json!({ "state": "completed", "activeExecutionId": "exe_1" }),
            json!({ "state": "weird" }),
        ] {
            assert!(!read(open.clone()).is_terminal(), "{open}");
        }
    }
}
