//! A sandbox that is not ready cannot be prompted.
use tangle_sandbox::sandbox::{Provisioning, Sandbox};

async fn too_early(sandbox: Sandbox<Provisioning>) {
    let _ = sandbox.prompt("hello").await;
}

fn main() {}
//~ E0277 5 `tangle_sandbox::sandbox::Provisioning` is not a running sandbox
