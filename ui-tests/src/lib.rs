//! Programs that must not compile stand beside this package's manifest, each with the compiler's message.
