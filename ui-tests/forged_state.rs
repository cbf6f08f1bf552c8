//! A state of one's own is no running sandbox.
use tangle_sandbox::sandbox::Ready;

struct Mine;
impl Ready for Mine {}

fn main() {}
//~ E0277 5 `Mine` is not a state of a sandbox
