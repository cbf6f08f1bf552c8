//! A detached run has no events.
use tangle_sandbox::sandbox::{Detached, Run};

async fn nothing_to_read(mut run: Run<Detached>) {
    let _ = run.next().await;
}

fn main() {}
//~ E0599 5 no method named `next` found for struct `Run<Detached>` in the current scope
