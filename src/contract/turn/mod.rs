//! One turn (core contracts, 8.1; provider runtime, 7): what it asks, which block is sent, and the digests that identify it.
//!
//! * [`read`]: a turn from JSON.
//! * [`ResolvedTurn`]: a turn whose parts agree; it gives the block that is sent and every digest.
//! * [`Place`]: where a turn runs, which is part of its identity.
//! * [`text_of`]: the parts of a turn as one text.
//! * [`Refusal`]: every way in which a turn is refused, with its code.

mod identity;
mod parts;
mod read;
mod refusal;
mod resolve;

pub use identity::Place;
pub use parts::text_of;
pub use read::read;
pub use refusal::Refusal;
pub use resolve::ResolvedTurn;
