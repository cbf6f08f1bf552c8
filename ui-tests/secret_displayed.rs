//! A secret has no `Display`.
use tangle_sandbox::contract::Secret;

fn main() {
    let key = Secret::from("k");
    println!("{key}");
}
//~ E0277 6 `tangle_sandbox::contract::Secret` doesn't implement `std::fmt::Display`
