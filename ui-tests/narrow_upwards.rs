//! Narrowing forgets claims; it cannot add one.
use tangle_sandbox::claims::{Detach, Replay};
use tangle_sandbox::provider::{Environment, Running};

type Less = tangle_sandbox::claims![Detach];
type More = tangle_sandbox::claims![Detach, Replay];

fn more(environment: Environment<Running, Less>) -> Environment<Running, More> {
    environment.narrow()
}

fn main() {}
//~ E0277 9 `With<Detach, NoClaims>` does not prove every claim in `With<Detach, With<Replay, NoClaims>>`
