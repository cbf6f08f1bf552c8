//! The scripted agent at work: one prompt, line by line.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::acp_types::{ElicitationResponse, RequestPermissionResponse};
use super::rpc::{CallError, INTERNAL_ERROR, INVALID_PARAMS, Peer, RpcError};
use crate::process::Group;

/// Bytes of a command's output that are reported.
const OUTPUT_LIMIT: u64 = 1 << 20;
/// How long a background child may keep a command's pipes open.
const LINGER: Duration = Duration::from_millis(500);

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Cancelled,
}

pub(super) struct Turn {
    peer: Peer,
    session: String,
    cwd: PathBuf,
    number: usize,
    cancel: CancellationToken,
    calls: usize,
}

impl Turn {
    pub(super) fn new(
        peer: Peer,
        session: String,
        cwd: PathBuf,
        number: usize,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            peer,
            session,
            cwd,
            number,
            cancel,
            calls: 0,
        }
    }

    pub(super) async fn play(mut self, script: &str) -> Result<Verdict, RpcError> {
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if self.cancel.is_cancelled() || self.step(line).await? == Verdict::Cancelled {
                return Ok(Verdict::Cancelled);
            }
        }
        Ok(Verdict::Done)
    }

    async fn step(&mut self, line: &str) -> Result<Verdict, RpcError> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "say" => self.say(rest).await,
            "think" => self.update(chunk("agent_thought_chunk", rest)).await,
            "run" => return self.run(rest).await,
            "write" => self.write(rest).await?,
            "ask" => return self.ask(rest).await,
            "question" => return self.question(rest).await,
            "plan" => self.plan(rest).await,
            "sleep" => {
                let wait = tokio::time::sleep(Duration::from_millis(number(rest)?));
                return Ok(self
                    .unless_cancelled(wait)
                    .await
                    .map_or(Verdict::Cancelled, |()| Verdict::Done));
            }
            "flood" => return self.flood(number(rest)?).await,
            "fail" => return Err(RpcError::new(INTERNAL_ERROR, rest)),
            "crash" => {
                self.peer.flushed().await;
                std::process::abort();
            }
            "hang" => std::future::pending().await,
            "banner" => self.peer.raw_line(rest.to_owned()).await,
            "giant" => {
                let size = usize::try_from(number(rest)?).unwrap_or(usize::MAX);
                self.peer
                    .raw_line(format!("{{\"x\":\"{}\"}}", "y".repeat(size)))
                    .await;
            }
            "future" => {
                self.update(json!({ "sessionUpdate": "hologram", "depth": 3 }))
                    .await
            }
            "escaped" => self.escaped().await,
            _ => self.say(line).await,
        }
        Ok(Verdict::Done)
    }

    async fn update(&self, update: Value) {
        self.peer
            .notify(
                "session/update",
                &json!({ "sessionId": self.session, "update": update }),
            )
            .await;
    }

    async fn say(&self, text: &str) {
        self.update(chunk("agent_message_chunk", text)).await;
    }

    /// `None` when a cancel came first.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancel.run_until_cancelled(work).await
    }

    async fn call(&mut self, name: &str, title: &str, kind: &str, input: Value) -> String {
        self.calls += 1;
        let id = format!("call_{}_{}", self.number, self.calls);
        self.update(
            json!({ "sessionUpdate": "tool_call", "toolCallId": id, "name": name, "title": title,
            "kind": kind, "status": "in_progress", "rawInput": input }),
        )
        .await;
        id
    }

    async fn called(&self, id: &str, ok: bool, content: Value, output: Value) {
        let status = if ok { "completed" } else { "failed" };
        self.update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
            "content": content, "rawOutput": output }),
        )
        .await;
    }

    async fn run(&mut self, command: &str) -> Result<Verdict, RpcError> {
        let id = self
            .call("run", command, "execute", json!({ "command": command }))
            .await;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(&self.cwd);
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(&mut shell)
            .map_err(|error| failed("the shell cannot be started", &error))?;
        let (stdout, stderr) = (group.stdout(), group.stderr());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let finished = async {
            let reading = async { tokio::join!(drain(stdout, &mut out), drain(stderr, &mut err)) };
            tokio::pin!(reading);
            let read = tokio::select! { _ = &mut reading => true, () = group.exited() => false };
            if !read {
                let _ = tokio::time::timeout(LINGER, reading).await;
            }
            group.exited().await;
        };
        let cancelled = self.unless_cancelled(finished).await.is_none();
        let status = if cancelled {
            group.kill().await
        } else {
            group.reap().await
        };
        let status = status.map_err(|error| failed("the command's end cannot be read", &error))?;
        let mut text = String::from_utf8_lossy(&out).into_owned();
        text.push_str(&String::from_utf8_lossy(&err));
        self.called(
            &id,
            status.success() && !cancelled,
            texts(&text),
            json!({ "exitCode": status.code() }),
        )
        .await;
        Ok(if cancelled {
            Verdict::Cancelled
        } else {
            Verdict::Done
        })
    }

    async fn write(&mut self, rest: &str) -> Result<(), RpcError> {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let (path, text) = (self.cwd.join(name), text.replace("\\n", "\n"));
        let id = self
            .call(
                "write",
                &format!("write {name}"),
                "edit",
                json!({ "path": name, "content": text }),
            )
            .await;
        let old = tokio::fs::read_to_string(&path).await.ok();
        if let Some(folder) = path.parent() {
            let _ = tokio::fs::create_dir_all(folder).await; // the write tells when it could not be made
        }
        let written = tokio::fs::write(&path, &text).await;
        let content = match &written {
            Ok(()) => json!([{ "type": "diff", "path": path, "oldText": old, "newText": text }]),
            Err(error) => texts(&error.to_string()),
        };
        self.called(&id, written.is_ok(), content, Value::Null)
            .await;
        Ok(())
    }

    async fn ask(&mut self, title: &str) -> Result<Verdict, RpcError> {
        let id = self
            .call("ask", title, "execute", json!({ "command": title }))
            .await;
        let request = json!({
            "sessionId": self.session,
            "toolCall": { "toolCallId": id, "title": title, "kind": "execute", "rawInput": { "command": title } },
            "options": [
                { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
                { "optionId": "always", "name": "Always allow", "kind": "allow_always" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
            ],
        });
        let answer = self
            .peer
            .call::<_, RequestPermissionResponse>("session/request_permission", &request);
        let Some(answer) = self.unless_cancelled(answer).await else {
            return Ok(Verdict::Cancelled);
        };
        let Some(option) = answer.map_err(unanswered)?.outcome.option_id else {
            return Ok(Verdict::Cancelled);
        };
        self.called(&id, option != "reject", texts(&option), Value::Null)
            .await;
        self.say(&format!("answer: {option}")).await;
        Ok(Verdict::Done)
    }

    async fn question(&mut self, rest: &str) -> Result<Verdict, RpcError> {
        let mut parts = rest.split('|').map(str::trim);
        let text = parts.next().unwrap_or_default();
        let choices: Vec<Value> = parts
            .map(|choice| json!({ "const": choice, "title": choice }))
            .collect();
        let mut field = json!({ "type": "string", "title": text });
        if !choices.is_empty() {
            field["oneOf"] = choices.into();
        }
        let request = json!({
            "sessionId": self.session, "mode": "form", "message": text,
            "requestedSchema": { "type": "object", "properties": { "answer": field }, "required": ["answer"] },
        });
        let answer = self
            .peer
            .call::<_, ElicitationResponse>("elicitation/create", &request);
        let Some(answer) = self.unless_cancelled(answer).await else {
            return Ok(Verdict::Cancelled);
        };
        let answer = answer.map_err(unanswered)?;
        match answer.action.as_str() {
            "accept" => {
                self.say(&format!("answer: {}", answer.content.unwrap_or_default()))
                    .await
            }
            "decline" => self.say("answer: declined").await,
            _ => return Ok(Verdict::Cancelled),
        }
        Ok(Verdict::Done)
    }

    async fn plan(&self, rest: &str) {
        let entries: Vec<Value> = rest
            .split('|')
            .map(
                |text| json!({ "content": text.trim(), "priority": "medium", "status": "pending" }),
            )
            .collect();
        self.update(json!({ "sessionUpdate": "plan", "entries": entries }))
            .await;
    }

    async fn flood(&self, count: u64) -> Result<Verdict, RpcError> {
        for n in 0..count {
            if self.cancel.is_cancelled() {
                return Ok(Verdict::Cancelled);
            }
            self.say(&format!("{n} ")).await;
        }
        Ok(Verdict::Done)
    }

    async fn escaped(&self) {
        let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": self.session,
            "update": chunk("agent_message_chunk", "a/b \u{1f600}"),
        }});
        let line = line
            .to_string()
            .replace('/', "\\/")
            .replace('\u{1f600}', "\\ud83d\\ude00");
        self.peer.raw_line(line).await;
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn texts(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

fn number(text: &str) -> Result<u64, RpcError> {
    text.trim()
        .parse()
        .map_err(|_| RpcError::new(INVALID_PARAMS, "the script names no number"))
}

fn failed(what: &str, error: &std::io::Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, &format!("{what}: {error}"))
}

fn unanswered(error: CallError) -> RpcError {
    match error {
        CallError::Refused(error) => error,
        CallError::Ended(_) | CallError::Shape => {
            RpcError::new(INTERNAL_ERROR, "the ask was not answered")
        }
    }
}

/// Keeps the first bytes and reads the rest, so that the command never waits.
async fn drain(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    if (&mut pipe)
        .take(OUTPUT_LIMIT)
        .read_to_end(kept)
        .await
        .is_ok()
    {
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
}
