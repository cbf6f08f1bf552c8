//! A scripted model endpoint for tests: the chat-completions dialect, streamed, on loopback. No network, no account.
//!
//! The script stands in the newest user message that has one, one directive a line:
//!
//! ```text
//! > say TEXT          assistant text
//! > think TEXT        reasoning text
//! > tool NAME JSON    a tool call; the answer ends here, and the next request goes on after it
//! > hang              headers, then silence
//! > http STATUS       an HTTP error
//! ```
//!
//! A request without tools (a title) gets plain text. It counts its calls and refuses every key but its own.
#![allow(dead_code)]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

/// The key that the endpoint accepts.
pub const KEY: &str = "sk-the-real-provider-key";

/// A running endpoint; dropping it stops it.
pub struct Model {
    /// Its base URL, with `/v1`.
    pub base_url: String,
    calls: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

impl Model {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let calls = Arc::<AtomicUsize>::default();
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(calls.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            base_url,
            calls,
            server,
        }
    }

    /// Accepted calls with tools so far, which is how often a turn asked the model.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Step {
    verb: String,
    rest: String,
}

async fn complete(
    State(calls): State<Arc<AtomicUsize>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let key = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if key != Some(&format!("Bearer {KEY}")) {
        return refusal(StatusCode::UNAUTHORIZED);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refusal(StatusCode::BAD_REQUEST);
    };
    let has_tools = body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let number = if has_tools {
        calls.fetch_add(1, Ordering::SeqCst) + 1
    } else {
        0
    };
    let steps = if has_tools {
        due(&body)
    } else {
        vec![step("say", "a title")]
    };
    if let Some(status) = steps.iter().find(|step| step.verb == "http") {
        return refusal(StatusCode::from_u16(status.rest.trim().parse().unwrap()).unwrap());
    }
    let hangs = steps.iter().any(|step| step.verb == "hang");
    let chunks: Vec<_> = frames(number, &steps)
        .into_iter()
        .map(|frame| Ok::<_, Infallible>(Bytes::from(frame)))
        .collect();
    let body = if hangs {
        Body::from_stream(stream::iter(chunks.into_iter().take(0)).chain(stream::pending()))
    } else {
        Body::from_stream(stream::iter(chunks))
    };
    ([("content-type", "text/event-stream")], body).into_response()
}

/// The steps to play: those after the last tool call that was answered, up to the next one.
fn due(body: &Value) -> Vec<Step> {
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&empty);
    let scripted = |message: &Value| {
        message["role"] == "user" && text(message).lines().any(|line| line.starts_with("> "))
    };
    let Some(at) = messages.iter().rposition(scripted) else {
        return vec![step("say", "ok")];
    };
    let script: Vec<Step> = text(&messages[at])
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .map(|line| {
            line.split_once(' ')
                .map_or_else(|| step(line, ""), |(verb, rest)| step(verb, rest))
        })
        .collect();
    let answered = messages[at..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .count();
    let tools = script
        .iter()
        .enumerate()
        .filter(|(_, step)| step.verb == "tool")
        .map(|(at, _)| at);
    let from = answered
        .checked_sub(1)
        .and_then(|last| tools.clone().nth(last))
        .map_or(0, |at| at + 1);
    let to = tools
        .clone()
        .find(|at| *at >= from)
        .map_or(script.len(), |at| at + 1);
    let due = script[from..to].to_vec();
    if due.is_empty() {
        vec![step("say", "done")]
    } else {
        due
    }
}

fn frames(number: usize, steps: &[Step]) -> Vec<String> {
    let frame = |body: Value| {
        let mut chunk = json!({ "id": format!("c{number}"), "object": "chat.completion.chunk", "created": 1, "model": "fake" });
        chunk
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value| frame(json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let mut frames = Vec::new();
    let mut reason = "stop";
    for Step { verb, rest } in steps {
        match &**verb {
            "say" => frames.push(delta(
                json!({ "role": "assistant", "content": format!("{rest}\n") }),
            )),
            "think" => frames.push(delta(
                json!({ "role": "assistant", "reasoning_content": format!("{rest}\n") }),
            )),
            "tool" => {
                let (name, arguments) = rest.split_once(' ').unwrap();
                reason = "tool_calls";
                frames.push(delta(
                    json!({ "tool_calls": [{ "index": 0, "id": format!("call_{number}"),
                    "type": "function", "function": { "name": name, "arguments": arguments } }] }),
                ));
            }
            other => assert_eq!(other, "hang", "the script has an unknown directive"),
        }
    }
    frames.push(frame(
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 } }),
    ));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn step(verb: &str, rest: &str) -> Step {
    Step {
        verb: verb.to_owned(),
        rest: rest.to_owned(),
    }
}

/// The text of a message whose content is a string or a list of parts.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

fn refusal(status: StatusCode) -> Response {
    (status, json!({ "error": { "message": "scripted error", "type": "api_error", "code": "scripted" } }).to_string())
        .into_response()
}
