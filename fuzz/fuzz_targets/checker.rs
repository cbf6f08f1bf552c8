//! See `targets::checker` of the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tangle_sandbox_fuzz::targets::checker(bytes));
