//! Generates the types of the Agent Client Protocol from `schemas/`.

fn main() {
    let options = tangle_sandbox_codegen::Options {
        contract: "tangle_sandbox::contract".into(),
        rules: "crate::rules".into(),
    };
    if let Err(error) = tangle_sandbox_codegen::build("schemas", &options) {
        eprintln!("local/schemas/{error}");
        std::process::exit(1);
    }
}
