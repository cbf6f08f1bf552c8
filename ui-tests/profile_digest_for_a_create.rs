use tangle_sandbox::contract::create::same_create;
use tangle_sandbox::contract::types::{CreateDigest, ProfileDigest};

fn known(create: CreateDigest, profile: ProfileDigest) {
    let _ = same_create(create, profile);
}

fn main() {}
//~ E0308 5 mismatched types
