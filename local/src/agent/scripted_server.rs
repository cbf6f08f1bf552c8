//! The protocol side of the scripted agent: sessions, prompts, cancels.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::acp_types::{
    AgentCapabilities, CancelNotification, Implementation, InitializeResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, ReopenSessionRequest, ReopenSessionResponse,
};
use super::rpc::{Bounds, INTERNAL_ERROR, INVALID_PARAMS, Inbound, Peer, RpcError, connect, parse};
use super::scripted_turn::{Turn, Verdict};

/// Sessions of one process.
const SESSION_LIMIT: usize = 1000;

#[derive(Debug)]
struct Session {
    cwd: PathBuf,
    prompts: Vec<String>,
    /// Present while a turn runs.
    turn: Option<CancellationToken>,
}

#[derive(Clone, Debug, Default)]
struct Sessions(Arc<Mutex<HashMap<String, Session>>>);

/// Serves until the input ends; running turns are cancelled then.
pub(super) async fn serve(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (peer, mut inbound, connection) = connect(input, output, Bounds::default());
    let (sessions, mut turns) = (Sessions::default(), JoinSet::new());
    while let Some(message) = inbound.recv().await {
        while turns.try_join_next().is_some() {}
        match message {
            Inbound::Request { id, method, params } if method == "session/prompt" => {
                // Begun here, so that a cancel right behind it finds it; played in its own task.
                match sessions.begin(&peer, params.as_deref()) {
                    Ok(begun) => drop(turns.spawn(play(sessions.clone(), peer.clone(), id, begun))),
                    Err(error) => peer.refuse(&id, &error).await,
                }
            }
            Inbound::Request { id, method, params } => {
                match sessions.answer(&peer, &method, params.as_deref()).await {
                    Ok(result) => peer.answer(&id, &result).await,
                    Err(error) => peer.refuse(&id, &error).await,
                }
            }
            Inbound::Notification { method, params } if method == "session/cancel" => {
                if let Ok(cancel) = parse::<CancelNotification>(params.as_deref()) {
                    sessions.cancel(&cancel.session_id);
                }
            }
            Inbound::Notification { .. } | Inbound::Stray(_) => {}
        }
    }
    sessions.cancel_all();
    while turns.join_next().await.is_some() {}
    peer.flushed().await;
    drop(connection);
}

