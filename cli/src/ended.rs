//! How a person or a supervisor asks the command to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The interrupt from the terminal and the termination signal. From its making on they no longer kill the process.
pub struct Ended {
    interrupt: Signal,
    terminate: Signal,
}

impl Ended {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits until the command is asked to end.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
