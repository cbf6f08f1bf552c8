//! Ends every process that holds a marker, also those that left the process group and the session.
//!
//! On Linux `/proc/PID/environ` tells. Elsewhere nothing can be found this way, and the outcome says so.

use rustix::process::Pid;

use super::Marker;

/// What a sweep did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Processes that were killed.
    pub killed: usize,
    /// True when two looks in a row found no process with the marker; false when the bound on looks was reached first,
    /// or on a system that cannot be searched.
    pub clean: bool,
}

/// Kills every process that holds `marker` until none is left; processes of the group `spare` stay. At most 200 looks.
pub async fn sweep(marker: &Marker, spare: Option<Pid>) -> Swept {
    let marker = marker.clone();
    let search = tokio::task::spawn_blocking(move || system::sweep(&marker, spare));
    search.await.unwrap_or(Swept {
        killed: 0,
        clean: false,
    })
}

/// The ids of all living processes that hold `marker`; empty on a system that cannot be searched.
#[must_use]
pub fn marked(marker: &Marker) -> Vec<Pid> {
    system::marked(marker)
}

/// Sweeps when dropped, for a future that may be dropped in the middle; [`SweepOnDrop::disarm`] ends the duty.
#[derive(Debug)]
pub(crate) struct SweepOnDrop(Option<Marker>);

impl SweepOnDrop {
    pub(crate) fn new(marker: Marker) -> Self {
        Self(Some(marker))
    }

    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for SweepOnDrop {
    fn drop(&mut self) {
        let Some(marker) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || system::sweep(&marker, None))),
            Err(_) => drop(system::sweep(&marker, None)),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Marker, Swept};

    const LOOKS: usize = 200;
    const PAUSE: Duration = Duration::from_millis(5);
    const ENVIRON_BYTES: u64 = 8 << 20;

    pub(super) fn sweep(marker: &Marker, spare: Option<Pid>) -> Swept {
        let (mut killed, mut empty) = (0, 0);
        for _ in 0..LOOKS {
            let hit = processes()
                .filter(|pid| kill_if_marked(*pid, marker, spare))
                .count();
            killed += hit;
            empty = if hit == 0 { empty + 1 } else { 0 };
            // A process in the middle of `execve` shows no environment for a moment: one empty look proves nothing.
            if empty == 2 {
                return Swept {
                    killed,
                    clean: true,
                };
            }
            std::thread::sleep(PAUSE);
        }
        Swept {
            killed,
            clean: false,
        }
    }

    pub(super) fn marked(marker: &Marker) -> Vec<Pid> {
        processes().filter(|pid| holds(*pid, marker)).collect()
    }

    fn processes() -> impl Iterator<Item = Pid> {
        let own = rustix::process::getpid();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            .filter(move |pid| *pid != own)
    }

    /// Read from `stat`, since `getpgid` must not see the 0 of a process outside of our PID namespace. The group is the
    /// third field after the name, which may itself hold spaces and brackets.
    fn in_group(pid: Pid, group: Pid) -> bool {
        let stat =
            std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let found = stat
            .rsplit_once(')')
            .and_then(|(_, fields)| fields.split_whitespace().nth(2)?.parse().ok());
        found == Some(group.as_raw_nonzero().get())
    }

    fn holds(pid: Pid, marker: &Marker) -> bool {
        let mut environ = Vec::new();
        let file = std::fs::File::open(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        let read = file.and_then(|file| file.take(ENVIRON_BYTES).read_to_end(&mut environ));
        read.is_ok() && marker.is_in(&environ)
    }

    /// The descriptor is opened before the environment is read, so the signal cannot hit a later owner of the number.
    fn kill_if_marked(pid: Pid, marker: &Marker, spare: Option<Pid>) -> bool {
        let descriptor: Option<OwnedFd> = pidfd_open(pid, PidfdFlags::empty()).ok();
        if !holds(pid, marker) || spare.is_some_and(|group| in_group(pid, group)) {
            return false;
        }
        match descriptor {
            Some(descriptor) => pidfd_send_signal(&descriptor, Signal::KILL).is_ok(),
            None => rustix::process::kill_process(pid, Signal::KILL).is_ok(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use rustix::process::Pid;

    use super::{Marker, Swept};

    pub(super) fn sweep(_: &Marker, _: Option<Pid>) -> Swept {
        Swept {
            killed: 0,
            clean: false,
        }
    }

    pub(super) fn marked(_: &Marker) -> Vec<Pid> {
        Vec::new()
    }
}
