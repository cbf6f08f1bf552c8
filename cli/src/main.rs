//! The command `tangle-sandbox`.
//!
//! * `tangle-sandbox serve` starts the embedded deployment and prints its base URL and where its key is.
//! * `tangle-sandbox run "…"` runs one turn of a coding agent and prints what happens; the exit code tells success.
//! * `tangle-sandbox check profile agent.json` checks a document against a contract; `check --list` names the contracts.

mod check;
mod ended;
mod explain;
mod printer;
mod run;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Coding agents in sandboxes: serve the embedded deployment, run a turn, check a document.
#[derive(Parser)]
#[command(name = "tangle-sandbox", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the embedded deployment until the process is ended.
    Serve(serve::Serve),
    /// Run one turn of a coding agent in a new sandbox.
    Run(run::Run),
    /// Check a document against a contract.
    Check(check::Check),
}

fn main() -> ExitCode {
    // The embedded deployment starts this program again as its scripted agent; then this line does not return.
    tangle_sandbox_local::agent_main();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let command = Arguments::parse().command;
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let result = runtime.block_on(async {
        match command {
            Command::Serve(serve) => serve.execute().await,
            Command::Run(run) => run.execute().await,
            Command::Check(check) => check.execute(),
        }
    });
    match result {
        Ok(code) => code,
        Err(error) => failed(error.as_ref()),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    let mut told = error.to_string();
    eprintln!("error: {told}");
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Some errors tell their cause in their own text.
        if !told.contains(&text) {
            eprintln!("  because: {text}");
        }
        told = text;
        source = cause.source();
    }
    ExitCode::from(2)
}
