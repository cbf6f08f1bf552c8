//! `stop` takes the running handle; what it gives back is a stopped one.
use tangle_sandbox::sandbox::{Running, Sandbox};

async fn moved(sandbox: Sandbox<Running>) {
    let _stopped = sandbox.stop().await;
    let _ = sandbox.prompt("hello").await;
}

fn main() {}
//~ E0382 6 borrow of moved value: `sandbox`
