//! A reference to keep exists only once the service has agreed that the run outlives its reader.
use tangle_sandbox::sandbox::{Attached, Run};

fn too_early(run: &Run<Attached>) {
    let _ = run.control_ref();
}

fn main() {}
//~ E0599 5 no method named `control_ref` found for reference `&Run<Attached>` in the current scope
