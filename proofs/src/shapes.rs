//! The generated types once more, so that schemars derives a schema from each: the shapes as Rust has them.
//!
//! The derive stands here and not in the library, which needs no schema of its types.

#![allow(missing_docs, dead_code)]

mod contract {
    pub mod scalar {
        //! The scalars by shape alone: their bounds are the checker's.
        macro_rules! text {
            ($(#[$doc:meta])* $name:ident, $($check:ident)::+) => {
                #[derive(::schemars::JsonSchema)]
                pub struct $name(String);
            };
        }
        macro_rules! number {
            ($(#[$doc:meta])* $name:ident: $kind:ty, $($check:ident)::+) => {
                #[derive(::schemars::JsonSchema)]
                pub struct $name($kind);
            };
        }
        pub(crate) use number;
        pub(crate) use number as integer;
        pub(crate) use text;
        #[allow(unused_imports)]
        pub(crate) use text as typed_digest;
    }

    pub mod secret {
        #[derive(schemars::JsonSchema)]
        pub struct Secret(String);
    }

    pub mod digest {
        #[derive(schemars::JsonSchema)]
        pub struct Digest(String);
    }
}

/// Never built, only described: how large or complex they are says nothing.
#[allow(clippy::large_enum_variant, clippy::type_complexity)]
mod types {
    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));
}

/// The schemas that the types' shapes give, by name, as draft 2020-12.
pub fn derived() -> serde_json::Map<String, serde_json::Value> {
    let mut maker = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    for (_, add) in types::ALL {
        add(&mut maker);
    }
    maker.take_definitions(false)
}

/// The names of the types that have a shape.
pub fn names() -> impl Iterator<Item = &'static str> {
    types::ALL.iter().map(|(name, _)| *name)
}