impl Sessions {
    async fn answer(
        &self,
        peer: &Peer,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        match method {
            "initialize" => raw(&InitializeResponse {
                protocol_version: 1,
                agent_capabilities: Some(AgentCapabilities {
                    load_session: Some(true),
                    session_capabilities: None,
                }),
                agent_info: Some(Implementation {
                    name: "scripted-agent".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    title: None,
                }),
            }),
            "session/new" => {
                let request: NewSessionRequest = parse(params)?;
                let session_id = format!("scripted-{}", Uuid::new_v4().simple());
                self.open(&session_id, request.cwd.into(), Vec::new())?;
                raw(&NewSessionResponse { session_id })
            }
            "session/load" => {
                let request: ReopenSessionRequest = parse(params)?;
                let prompts = load(&request.session_id)?;
                for prompt in &prompts {
                    let chunk = json!({ "sessionUpdate": "user_message_chunk",
                        "content": { "type": "text", "text": prompt } });
                    peer.notify(
                        "session/update",
                        &json!({ "sessionId": request.session_id, "update": chunk }),
                    )
                    .await;
                }
                self.open(&request.session_id, request.cwd.into(), prompts)?;
                raw(&ReopenSessionResponse {
                    config_options: None,
                })
            }
            _ => Err(RpcError::method_not_found()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, id: &str, cwd: PathBuf, prompts: Vec<String>) -> Result<(), RpcError> {
        let mut sessions = self.lock();
        if sessions.len() >= SESSION_LIMIT {
            return Err(RpcError::new(INTERNAL_ERROR, "too many sessions"));
        }
        sessions.insert(
            id.to_owned(),
            Session {
                cwd,
                prompts,
                turn: None,
            },
        );
        Ok(())
    }

    fn begin(&self, peer: &Peer, params: Option<&RawValue>) -> Result<Begun, RpcError> {
        let request: PromptRequest = parse(params)?;
        let texts: Vec<&str> = request
            .prompt
            .iter()
            .filter_map(|block| block.text.as_deref())
            .collect();
        let (id, script) = (request.session_id, texts.join("\n"));
        let mut sessions = self.lock();
        let session = sessions
            .get_mut(&id)
            .ok_or_else(|| RpcError::new(INVALID_PARAMS, "no such session"))?;
        if session.turn.is_some() {
            return Err(RpcError::new(INVALID_PARAMS, "a turn is running"));
        }
        session.prompts.push(script.clone());
        save(&id, &session.prompts)?;
        let cancel = CancellationToken::new();
        session.turn = Some(cancel.clone());
        let turn = Turn::new(
            peer.clone(),
            id.clone(),
            session.cwd.clone(),
            session.prompts.len(),
            cancel,
        );
        Ok(Begun {
            session: id,
            script,
            turn,
        })
    }

    fn ended(&self, id: &str) {
        if let Some(session) = self.lock().get_mut(id) {
            session.turn = None;
        }
    }

    fn cancel(&self, id: &str) {
        if let Some(turn) = self
            .lock()
            .get(id)
            .and_then(|session| session.turn.as_ref())
        {
            turn.cancel();
        }
    }

    fn cancel_all(&self) {
        self.lock()
            .values()
            .filter_map(|session| session.turn.as_ref())
            .for_each(CancellationToken::cancel);
    }
}

/// A turn that is recorded and can be cancelled.
struct Begun {
    session: String,
    script: String,
    turn: Turn,
}

async fn play(
    sessions: Sessions,
    peer: Peer,
    id: Box<RawValue>,
    Begun {
        session,
        script,
        turn,
    }: Begun,
) {
    let verdict = turn.play(&script).await;
    sessions.ended(&session);
    match verdict {
        Ok(verdict) => {
            let stop_reason = if verdict == Verdict::Done {
                "end_turn"
            } else {
                "cancelled"
            }
            .to_owned();
            peer.answer(
                &id,
                &PromptResponse {
                    stop_reason,
                    usage: Some(usage(&script)),
                },
            )
            .await;
        }
        Err(error) => peer.refuse(&id, &error).await,
    }
}

/// Words stand in for tokens.
fn usage(script: &str) -> Value {
    let words = script.split_whitespace().count();
    json!({ "inputTokens": words, "outputTokens": words, "totalTokens": words * 2 })
}

fn raw(result: &impl serde::Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(result)
        .map_err(|_| RpcError::new(INTERNAL_ERROR, "Internal error"))
}

/// A session's prompts, one JSON string a line, so that another process can load it.
fn file(id: &str) -> Result<PathBuf, RpcError> {
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = home.join(".scripted-agent").join(format!("{id}.jsonl"));
    plain
        .then_some(path)
        .ok_or_else(|| RpcError::new(INVALID_PARAMS, "no such session"))
}

fn save(id: &str, prompts: &[String]) -> Result<(), RpcError> {
    let path = file(id)?;
    let text: String = prompts
        .iter()
        .map(|prompt| format!("{}\n", json!(prompt)))
        .collect();
    std::fs::create_dir_all(path.parent().unwrap_or(&path))
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| {
            RpcError::new(
                INTERNAL_ERROR,
                &format!("the session cannot be stored: {error}"),
            )
        })
}

fn load(id: &str) -> Result<Vec<String>, RpcError> {
    let unknown = || RpcError::new(INVALID_PARAMS, "no such session");
    let text = std::fs::read_to_string(file(id)?).map_err(|_| unknown())?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|_| unknown()))
        .collect()
}
