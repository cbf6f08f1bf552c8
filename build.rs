//! Build step.
fn main() {}
