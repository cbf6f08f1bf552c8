//! Dispatching needs the claim `Detach`.
use tangle_sandbox::provider::{Environment, Running};

async fn unproven(environment: Environment<Running>) {
    let _ = environment.dispatch("go").await;
}

fn main() {}
//~ E0277 5 this environment does not prove the `Detach` claim
