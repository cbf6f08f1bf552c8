//!
//! * [`check`]: the refusal that every check of a document answers with: a path and a rule.
//! * [`strict`]: bytes to JSON, refusing repeated keys and hostile nesting.
//! * [`document`]: JSON that remembers the order of its members.
//! * [`canonical`]: the one text that every party hashes.
//! * [`digest`]: `sha256:` and 64 hexadecimal digits, checked.
//! * [`text`]: how a string is measured and trimmed.
//! * [`bounds`]: how large a value may be, and the error that says where it was larger.
//! * [`secret`]: a string that no log, error or document shows.

pub mod bounds;
pub mod canonical;
pub mod check;
pub mod digest;
pub mod document;
pub mod secret;
pub mod strict;
pub mod text;
