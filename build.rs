//! Generates the contract's types, checks, claims and limits from `schemas/`.

fn main() {
    let options = tangle_sandbox_codegen::Options::default();
    if let Err(error) = tangle_sandbox_codegen::build("schemas", &options) {
        eprintln!("schemas/{error}");
        std::process::exit(1);
    }
}
