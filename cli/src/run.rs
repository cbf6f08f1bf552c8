//! `tangle-sandbox run`.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use tangle_sandbox::sandbox::{
    Client, Deadline, Event, EventKind, NewSandbox, Prompt, PromptResult, Provisioning, Sandbox,
};
use tangle_sandbox_local::Local;

/// One turn of a coding agent in a new sandbox. Exit code 0: it succeeded; 1: it failed; 2: it could not be run.
#[derive(Args)]
pub struct Run {
    /// What the agent is asked.
    prompt: String,
    /// Backend type, as the deployment's catalogue names it.
    #[arg(long, default_value = "scripted")]
    backend: String,
    /// Model of the backend.
    #[arg(long)]
    model: Option<String>,
    /// Deployment to use; without one, an embedded deployment is started for this turn.
    #[arg(long, env = "TANGLE_BASE_URL")]
    base_url: Option<String>,
    /// Key of that deployment.
    #[arg(long, env = "TANGLE_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// Endpoint of the model, when the backend should not use its own; its key is read from `TANGLE_MODEL_API_KEY`.
    #[arg(long, env = "TANGLE_MODEL_BASE_URL")]
    model_base_url: Option<String>,
    /// How long to wait for the turn, in seconds.
    #[arg(long)]
    deadline: Option<u64>,
    /// Leave the sandbox behind and print its id.
    #[arg(long)]
    keep: bool,
}

impl Run {
    /// Runs the turn against the given deployment, or against one of its own.
    pub async fn execute(self) -> Result<ExitCode, Box<dyn Error>> {
        let Some(url) = &self.base_url else {
            let data = tempfile::tempdir()?;
            let local = Local::builder().data_dir(data.path()).start().await?;
            let client = Client::builder(local.base_url(), local.api_key().clone()).build()?;
            let result = self.turn(&client).await;
            local.stop().await;
            return result;
        };
        let Some(key) = &self.api_key else {
            return Err("a deployment needs its key: set TANGLE_API_KEY or give --api-key".into());
        };
        let client = Client::builder(url, key.as_str()).build()?;
        self.turn(&client).await
    }

    async fn turn(&self, client: &Client) -> Result<ExitCode, Box<dyn Error>> {
        let sandbox = client.create(self.request()).await?;
        let id = sandbox.id().clone();
        let result = self.in_sandbox(sandbox).await;
        if self.keep {
            eprintln!("sandbox {id} is kept");
        } else if let Some(sandbox) = client.get(&id).await? {
            sandbox.delete().await?;
        }
        let result = result?;
        if let Some(error) = &result.error {
            eprintln!(
                "failed: {}: {error}",
                result.error_code.as_deref().unwrap_or("-")
            );
        }
        match result.success() {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::FAILURE),
        }
    }

    fn request(&self) -> NewSandbox {
        let mut request = NewSandbox::new().backend(&self.backend);
        if let Some(model) = &self.model {
            request = request.model(model);
        }
        if let Some(url) = &self.model_base_url {
            let key = std::env::var("TANGLE_MODEL_API_KEY").unwrap_or_default();
            request = request.model_endpoint(url, key);
        }
        request
    }

    async fn in_sandbox(
        &self,
        sandbox: Sandbox<Provisioning>,
    ) -> Result<PromptResult, Box<dyn Error>> {
        eprintln!("sandbox {}: {} …", sandbox.id(), sandbox.record().status);
        let sandbox = sandbox.wait_ready().await?;
        eprintln!("sandbox {}: ready", sandbox.id());
        let mut prompt = Prompt::new(self.prompt.as_str());
        if let Some(seconds) = self.deadline {
            prompt = prompt.deadline(Deadline::from_secs(seconds));
        }
        let mut run = tokio::select! {
            run = sandbox.stream(prompt) => run?,
            _ = tokio::signal::ctrl_c() => return Err("interrupted".into()),
        };
        let mut printer = Printer::default();
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                _ = tokio::signal::ctrl_c() => {
                    run.cancel().await?;
                    return Err("interrupted; the run was cancelled".into());
                }
            };
            match event {
                Some(event) => printer.print(&event?)?,
                None => break,
            }
        }
        printer.finish()?;
        Ok(run.result().await?)
    }
}

/// Prints the agent's text as it comes, and a line for everything else that matters.
#[derive(Default)]
struct Printer {
    mid_line: bool,
}

impl Printer {
    fn print(&mut self, event: &Event) -> std::io::Result<()> {
        if let Some(text) = event.text_delta() {
            print!("{text}");
            self.mid_line = !text.ends_with('\n');
            return std::io::stdout().flush();
        }
        let line = match &event.kind {
            EventKind::PartUpdated(update) if update.part.type_ == "tool" => {
                let part = &update.part;
                let state = part.state.as_ref().map(|state| state.status.as_str());
                match (state, &update.delta) {
                    (Some("running"), Some(_)) => return Ok(()),
                    (Some(state), _) => {
                        format!("· {} {state}", part.tool.as_deref().unwrap_or("tool"))
                    }
                    (None, _) => return Ok(()),
                }
            }
            EventKind::Warning(warning) => format!("! {}", warning.message),
            EventKind::Error(error) => format!("! {}", error.message),
            _ => return Ok(()),
        };
        self.finish()?;
        eprintln!("{line}");
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            println!();
        }
        std::io::stdout().flush()
    }
}
