//! A field carries only the claims that its type names.
use tangle_sandbox::provider::AnyEnvironment;

struct Queue {
    environment: AnyEnvironment,
}

async fn unproven(queue: &Queue) {
    let _ = queue.environment.dispatch("go").await;
}

fn main() {}
//~ E0277 9 this environment does not prove the `Detach` claim
