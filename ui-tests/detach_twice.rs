//! `detach` takes the attached run.
use tangle_sandbox::sandbox::{Attached, Run};

async fn once_is_enough(run: Run<Attached>) {
    let _first = run.detach().await;
    let _second = run.detach().await;
}

fn main() {}
//~ E0382 6 use of moved value: `run`
