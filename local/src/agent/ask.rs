//! What is answered to an agent's own requests. Nobody is asked yet: a permission is rejected, a question declined, and
//! both stay visible in the turn's events and result.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::acp_types::{
    ElicitationRequest, ElicitationResponse, PermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse,
};
use super::rpc::{Peer, RpcError, parse};
use super::tool_part::cut;
use super::turn::AgentEvent;

/// Asks that are listed in the result.
const LISTED: usize = 100;
/// Bytes of a title, an id or a kind in the list.
const TITLE_LIMIT: usize = 512;

/// The asks of one turn that were turned down.
#[derive(Debug, Default)]
pub(super) struct TurnedDown {
    permissions: Vec<Value>,
    questions: Vec<Value>,
}

impl TurnedDown {
    /// Answers one request; `stopping` says that the turn is being ended, so that its asks are withdrawn.
    pub(super) async fn answer(
        &mut self,
        peer: &Peer,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        stopping: bool,
    ) -> Option<AgentEvent> {
        match method {
            "session/request_permission" => match parse::<RequestPermissionRequest>(params) {
                Ok(request) => {
                    peer.answer(
                        id,
                        &RequestPermissionResponse {
                            outcome: rejection(&request, stopping),
                        },
                    )
                    .await;
                    (!stopping).then(|| self.rejected(&request))
                }
                Err(error) => self.malformed(peer, id, &error).await,
            },
            "elicitation/create" => match parse::<ElicitationRequest>(params) {
                Ok(request) => {
                    let action = if stopping { "cancel" } else { "decline" }.to_owned();
                    peer.answer(
                        id,
                        &ElicitationResponse {
                            action,
                            content: None,
                        },
                    )
                    .await;
                    (!stopping).then(|| self.declined(&request))
                }
                Err(error) => self.malformed(peer, id, &error).await,
            },
            _ => {
                peer.refuse(id, &RpcError::method_not_found()).await;
                None
            }
        }
    }

    /// The entries for the result's metadata.
    pub(super) fn into_metadata(self) -> Map<String, Value> {
        let lists = [
            ("rejectedPermissions", self.permissions),
            ("declinedQuestions", self.questions),
        ];
        let filled = lists.into_iter().filter(|(_, list)| !list.is_empty());
        filled
            .map(|(name, list)| (name.to_owned(), Value::Array(list)))
            .collect()
    }

    fn rejected(&mut self, request: &RequestPermissionRequest) -> AgentEvent {
        let call = &request.tool_call;
        let title = cut(call.title.as_deref().unwrap_or("a tool call"), TITLE_LIMIT);
        list(
            &mut self.permissions,
            json!({
                "toolCallId": call.tool_call_id.as_deref().map(|id| cut(id, TITLE_LIMIT)),
                "title": title,
                "kind": call.kind.as_deref().map(|kind| cut(kind, TITLE_LIMIT)),
            }),
        );
        AgentEvent::warning(
            "PERMISSION_REJECTED",
            &format!(
                "the agent asked for a permission and was rejected, since nobody can be asked: {title}"
            ),
        )
    }

    fn declined(&mut self, request: &ElicitationRequest) -> AgentEvent {
        let title = cut(
            request.message.as_deref().unwrap_or("a question"),
            TITLE_LIMIT,
        );
        list(&mut self.questions, json!({ "title": title }));
        AgentEvent::warning(
            "QUESTION_DECLINED",
            &format!(
                "the agent asked a question that was declined, since nobody can be asked: {title}"
            ),
        )
    }

    async fn malformed(
        &mut self,
        peer: &Peer,
        id: &RawValue,
        error: &RpcError,
    ) -> Option<AgentEvent> {
        peer.refuse(id, error).await;
        list(
            &mut self.permissions,
            json!({ "title": "an ask that could not be read" }),
        );
        Some(AgentEvent::warning(
            "ASK_UNREADABLE",
            "the agent asked in a form that could not be read; it was refused",
        ))
    }
}

