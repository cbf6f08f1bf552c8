//! One shell command (wire protocol, 14.1).

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use tangle_sandbox::contract::limits;
use tangle_sandbox::contract::types::{ExecOutput, ExecRequest};

use super::answer::{Fault, keyed};
use super::call::Call;
use super::create::check_variable;
use super::files::{blocking, refusal};
use super::request::document;
use super::sessions;
use crate::process::{ExecOutcome, ExecSpec, Home, Marker, exec};
use crate::run::mark_processes;
use crate::store::sandboxes::SandboxRow;
use crate::workspace::{PathError, Workspace};

/// `POST R/terminals/commands`.
pub(super) async fn command(call: Call) -> Result<Response, Fault> {
    let (deployment, running) = (call.deployment.clone(), call.running());
    let wanted: ExecRequest = document(call.request, deployment.settings.other_body).await?;
    let (sandbox, stay) = running.await?;
    if wanted.command.contains('\0') {
        return Err(Fault::field("command", "holds no NUL"));
    }
    for (name, value) in wanted.env.iter().flatten() {
        check_variable("env", name, value)?;
    }
    if let Some(session) = &wanted.session_id {
        sessions::find(&deployment, &sandbox.id, session).await?;
    }
    let root = deployment.places.workspace(&sandbox.id);
    let home = deployment.places.home(&sandbox.id);
    let cwd = wanted
        .cwd
        .as_ref()
        .map_or(".", |cwd| cwd.as_str())
        .to_owned();
    let spec = ExecSpec {
        command: wanted.command,
        cwd: root.join(relative(&root, &cwd)),
        env: Vec::new(),
        timeout: wanted
            .timeout
            .map(|limit| Duration::from_millis(limit.get())),
        output_limit: deployment.settings.exec_output,
    };
    let found = blocking(move || Ok(Workspace::open(&root)?.has_folder(&cwd))).await?;
    found.map_err(bad_folder)?;
    let home = blocking(move || Ok(Home::create(home)?)).await?;
    let more = wanted.env.unwrap_or_default();
    let spec = ExecSpec {
        env: environment(&home, &sandbox, more.into_iter().collect()),
        ..spec
    };
    mark_processes(&deployment, &sandbox).await?;
    let (marker, limit) = (Marker::run(), spec.timeout);
    let outcome = tokio::select! {
        outcome = exec(spec, &marker) => outcome,
        () = stay.leave().cancelled() => {
            return Err(Fault::state("running", None, "the sandbox is being stopped, the command was ended"));
        }
    };
    answer(limit, outcome)
}

/// What a folder that cannot be worked in means for the caller.
fn bad_folder(error: PathError) -> Fault {
    match error {
        PathError::Absent => Fault::field("cwd", "must be a folder that is there"),
        PathError::Malformed | PathError::NotAFile | PathError::NotADirectory => {
            Fault::field("cwd", error.to_string())
        }
        other => {
            let rule = other.to_string();
            let fault = refusal(other);
            Fault::new(fault.status, fault.code, format!("`cwd` {rule}"))
                .with("fields", serde_json::json!({ "cwd": rule }))
        }
    }
}

/// The fixed environment, then the sandbox's own variables, then those of the request.
pub(crate) fn environment(
    home: &Home,
    sandbox: &SandboxRow,
    more: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let own: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&sandbox.env).unwrap_or_default();
    let mut env = home.environment();
    env.extend(own);
    env.extend(more);
    env.push(Marker::sandbox(&*sandbox.marker).entry());
    env
}

/// A folder below the workspace, whichever way it is written; what leads outside is refused elsewhere.
fn relative<'a>(root: &Path, cwd: &'a str) -> &'a str {
    let root = root.to_string_lossy();
    let below = cwd.strip_prefix(&*root).unwrap_or(cwd);
    below.trim_start_matches('/')
}

fn answer(
    limit: Option<Duration>,
    outcome: std::io::Result<ExecOutcome>,
) -> Result<Response, Fault> {
    let outcome = outcome.map_err(|error| match error.kind() {
        ErrorKind::ArgumentListTooLong => Fault::field(
            "command",
            "is longer, with its environment, than the system takes",
        ),
        // It was a directory when it was looked at.
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Fault::field("cwd", "must be a directory")
        }
        kind => Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            format!("the command cannot be started: {kind}"),
        ),
    })?;
    let truncated = outcome.truncated;
    let (stdout, stderr) = (
        text(outcome.stdout, truncated),
        text(outcome.stderr, truncated),
    );
    if outcome.timed_out {
        let limit = limit.unwrap_or_default().as_millis() as u64;
        let (stdout, stderr, cut) = for_an_error(stdout, stderr);
        let fault = Fault::new(
            StatusCode::GATEWAY_TIMEOUT,
            "EXEC_TIMEOUT",
            format!(
                "the command ran longer than its limit of {limit} ms (`timeout`) and its processes were ended"
            ),
        )
        .with("timeoutMs", limit)
        .with("stdout", stdout)
        .with("stderr", stderr);
        return Err(match truncated || cut {
            true => fault.with("truncated", true),
            false => fault,
        });
    }
    let signalled = outcome.signal.map(|signal| 128 + signal);
    Ok(keyed(
        "result",
        &ExecOutput {
            exit_code: i64::from(outcome.exit_code.or(signalled).unwrap_or(-1)),
            stdout,
            stderr,
            duration: outcome.duration.as_secs_f64() * 1000.0,
            truncated: truncated.then_some(true),
        },
    ))
}

/// The beginning of both, so that a client reads the whole body of the error; true when something was cut.
fn for_an_error(mut stdout: String, mut stderr: String) -> (String, String, bool) {
    // Room for everything else of the body.
    let room = limits::MAX_ERROR_BODY - (8 << 10);
    let errors = escaped(&stderr, room / 2);
    let out = escaped(&stdout, room - errors.1);
    let errors = escaped(&stderr, room - out.1);
    let cut = out.0 < stdout.len() || errors.0 < stderr.len();
    stdout.truncate(out.0);
    stderr.truncate(errors.0);
    (stdout, stderr, cut)
}

/// How many bytes of a text fit into `room` bytes of JSON, and how many of those they take.
fn escaped(text: &str, room: usize) -> (usize, usize) {
    let (mut bytes, mut taken) = (0, 0);
    for character in text.chars() {
        let more = match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if taken + more > room {
            break;
        }
        bytes += character.len_utf8();
        taken += more;
    }
    (bytes, taken)
}

/// Output as text; a character that was cut in two by the bound is left out.
fn text(mut bytes: Vec<u8>, truncated: bool) -> String {
    if truncated
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
