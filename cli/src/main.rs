//! The command `tangle-sandbox`.
fn main() {}
