//! A first turn: create a sandbox, wait until it is ready, run a coding agent, read what it made, delete.
//!
//! `cargo run --example first_turn` needs nothing else: it starts the embedded deployment, whose agent is this program
//! itself, started once more. `-- --backend opencode` takes the real OpenCode instead. With `TANGLE_BASE_URL` and
//! `TANGLE_API_KEY` set, it uses that deployment.

use std::error::Error;

use tangle_sandbox::sandbox::{Client, NewSandbox};
use tangle_sandbox_local::Local;

/// The scripted agent does what the lines say, for real; an agent with a model reads them as its task.
const TASK: &str =
    "say I make two files.\nrun date > made.txt\nwrite notes.txt A note from the agent.";

fn main() -> Result<(), Box<dyn Error>> {
    // The embedded deployment starts this program again as its agent; then this line does not return.
    tangle_sandbox_local::agent_main();
    tokio::runtime::Runtime::new()?.block_on(first_turn())
}

async fn first_turn() -> Result<(), Box<dyn Error>> {
    let backend = std::env::args().skip_while(|arg| arg != "--backend").nth(1);
    let backend = backend.unwrap_or_else(|| "scripted".into());

    // A deployment: one that is there already, or one of our own in a temporary directory.
    let data = tempfile::tempdir()?;
    let mut local = None;
    let client = match (
        std::env::var("TANGLE_BASE_URL"),
        std::env::var("TANGLE_API_KEY"),
    ) {
        (Ok(url), Ok(key)) => Client::builder(url, key).build()?,
        _ => {
            let own = local.insert(Local::builder().data_dir(data.path()).start().await?);
            Client::builder(own.base_url(), own.api_key().clone()).build()?
        }
    };

    // A new sandbox cannot be prompted: without `wait_ready`, the next lines do not compile.
    let sandbox = client.create(NewSandbox::new().backend(&backend)).await?;
    let sandbox = sandbox.wait_ready().await?;

    // One turn, event by event; dropping `run` here would cancel it.
    let mut run = sandbox.stream(TASK).await?;
    while let Some(event) = run.next().await {
        println!("{}", event?);
    }
    let result = run.result().await?;
    println!("the turn ended: {:?}", result.status);

    // What the agent made is there.
    for entry in sandbox
        .list(".")
        .await?
        .entries
        .into_iter()
        .filter(|entry| entry.is_file)
    {
        println!(
            "{}: {}",
            entry.name,
            sandbox.read_text(&entry.name).await?.trim_end()
        );
    }
    sandbox.delete().await?;
    if let Some(local) = local {
        local.stop().await;
    }
    if result.success() {
        Ok(())
    } else {
        Err("the turn failed".into())
    }
}
