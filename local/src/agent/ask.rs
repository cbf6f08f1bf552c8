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
/// Bytes of a title in the list.
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
            json!({ "toolCallId": call.tool_call_id, "title": title, "kind": call.kind }),
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
