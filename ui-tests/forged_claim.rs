//! A type of one's own cannot prove a claim.
use tangle_sandbox::claims::{Detach, Has};

struct Mine;
impl Has<Detach> for Mine {}

fn main() {}
//~ E0277 5 `Mine` is not a set of proven claims
