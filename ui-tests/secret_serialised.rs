//! A secret has no `Serialize`.
use tangle_sandbox::contract::Secret;

fn main() {
    let key = Secret::from("k");
    let _ = serde_json::to_string(&key);
}
//~ E0277 6 the trait bound `tangle_sandbox::contract::Secret: serde::Serialize` is not satisfied
