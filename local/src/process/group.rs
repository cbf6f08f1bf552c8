//! A command that leads its own process group, so that a signal reaches what it started.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

/// How often the end of a process is looked for when its signal cannot be listened to.
const POLL: Duration = Duration::from_millis(10);

/// How long a lost signal can delay the notice of an end.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A running process group. The group is signalled only while its leader is not yet reaped, since the number could
/// belong to somebody else afterwards. Dropping it kills the group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    id: Pid,
}

impl Group {
    /// Starts `command` as the leader of a new group.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self { child, id })
    }

    /// The id of the group, which is the process id of its leader.
    #[must_use]
    pub fn id(&self) -> Pid {
        self.id
    }

    /// The leader's standard input, once.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The leader's standard output, once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The leader's standard error, once.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Signals every process of the group; nothing happens once the leader is reaped.
    pub fn signal(&self, signal: Signal) {
        if self.child.id().is_some() {
            let _ = kill_process_group(self.id, signal); // an empty group is what we want
        }
    }

    /// True when the leader has ended (it may still be unreaped).
    #[must_use]
    pub fn has_exited(&self) -> bool {
        if self.child.id().is_none() {
            return true;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.id), options), Ok(None))
    }

    /// Waits until the leader has ended, without reaping it. Cancel safe.
    pub async fn exited(&self) {
        let mut ends = signal(SignalKind::child()).ok(); // before the first look, so that no end is missed
        while !self.has_exited() {
            match &mut ends {
                Some(ends) => drop(tokio::time::timeout(LOOK_AGAIN, ends.recv()).await),
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Waits for the leader and reaps it; what else is in the group goes on and can no longer be signalled.
    ///
    /// # Errors
    /// When the leader's status cannot be read.
    pub async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Kills the whole group, then reaps the leader.
    ///
    /// # Errors
    /// When the leader's status cannot be read.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.reap().await
    }

    /// Ends the group in order: `TERM`, up to `patience` for the leader to end, then [`Group::kill`].
    ///
    /// # Errors
    /// When the leader's status cannot be read.
    pub async fn end(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        if !self.has_exited() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(patience, self.exited()).await;
        }
        self.kill().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Signal, test_kill_process_group};
    use tokio::process::Command;

    use super::Group;

    fn shell(text: &str) -> Group {
        Group::spawn(Command::new("/bin/sh").args(["-c", text])).unwrap()
    }

    #[tokio::test]
    async fn exited_does_not_reap() {
        let mut group = shell("exit 3");
        group.exited().await;
        group.signal(Signal::TERM);
        assert_eq!(group.reap().await.unwrap().code(), Some(3));
    }

    #[tokio::test]
    async fn a_group_that_ignores_term_is_killed_with_its_children() {
        let mut group = shell("trap '' TERM; sleep 300 & sleep 300 & while :; do wait; done");
        let id = group.id();
        group.end(Duration::from_millis(100)).await.unwrap();
        for _ in 0..500 {
            if test_kill_process_group(id).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the group still has members");
    }
}
