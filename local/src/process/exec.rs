//! One shell command with bounded output and a time limit (wire protocol, 14.1).

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tangle_sandbox::contract::limits;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::sweep::{SweepOnDrop, sweep};
use super::{Group, Marker};

/// Bytes kept of each output stream unless a smaller limit is given: 10 MiB.
pub const OUTPUT_LIMIT: usize = limits::MAX_EXEC_OUTPUT;

/// How long the pipes may stay open after the shell has ended, before what holds them is ended.
const LINGER: Duration = Duration::from_millis(500);

/// How long a pipe may take to end after everything that held it was killed.
const LAST_DRAIN: Duration = Duration::from_secs(2);

/// A command for the shell.
#[derive(Clone)]
pub struct ExecSpec {
    /// The text given to `sh -c`.
    pub command: String,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment; nothing else is inherited.
    pub env: Vec<(String, String)>,
    /// The time limit; `None` waits as long as the command runs.
    pub timeout: Option<Duration>,
    /// Bytes kept of each stream; at most [`OUTPUT_LIMIT`].
    pub output_limit: usize,
}

impl std::fmt::Debug for ExecSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ExecSpec")
            .field("env", &names)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutcome {
    /// The shell's exit code; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the shell.
    pub signal: Option<i32>,
    /// The first bytes of standard output, exact.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error, exact.
    pub stderr: Vec<u8>,
    /// From start to end.
    pub duration: Duration,
    /// True when one stream had more than was kept.
    pub truncated: bool,
    /// True when the time limit ended the command; its processes are then gone.
    pub timed_out: bool,
}

/// Runs a command until it ends or its time is over. `marker` must be fresh: everything that holds it is ended when the
/// time is over, when a background child keeps a pipe open after the shell's end, and when this future is dropped.
///
/// A background child that has let go of both pipes (`server >log 2>&1 &`) goes on after the command; it ends with its
/// sandbox, by the sandbox's own marker in `env`.
///
/// # Errors
/// When the shell cannot be started, for example because `cwd` is not a directory.
pub async fn exec(spec: ExecSpec, marker: &Marker) -> io::Result<ExecOutcome> {
    let started = Instant::now();
    let mut group = start(&spec, marker)?;
    let guard = SweepOnDrop::new(marker.clone());
    let limit = spec.output_limit.min(OUTPUT_LIMIT);
    let (mut stdout, mut stderr) = (Kept::new(limit), Kept::new(limit));
    let (out, err) = (group.stdout(), group.stderr());

    let (timed_out, status) = {
        let draining = async { tokio::join!(stdout.drain(out), stderr.drain(err)) };
        tokio::pin!(draining);
        let mut drained = false;
        let limit = spec
            .timeout
            .map(|limit| tokio::time::Instant::now() + limit);
        let timed_out = loop {
            tokio::select! {
                () = group.exited() => break false,
                _ = &mut draining, if !drained => drained = true,
                () = until(limit) => break true,
            }
        };
        if !timed_out && !drained {
            drained = tokio::time::timeout(LINGER, &mut draining).await.is_ok();
        }
        let status = if timed_out || !drained {
            group.kill().await?
        } else {
            group.reap().await?
        };
        if timed_out || !drained {
            sweep(marker, None).await;
        }
        if !drained {
            let _ = tokio::time::timeout(LAST_DRAIN, &mut draining).await;
        }
        (timed_out, status)
    };
    guard.disarm();
    Ok(ExecOutcome {
        exit_code: status.code(),
        signal: status.signal(),
        truncated: stdout.more || stderr.more,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        duration: started.elapsed(),
        timed_out,
    })
}

fn start(spec: &ExecSpec, marker: &Marker) -> io::Result<Group> {
    Group::spawn(
        Command::new("/bin/sh")
            .arg("-c")
            .arg(&spec.command)
            .current_dir(&spec.cwd)
            .env_clear()
            .envs(spec.env.iter().cloned())
            .envs([marker.entry()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
}

async fn until(limit: Option<tokio::time::Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// The first bytes of a stream; the rest is read and dropped, so that the writer never waits.
struct Kept {
    limit: usize,
    bytes: Vec<u8>,
    more: bool,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
            more: false,
        }
    }

    async fn drain(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; 64 << 10];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            let keep = read.min(self.limit - self.bytes.len());
            self.bytes.extend_from_slice(&chunk[..keep]);
            self.more |= keep < read;
        }
    }
}
