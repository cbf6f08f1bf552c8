//! How long a caller waits is not how long a sandbox lives.
use tangle_sandbox::sandbox::{Deadline, NewSandbox};

fn main() {
    let _ = NewSandbox::new().lifetime(Deadline::from_secs(30));
}
//~ E0308 5 mismatched types
