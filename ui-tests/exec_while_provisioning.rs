//! A command needs a running sandbox.
use tangle_sandbox::sandbox::{Provisioning, Sandbox};

async fn too_early(sandbox: Sandbox<Provisioning>) {
    let _ = sandbox.exec("ls").await;
}

fn main() {}
//~ E0277 5 `tangle_sandbox::sandbox::Provisioning` is not a running sandbox
