//! `tangle-sandbox run`.

use std::error::Error;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tangle_sandbox::contract::types::SandboxId;
use tangle_sandbox::sandbox::{
    Client, Deadline, NewSandbox, Prompt, PromptResult, Provisioning, Sandbox,
};
use tangle_sandbox::transport::{Code, RetryPolicy};
use tangle_sandbox_local::Local;

use crate::ended::Ended;
use crate::explain;
use crate::printer::Printer;

/// One turn of a coding agent in a new sandbox. Exit code 0: it succeeded; 1: it failed; 2: it could not be run.
#[derive(Args)]
pub struct Run {
    /// What the agent is asked.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
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
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    deadline: Option<u64>,
    /// Leave the sandbox behind and print its id; an embedded deployment ends with its turn, so this needs a base URL.
    #[arg(long, requires = "base_url")]
    keep: bool,
}

impl Run {
    /// Runs the turn against the given deployment, or against one of its own.
    pub async fn execute(self) -> Result<ExitCode, Box<dyn Error>> {
        let mut ended = Ended::listen()?;
        let request = self.request()?;
        let Some(url) = &self.base_url else {
            let data = tempfile::tempdir()?;
            let local = Local::builder().data_dir(data.path()).start().await?;
            let client = Client::builder(local.base_url(), local.api_key().clone()).build()?;
            let result = self.turn(&client, request, &mut ended).await;
            local.stop().await;
            return result;
        };
        let Some(key) = &self.api_key else {
            return Err("a deployment needs its key: set TANGLE_API_KEY or give --api-key".into());
        };
        let client = Client::builder(url, key.as_str()).build()?;
        tokio::select! {
            reached = reach(url, key) => reached?,
            () = ended.asked() => return Err("interrupted".into()),
        }
        self.turn(&client, request, &mut ended).await
    }

    fn request(&self) -> Result<NewSandbox, Box<dyn Error>> {
        let mut request = NewSandbox::new().backend(&self.backend);
        if let Some(model) = &self.model {
            request = request.model(model);
        }
        if let Some(url) = &self.model_base_url {
            if self.model.is_none() {
                return Err("an endpoint of a model is given (TANGLE_MODEL_BASE_URL or --model-base-url), but no --model".into());
            }
            let key = std::env::var("TANGLE_MODEL_API_KEY");
            let key =
                key.map_err(|_| "the model's endpoint needs a key: set TANGLE_MODEL_API_KEY")?;
            request = request.model_endpoint(url, key);
        }
        Ok(request)
    }

    async fn turn(
        &self,
        client: &Client,
        request: NewSandbox,
        ended: &mut Ended,
    ) -> Result<ExitCode, Box<dyn Error>> {
        let sandbox = tokio::select! {
            made = client.create(request) => match made {
                Ok(sandbox) => sandbox,
                Err(error) => return Err(explain::create(client, &self.backend, error).await),
            },
            () = ended.asked() => {
                return Err("interrupted while a sandbox was being made; it may be there".into());
            }
        };
        let id = sandbox.id().clone();
        let result = self.in_sandbox(client, sandbox, ended).await;
        let left = self.leave(client, &id).await;
        let result = result?;
        left?;
        if !result.success() {
            let code = result.error_code.as_deref().unwrap_or("-");
            let waits = format!("the run ended as {:?}", result.status);
            let message = result.error.as_deref().unwrap_or(&waits);
            eprintln!("failed: {code}: {message}");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Deletes the sandbox, unless it is to be kept.
    async fn leave(&self, client: &Client, id: &SandboxId) -> Result<(), Box<dyn Error>> {
        if self.keep {
            eprintln!("sandbox {id} is kept");
            return Ok(());
        }
        let found = client.get(id).await;
        let found = found.map_err(|error| explain::deployment(client, error))?;
        if let Some(sandbox) = found {
            sandbox.delete().await?;
        }
        Ok(())
    }

    async fn in_sandbox(
        &self,
        client: &Client,
        sandbox: Sandbox<Provisioning>,
        ended: &mut Ended,
    ) -> Result<PromptResult, Box<dyn Error>> {
        let explained = |error| explain::deployment(client, error);
        eprintln!("sandbox {}: {} …", sandbox.id(), sandbox.record().status);
        let sandbox = tokio::select! {
            ready = sandbox.wait_ready() => ready.map_err(|kept| explained(kept.error))?,
            () = ended.asked() => return Err("interrupted".into()),
        };
        eprintln!("sandbox {}: ready", sandbox.id());
        let mut prompt = Prompt::new(self.prompt.as_str());
        if let Some(seconds) = self.deadline {
            prompt = prompt.deadline(Deadline::from_secs(seconds));
        }
        let mut run = tokio::select! {
            run = sandbox.stream(prompt) => run.map_err(explained)?,
            () = ended.asked() => return Err("interrupted".into()),
        };
        let mut printer = Printer::default();
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                () = ended.asked() => {
                    printer.finish()?;
                    run.cancel().await.map_err(explained)?;
                    return Err("interrupted; the run was cancelled".into());
                }
            };
            match event {
                Some(event) => printer.print(&event.map_err(explained)?)?,
                None => break,
            }
        }
        printer.finish()?;
        run.result().await.map_err(explained)
    }
}

/// Asks once whether the deployment is there, so that a wrong address is told at once and not after every repeat.
async fn reach(url: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let client = Client::builder(url, key)
        .retry(RetryPolicy::OFF)
        .request_deadline(Deadline::from_secs(10))
        .build()?;
    match client.health().await {
        Err(error) if matches!(error.code(), Code::NetworkError | Code::Timeout) => {
            Err(explain::deployment(&client, error))
        }
        _ => Ok(()),
    }
}
