//! The generated public API: every type with its fields, so that a new version of the generator is a reviewed difference.
//!
//! `INSTA_UPDATE=always cargo test --test api` writes the snapshot again.

#[path = "support/generated_api.rs"]
mod generated_api;

use std::path::Path;

use tangle_sandbox_codegen::{Options, generate};

#[test]
fn the_generated_api_is_the_reviewed_one() {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let generated = generate(&schemas, &Options::default()).unwrap();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("api", generated_api::list(&generated));
    });
}
