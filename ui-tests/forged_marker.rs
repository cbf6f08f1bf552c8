//! A marker cannot be made: only a deployment proves a claim.
use tangle_sandbox::claims::Detach;

fn main() {
    let _ = Detach(());
}
//~ E0423 5 cannot initialize a tuple struct which contains private fields
