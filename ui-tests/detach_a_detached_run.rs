//! A detached run cannot be detached again.
use tangle_sandbox::sandbox::{Detached, Run};

async fn already(run: Run<Detached>) {
    let _ = run.detach().await;
}

fn main() {}
//~ E0599 5 no method named `detach` found for struct `Run<Detached>` in the current scope
