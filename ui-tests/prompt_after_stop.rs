//! A stopped sandbox cannot be prompted.
use tangle_sandbox::sandbox::{Sandbox, Stopped};

async fn too_late(sandbox: Sandbox<Stopped>) {
    let _ = sandbox.prompt("hello").await;
}

fn main() {}
//~ E0277 5 `tangle_sandbox::sandbox::Stopped` is not a running sandbox
