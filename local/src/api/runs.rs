//! Running an agent (wire protocol, 7 and 8).

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tangle_sandbox::contract::digest::Digest;
use tangle_sandbox::contract::types::{InputPart, RunRequest};
use tangle_sandbox::contract::{bounds, limits};

use super::Shared;
use super::answer::{Fault, data};
use super::call::Call;
use super::create::known;
use super::create_fields::honour_interactions;
use super::request::{document, header_text};
use super::sessions::{find_execution, result_of};
use crate::lifecycle;
use crate::occupancy::Stay;
use crate::run::admission::{Admitted, Asked, admit};
use crate::run::backend::{Chosen, choose};
use crate::run::engine::{self, Run};
use crate::run::live::Attached;
use crate::run::reader::{self, Position};
use crate::store::executions::ExecutionRow;
use crate::store::sandboxes::SandboxRow;

/// A request that was admitted, or joined a run.
struct Joined {
    execution: ExecutionRow,
    position: Position,
    attached: Option<Attached>,
    /// True when the request started nothing and brought no cursor.
    replayed: bool,
}

/// `POST R/agents/run/stream`.
pub(super) async fn stream(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let header = header_text(call.request.headers(), "last-event-id")?.map(str::to_owned);
    let wanted: RunRequest = document(call.request, deployment.settings.run_body).await?;
    let (sandbox, stay) = running.await?;
    if let Some(header) = &header
        && wanted.last_event_id.as_deref() != Some(header)
    {
        return Err(Fault::field(
            "lastEventId",
            "must be the cursor of the header `Last-Event-ID`",
        ));
    }
    let joined = join(&deployment, sandbox, stay, wanted).await?;
    match joined.position {
        Position::Over => Ok(StatusCode::NO_CONTENT.into_response()),
        Position::After(number) => Ok(reader::answer(
            &deployment,
            &joined.execution,
            number,
            joined.attached,
            joined.replayed,
        )),
    }
}

/// `POST R/agents/run`: the same, answered when the run is over.
pub(super) async fn blocking(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let wanted: RunRequest = document(call.request, deployment.settings.run_body).await?;
    let (sandbox, stay) = running.await?;
    if wanted.last_event_id.is_some() {
        return Err(Fault::field("lastEventId", "belongs to the stream"));
    }
    let joined = join(&deployment, sandbox, stay, wanted).await?;
    reader::over(&deployment, &joined.execution).await;
    let e = &joined.execution;
    let execution = find_execution(&deployment, &e.sandbox, &e.session, &e.id).await?;
    let result = result_of(&deployment, &execution).await?;
    if execution.status == "completed" {
        return Ok(data(&result));
    }
    let text = |name: &str, or: &str| result[name].as_str().unwrap_or(or).to_owned();
    let message = text("error", "the run was cancelled");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Err(Fault::new(status, "AGENT_EXECUTION_FAILED", message)
        .with("reason", text("errorCode", &execution.status))
        .with("executionId", execution.id)
        .with("sessionId", execution.session))
}

/// Admits the request and starts its run, or finds the run that it joins.
async fn join(
    deployment: &Shared,
    sandbox: SandboxRow,
    stay: Stay,
    wanted: RunRequest,
) -> Result<Joined, Fault> {
    wanted.rules()?;
    if !sandbox.managed {
        return Err(Fault::not_supported(
            "runs in a sandbox that was made with `agent: false`",
        ));
    }
    supported(&wanted)?;
    let prompt = prompt(&wanted)?;
    let chosen = chosen(deployment, &sandbox, &wanted);
    let asked = asked(&wanted, &sandbox, &prompt, chosen)?;
    let owner = deployment.clone();
    // Whole: a run that is recorded is also started, and a client that leaves meanwhile is a reader that has left.
    lifecycle::whole(deployment, async move {
        let with_cursor = asked.cursor.is_some();
        let fresh = match admit(&owner, asked).await? {
            Admitted::Fresh(fresh) => *fresh,
            Admitted::Known(execution, position) => {
                let live = owner.runs.get(execution.pk);
                return Ok(Joined {
                    execution: *execution,
                    position,
                    attached: live.map(|live| live.attach(&owner)),
                    replayed: !with_cursor,
                });
            }
        };
        let joined = Joined {
            execution: fresh.execution.clone(),
            position: Position::After(0),
            attached: Some(fresh.live.attach(&owner)),
            replayed: false,
        };
        let limit = wanted
            .timeout_ms
            .filter(|_| wanted.detach != Some(true))
            .map(|limit| Duration::from_millis(limit.get()));
        engine::start(Run {
            deployment: owner,
            sandbox,
            stay,
            live: fresh.live,
            execution: fresh.execution,
            session: fresh.session,
            chosen: fresh.chosen,
            prompt,
            limit,
            trace: wanted.trace_id.map(String::from),
        });
        Ok(joined)
    })
    .await
}

