//! A first turn: create a sandbox, wait until it is ready, run a coding agent, read what it made, delete.
//!
//! `cargo run --example first_turn` needs nothing else: it starts the embedded deployment, whose agent is this program
//! itself, started once more. `-- --backend opencode` takes the real OpenCode instead; name its model by
//! `TANGLE_MODEL_BASE_URL`, `TANGLE_MODEL_API_KEY` and `TANGLE_MODEL`. With `TANGLE_BASE_URL` and `TANGLE_API_KEY` set, it
//! uses that deployment.

use std::env::var;
use std::error::Error;

use tangle_sandbox::sandbox::{Client, NewSandbox};
use tangle_sandbox_local::Local;

/// The scripted agent does what the lines say, for real; an agent with a model reads them as its task.
const TASK: &str = "say I make two files.\nrun date > made.txt\nwrite notes.txt A note.";

fn main() -> Result<(), Box<dyn Error>> {
    // The embedded deployment starts this program again as its agent; then this line does not return.
    tangle_sandbox_local::agent_main();
    tokio::runtime::Runtime::new()?.block_on(first_turn())
}

async fn first_turn() -> Result<(), Box<dyn Error>> {
    // A deployment: one that is there already, or one of our own in a temporary directory.
    let data = tempfile::tempdir()?;
    let mut local = None;
    let client = match (var("TANGLE_BASE_URL"), var("TANGLE_API_KEY")) {
        (Ok(url), Ok(key)) => Client::builder(url, key).build()?,
        _ => {
            let own = local.insert(Local::builder().data_dir(data.path()).start().await?);
            Client::builder(own.base_url(), own.api_key().clone()).build()?
        }
    };

    // What the sandbox should be: which agent, and the way to its model.
    let backend = std::env::args().skip_while(|arg| arg != "--backend").nth(1);
    let mut request = NewSandbox::new().backend(backend.as_deref().unwrap_or("scripted"));
    if let (Ok(url), Ok(key)) = (var("TANGLE_MODEL_BASE_URL"), var("TANGLE_MODEL_API_KEY")) {
        request = request
            .model_endpoint(&url, key)
            .model(&var("TANGLE_MODEL")?);
    }

    // A new sandbox cannot be prompted: without `wait_ready`, the next lines do not compile.
    let sandbox = client.create(request).await?;
    let sandbox = sandbox.wait_ready().await?;

    // One turn, event by event; dropping `run` here would cancel it.
    let mut run = sandbox.stream(TASK).await?;
    while let Some(event) = run.next().await {
        println!("{}", event?);
    }
    let result = run.result().await?;
    println!("the turn ended: {:?}", result.status);

    // What the agent made is there.
    let entries = sandbox.list(".").await?.entries;
    for file in entries.iter().filter(|entry| entry.is_file) {
        let content = sandbox.read_text(&file.name).await?;
        println!("{}: {}", file.name, content.trim_end());
    }
    sandbox.delete().await?;
    if let Some(local) = local {
        local.stop().await;
    }
    match result.success() {
        true => Ok(()),
        false => Err("the turn failed".into()),
    }
}
