//! `tangle-sandbox serve`.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tangle_sandbox::contract::Secret;
use tangle_sandbox_local::Local;

/// Where and how to serve.
#[derive(Args)]
pub struct Serve {
    /// Directory of the state and the workspaces; made when it is not there.
    #[arg(long, default_value = ".tangle-sandbox")]
    data_dir: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4100")]
    address: SocketAddr,
    /// The key that clients have to present; without one, a key is made and kept in the data directory.
    #[arg(long, env = "TANGLE_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// The program of OpenCode, when it is not on the path.
    #[arg(long, env = "TANGLE_OPENCODE_BIN")]
    opencode: Option<PathBuf>,
}

impl Serve {
    /// Serves until the process is asked to end.
    pub async fn execute(self) -> Result<ExitCode, Box<dyn Error>> {
        let mut builder = Local::builder()
            .data_dir(&self.data_dir)
            .address(self.address);
        let given = self.api_key.is_some();
        if let Some(key) = self.api_key {
            builder = builder.api_key(Secret::from(key));
        }
        if let Some(opencode) = self.opencode {
            builder = builder.opencode(opencode);
        }
        let local = builder.start().await?;
        println!("base URL: {}", local.base_url());
        if given {
            println!("API key:  as given");
        } else {
            println!(
                "API key:  in {}",
                local.data_dir().join("api-key").display()
            );
        }
        ended().await?;
        local.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Waits for the interrupt from the terminal or the termination signal.
async fn ended() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
