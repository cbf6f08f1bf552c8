//! Only a running sandbox can be stopped.
use tangle_sandbox::sandbox::{Provisioning, Sandbox};

async fn too_early(sandbox: Sandbox<Provisioning>) {
    let _ = sandbox.stop().await;
}

fn main() {}
//~ E0599 5 no method named `stop` found for struct `tangle_sandbox::sandbox::Sandbox<tangle_sandbox::sandbox::Provisioning>` in the current scope
