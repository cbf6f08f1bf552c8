//! A generic function has to ask for the proof.
use tangle_sandbox::claims::Claims;
use tangle_sandbox::provider::{Environment, Running};

async fn forgot_the_bound<C: Claims>(environment: &Environment<Running, C>) {
    let _ = environment.dispatch("go").await;
}

fn main() {}
//~ E0277 6 this environment does not prove the `Detach` claim
