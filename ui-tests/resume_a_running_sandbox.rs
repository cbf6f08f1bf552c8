//! Only a stopped sandbox can be resumed.
use tangle_sandbox::sandbox::{Running, Sandbox};

async fn not_stopped(sandbox: Sandbox<Running>) {
    let _ = sandbox.resume().await;
}

fn main() {}
//~ E0599 5 no method named `resume` found for struct `tangle_sandbox::sandbox::Sandbox<tangle_sandbox::provider::Running>` in the current scope
