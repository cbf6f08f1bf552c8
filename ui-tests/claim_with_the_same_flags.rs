//! Two claims that rest on the same flags are still two: a claim implies another only when the schema says so.
use tangle_sandbox::claims::{Detach, Has, TurnIdempotency};
use tangle_sandbox::provider::{Environment, Running};

fn send_again<C: Has<TurnIdempotency>>(_: &Environment<Running, C>) {}

fn detached(environment: Environment<Running, tangle_sandbox::claims![Detach]>) {
    send_again(&environment);
}

fn main() {}
//~ E0277 8 this environment does not prove the `TurnIdempotency` claim
