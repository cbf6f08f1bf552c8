//! Only claims can be claimed.
use tangle_sandbox::provider::{Environment, Running};

struct Mine;

fn not_a_claim(environment: Environment<Running>) {
    let _ = environment.claim::<Mine>();
}

fn main() {}
//~ E0277 7 `Mine` is not a claim
