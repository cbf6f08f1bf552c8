//! The bounded log of one agent: its stderr and the stray lines of its stdout.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::tool_part::cut;

/// Bytes of one stray line that are kept.
const LINE_LIMIT: usize = 8 << 10;

/// A log file that stops growing at its limit. Writing never fails a turn.
#[derive(Debug)]
pub(super) struct AgentLog {
    file: Mutex<(File, u64)>,
}

impl AgentLog {
    /// Opens the log of a new process: what an earlier one wrote is replaced.
    pub(super) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self {
            file: Mutex::new((options.open(path)?, limit)),
        })
    }

    /// Notes a line that is no message of the protocol.
    pub(super) fn stray(&self, line: &str) {
        self.write(format!("stdout: {}\n", cut(line, LINE_LIMIT)).as_bytes());
    }

    /// Reads a pipe to its end, past the limit too, so that the agent never waits for its log.
    pub(super) async fn follow(&self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 << 10];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.write(&chunk[..read]);
        }
    }

    fn write(&self, bytes: &[u8]) {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, left) = &mut *held;
        let take = bytes
            .len()
            .min(usize::try_from(*left).unwrap_or(usize::MAX));
        if file.write_all(&bytes[..take]).is_ok() {
            *left -= take as u64;
        }
    }
}