fn rejection(request: &RequestPermissionRequest, stopping: bool) -> PermissionOutcome {
    let rejecting = request
        .options
        .iter()
        .find(|option| option.kind.as_deref() == Some("reject_once"));
    match rejecting.filter(|_| !stopping) {
        Some(option) => PermissionOutcome {
            outcome: "selected".to_owned(),
            option_id: Some(option.option_id.clone()),
        },
        None => PermissionOutcome {
            outcome: "cancelled".to_owned(),
            option_id: None,
        },
    }
}

fn list(list: &mut Vec<Value>, entry: Value) {
    if list.len() < LISTED {
        list.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::TurnedDown;
    use crate::agent::rpc::{Bounds, connect};
    use crate::agent::turn::AgentEvent;

    /// What the agent gets as an answer, and what the reader of the run sees.
    async fn ask(method: &str, params: Value, stopping: bool) -> (Value, Option<AgentEvent>) {
        let (_silent, input) = tokio::io::duplex(64);
        let (output, answers) = tokio::io::duplex(4096);
        let (peer, _inbound, _connection) = connect(input, output, Bounds::default());
        let (id, params) = (to_raw_value(&7).unwrap(), to_raw_value(&params).unwrap());
        let event = TurnedDown::default()
            .answer(&peer, &id, method, Some(&params), stopping)
            .await;
        let answer = BufReader::new(answers)
            .lines()
            .next_line()
            .await
            .unwrap()
            .unwrap();
        (serde_json::from_str(&answer).unwrap(), event)
    }

    fn permission(kinds: &[&str]) -> Value {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({ "optionId": format!("id-{kind}"), "kind": kind, "name": kind }))
            .collect();
        json!({ "sessionId": "a child nobody knows", "toolCall": { "title": "rm" }, "options": options })
    }

    /// Row 24 of the public reports.
    #[tokio::test]
    async fn a_permission_of_an_unknown_child_session_is_rejected_with_an_event() {
        let (answer, event) = ask(
            "session/request_permission",
            permission(&["allow_once", "reject_once"]),
            false,
        )
        .await;
        assert_eq!(
            answer["result"]["outcome"],
            json!({ "outcome": "selected", "optionId": "id-reject_once" })
        );
        assert_eq!(event.unwrap().data["code"], "PERMISSION_REJECTED");
    }

    #[tokio::test]
    async fn without_a_way_to_reject_the_ask_is_cancelled_and_never_allowed() {
        let (answer, event) = ask(
            "session/request_permission",
            permission(&["allow_always"]),
            false,
        )
        .await;
        assert_eq!(
            answer["result"]["outcome"],
            json!({ "outcome": "cancelled" })
        );
        assert!(event.is_some());
    }

    #[tokio::test]
    async fn an_ask_of_a_turn_that_is_being_stopped_is_withdrawn() {
        let (answer, event) = ask(
            "session/request_permission",
            permission(&["reject_once"]),
            true,
        )
        .await;
        assert_eq!(
            answer["result"]["outcome"],
            json!({ "outcome": "cancelled" })
        );
        assert_eq!(event, None);
        let (answer, _) = ask("elicitation/create", json!({ "message": "?" }), true).await;
        assert_eq!(answer["result"]["action"], "cancel");
    }

    #[tokio::test]
    async fn an_unknown_request_is_refused_and_a_malformed_ask_is_visible() {
        let (answer, event) = ask("fs/write_text_file", json!({ "path": "/x" }), false).await;
        assert_eq!((&answer["error"]["code"], event), (&json!(-32601), None));
        let (answer, event) =
            ask("session/request_permission", json!({ "options": 7 }), false).await;
        assert_eq!(answer["error"]["code"], -32602);
        assert_eq!(event.unwrap().data["code"], "ASK_UNREADABLE");
    }
}
