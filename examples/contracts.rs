//! The contracts alone: read, refuse, normalise, digest, compare; no client, no I/O.
//!
//! ```console
//! $ cargo run --example contracts --no-default-features
//! ```

use serde_json::json;
use tangle_sandbox::contract::create::{self, Mapping};
use tangle_sandbox::contract::profile::ProfileSnapshot;
use tangle_sandbox::contract::retained::{NewRef, mint_ref, same_run};
use tangle_sandbox::contract::types::{Harness, LooseRunRef};
use tangle_sandbox::contract::{from_value, registry};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A profile is public: names of secrets, never their values.
    let profile = br#"{
        "name": "reviewer",
        "harness": "claude-code",
        "prompt": { "appendSystemPrompt": "Name the file and the line." },
        "mcp": { "issues": { "url": "https://mcp.example/issues",
                             "headers": { "Authorization": { "kind": "secret-ref", "key": "ISSUES", "format": "bearer" } } } }
    }"#;
    let snapshot = ProfileSnapshot::read(profile)?;
    println!("profile {}", snapshot.digest());

    // A refusal names a path and a rule, and no part of the value.
    let leaking = br#"{"mcp": {"issues": {"url": "https://me:hunter2@mcp.example"}}}"#;
    let refused = ProfileSnapshot::read(leaking).unwrap_err();
    println!("refused: {refused}");

    // The harness that it names cannot carry everything.
    let other = Harness::Opencode;
    if let Err(refused) = snapshot.check_for_create(other, None) {
        println!("{other} cannot carry it: {} ({})", refused, refused.code());
    }

    // What an environment is made from, and the request that the service gets.
    let input = create::read(json!({
        "profile": snapshot.document(),
        "workspace": { "repoUrl": "https://git.example/r.git", "gitRef": "main", "cwd": { "base": "repository", "path": "./a//b" } },
        "resources": { "cpu": 2, "diskMb": 10_240 },
        "idempotencyKey": "build-17",
    }))?;
    let mapping = Mapping {
        provider: "tangle-sandbox".parse()?,
        default_backend: None,
    };
    let request = mapping.map(&input)?;
    println!("create {} in {:?}", input.digest(), request.cwd);

    // Two references name one run only when all of it is equal.
    let run = mint_ref(NewRef {
        run_id: None,
        provider: "tangle-sandbox".parse()?,
        environment_id: "sbx-1".parse()?,
        session_id: "ses-1".parse()?,
        execution_id: "exec-1".parse()?,
        request_digest: None,
    })?;
    let exact: LooseRunRef = from_value(json!(run))?;
    let vague: LooseRunRef = from_value(
        json!({ "runId": run.run_id, "provider": run.provider, "environmentId": run.environment_id }),
    )?;
    println!(
        "same run: {}, {}",
        same_run(&exact, &exact),
        same_run(&exact, &vague)
    );

    println!("{} contracts by name", registry::CONTRACTS.len());
    Ok(())
}
