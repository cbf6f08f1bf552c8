//! `tangle-sandbox serve`.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tangle_sandbox::contract::Secret;
use tangle_sandbox_local::{Local, StartError};

use crate::ended::Ended;

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
        if let Some(key) = &self.api_key {
            builder = builder.api_key(Secret::from(key.as_str()));
        }
        if let Some(opencode) = &self.opencode {
            builder = builder.opencode(opencode);
        }
        let mut ended = Ended::listen()?;
        let started = tokio::select! {
            started = builder.start() => started,
            () = ended.asked() => return Ok(ExitCode::SUCCESS),
        };
        let local = started.map_err(|error| self.explain(error))?;
        let key = match given {
            true => "as given".to_owned(),
            false => format!("in {}", local.data_dir().join("api-key").display()),
        };
        // Whoever reads this may have left; the deployment serves all the same.
        let _ = writeln!(
            std::io::stdout(),
            "base URL: {}\nAPI key:  {key}",
            local.base_url()
        );
        ended.asked().await;
        local.stop().await;
        Ok(ExitCode::SUCCESS)
    }

    /// Names the directory or the address that an error is about.
    fn explain(&self, error: StartError) -> Box<dyn Error> {
        let folder = self.data_dir.display();
        match error {
            StartError::InUse => format!(
                "another server uses the data directory {folder}: stop it, or name another one with --data-dir"
            )
            .into(),
            StartError::Address(cause) => format!(
                "the address {} cannot be listened on: {cause}; name another one with --address (port 0 takes a free one)",
                self.address
            )
            .into(),
            StartError::DataDir(cause) => {
                format!("the data directory {folder} cannot be used: {cause}").into()
            }
            StartError::Full => format!("the disk of the data directory {folder} is full").into(),
            other => other.into(),
        }
    }
}
