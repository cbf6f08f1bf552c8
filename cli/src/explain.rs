//! What a failure means for the person at the terminal, and what to do next.

use std::error::Error;
use std::fmt;

use tangle_sandbox::sandbox::{self, Client};
use tangle_sandbox::transport;
use tangle_sandbox_local::agent::KnownAgent;

/// A failure in plain words, with what caused it.
#[derive(Debug)]
pub struct Explained {
    text: String,
    cause: Option<sandbox::Error>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Explained {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// Explains why the deployment could not be used; what needs no explanation stays as it is.
pub fn deployment(client: &Client, error: sandbox::Error) -> Box<dyn Error> {
    use transport::Error as E;
    let base = client.base_url();
    let sandbox::Error::Call(call) = &error else {
        return error.into();
    };
    let text = match call {
        E::Network { .. } => format!(
            "the deployment at {base} cannot be reached: is it running? `tangle-sandbox serve` starts one"
        ),
        E::Timeout { .. } => format!("the deployment at {base} did not answer in time"),
        E::Auth { .. } | E::Forbidden { .. } => format!(
            "the deployment at {base} refused the API key: `tangle-sandbox serve` tells where its key is, give it in TANGLE_API_KEY"
        ),
        E::Protocol { .. } | E::Other { .. } | E::NotSupported { .. } | E::NotFound { .. } => {
            format!(
                "what answers at {base} does not serve this: is it a deployment of the sandbox service?"
            )
        }
        _ => return error.into(),
    };
    let cause = Some(error);
    Box::new(Explained { text, cause })
}

/// Explains why no sandbox was made: when the deployment does not offer the backend, which ones it does.
pub async fn create(client: &Client, backend: &str, error: sandbox::Error) -> Box<dyn Error> {
    if error.code().as_str() != "VALIDATION_ERROR" {
        return deployment(client, error);
    }
    let Ok(offered) = client.list_backends().await else {
        return deployment(client, error);
    };
    if offered.iter().any(|entry| entry.type_ == backend) {
        return deployment(client, error);
    }
    let mut text = match KnownAgent::from_name(backend) {
        Some(KnownAgent::OpenCode) => "OpenCode is not installed where the deployment runs: install it \
             (`npm install -g opencode-ai`), or name its program in TANGLE_OPENCODE_BIN, then try again"
            .to_owned(),
        _ => "the deployment has no such backend".to_owned(),
    };
    text.push_str("\nbackends that can be given with --backend:");
    for entry in &offered {
        let description = entry.description.as_deref().or(entry.name.as_deref());
        let line = format!(
            "\n  {:<12} {}",
            entry.type_,
            description.unwrap_or_default()
        );
        text.push_str(line.trim_end());
    }
    if offered.is_empty() {
        text.push_str(" none");
    }
    Box::new(Explained { text, cause: None })
}
