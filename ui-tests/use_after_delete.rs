//! A deleted sandbox is gone, and so is its handle.
use tangle_sandbox::sandbox::{Running, Sandbox};

async fn gone(sandbox: Sandbox<Running>) {
    let _ = sandbox.delete().await;
    let _ = sandbox.id();
}

fn main() {}
//~ E0382 6 borrow of moved value: `sandbox`
