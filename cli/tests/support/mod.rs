//! The command as another process, and what the tests look for around it.
#![allow(dead_code)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tangle_sandbox::sandbox::Client;

/// How long a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The command, with nothing of this machine's settings and no agent but its own.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tangle-sandbox"));
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command to its end, at most a minute.
pub fn run(command: &mut Command) -> Ran {
    let child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(PATIENCE).is_err() {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    watch.join().unwrap();
    Ran::from(output)
}

/// What a command left.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A running `serve`; it is killed when it is dropped.
pub struct Served {
    /// The base URL that it printed.
    pub base_url: String,
    /// What it printed about its key.
    pub key_line: String,
    child: Child,
}

impl Served {
    /// Starts it on a free port.
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, |_| {})
    }

    /// The same with other settings.
    pub fn start_with(folder: &Path, configure: impl FnOnce(&mut Command)) -> Self {
        let folder = folder.to_str().unwrap();
        let mut command = command(&["serve", "--data-dir", folder, "--address", "127.0.0.1:0"]);
        configure(&mut command);
        let mut child = command.spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.as_mut().unwrap());
        let (mut base_url, mut key_line) = (String::new(), String::new());
        printed.read_line(&mut base_url).unwrap();
        printed.read_line(&mut key_line).unwrap();
        let found = base_url.strip_prefix("base URL: ");
        let Some(base_url) = found.map(|url| url.trim().to_owned()) else {
            let ran = Ran::from(child.wait_with_output().unwrap());
            panic!("it did not serve: {ran:?}");
        };
        Self {
            base_url,
            key_line,
            child,
        }
    }

    /// A client with the key that stands in the data directory.
    pub fn client(&self, folder: &Path) -> Client {
        let key = std::fs::read_to_string(folder.join("api-key")).unwrap();
        Client::builder(&*self.base_url, key).build().unwrap()
    }

    /// The bytes of memory that it holds.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap() << 10
    }

    /// Kills it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end and waits; its status and what it had still printed.
    pub fn terminate(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let status = self.ended();
        let mut rest = String::new();
        let (mut out, mut err) = (self.child.stdout.take(), self.child.stderr.take());
        out.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        err.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        (status, rest)
    }

    fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the command does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that were started for a data directory: it stands in their environment.
pub fn processes_of(folder: &Path) -> Vec<u32> {
    let wanted = folder.canonicalize().unwrap();
    let wanted = wanted.to_str().unwrap().as_bytes().to_vec();
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != own)
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .windows(wanted.len())
                .any(|window| window == wanted)
        })
        .collect()
}

/// Polls until `found` gives something; panics after a minute, naming what was waited for.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Numbers that look random and are the same each time.
pub struct Seeded(u64);

impl Seeded {
    /// The numbers of a seed other than 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of `least..most`.
    pub fn within(&mut self, least: usize, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + (self.0 % (most - least) as u64) as usize
    }
}