/// The agent, should the request start a run.
fn chosen(deployment: &Shared, sandbox: &SandboxRow, wanted: &RunRequest) -> Result<Chosen, Fault> {
    match &wanted.backend {
        Some(backend) => {
            let backend = known(deployment, backend, false)?;
            choose(deployment, sandbox, Some(&backend))
        }
        None => choose(deployment, sandbox, None),
    }
}

fn asked(
    wanted: &RunRequest,
    sandbox: &SandboxRow,
    prompt: &str,
    chosen: Result<Chosen, Fault>,
) -> Result<Asked, Fault> {
    let reference = wanted.run_control_ref.as_ref();
    let session = wanted
        .session_id
        .as_ref()
        .or(reference.map(|reference| &reference.session_id));
    let execution = wanted
        .execution_id
        .as_ref()
        .or(reference.map(|reference| &reference.execution_id));
    Ok(Asked {
        sandbox: sandbox.id.clone(),
        session: session.map(ToString::to_string),
        execution: execution.map(ToString::to_string),
        turn: wanted.turn_id.as_ref().map(ToString::to_string),
        reference: reference.cloned(),
        input: (!prompt.is_empty()).then(|| Digest::of(&json!({ "prompt": prompt }))),
        cursor: wanted.last_event_id.as_ref().map(ToString::to_string),
        detach: wanted.detach == Some(true),
        chosen,
        trace: wanted.trace_id.as_ref().map(ToString::to_string),
        context: context(wanted.metadata.as_ref())?,
    })
}

/// The caller's context as it is recorded. It is part of the result, so that it has to be bounded.
fn context(metadata: Option<&Map<String, Value>>) -> Result<Option<String>, Fault> {
    let Some(metadata) = metadata else {
        return Ok(None);
    };
    let metadata = Value::Object(metadata.clone());
    bounds::record("metadata", &metadata)
        .map_err(|error| Fault::field("metadata", error.to_string()))?;
    let text = metadata.to_string();
    if text.len() > limits::MAX_JSON_BYTES {
        let rule = format!("must be at most {} bytes of JSON", limits::MAX_JSON_BYTES);
        return Err(Fault::field("metadata", rule));
    }
    Ok(Some(text))
}

/// What of the request cannot be honoured yet.
fn supported(wanted: &RunRequest) -> Result<(), Fault> {
    if wanted.messages.is_some() {
        return Err(Fault::field_not_supported(
            "messages",
            "send the turn as `message` or `parts`",
        ));
    }
    let identifier = wanted.id.as_ref().or(wanted.identifier.as_ref());
    if identifier.is_some_and(|identifier| identifier.as_str() != "default") {
        return Err(Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "AGENT_EXECUTION_FAILED",
            "the agent identifier is unknown: there is only `default`",
        ));
    }
    match &wanted.interactions {
        Some(interactions) => honour_interactions(&super::create::redacted(interactions)?),
        None => Ok(()),
    }
}

/// The input as the text that the agent gets.
fn prompt(wanted: &RunRequest) -> Result<String, Fault> {
    if let Some(message) = &wanted.message {
        return Ok(message.clone());
    }
    let parts = wanted.parts.iter().flatten().enumerate();
    let texts: Vec<String> = parts
        .map(|(index, part)| part_text(part, index))
        .collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

fn part_text(part: &InputPart, index: usize) -> Result<String, Fault> {
    match part {
        InputPart::Text { text } => {
            let bytes = STANDARD.decode(text).map_err(|_| {
                Fault::field(
                    &format!("parts.{index}.text"),
                    "must be standard base64 with padding",
                )
            })?;
            String::from_utf8(bytes).map_err(|_| {
                Fault::field(
                    &format!("parts.{index}.text"),
                    "must be UTF-8 after decoding",
                )
            })
        }
        InputPart::File {
            content: Some(content),
            filename,
            ..
        } => {
            let name = filename.as_deref().unwrap_or("a file");
            Ok(format!("{name}:\n{content}"))
        }
        InputPart::File { .. } | InputPart::Image { .. } => Err(Fault::field_not_supported(
            &format!("parts.{index}"),
            "only text and files with `content` can be given to an agent",
        )),
    }
}
