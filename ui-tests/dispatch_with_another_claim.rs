//! One claim does not stand in for another.
use tangle_sandbox::claims::Replay;
use tangle_sandbox::provider::{Environment, Running};

async fn another(environment: Environment<Running, tangle_sandbox::claims![Replay]>) {
    let _ = environment.dispatch("go").await;
}

fn main() {}
//~ E0277 6 this environment does not prove the `Detach` claim
