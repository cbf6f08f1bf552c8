//! The backend block (core contracts, 5 and 6): what a caller says about the agent and the way to its model.
//!
//! * [`normalise`]: flat spellings of the model become the model block, before anything else is looked at.
//! * [`read`]: a block from JSON, with every rule between its fields.
//! * `rules`: those rules, in their order.
//! * `identity`: what of a block is part of a request's identity; secrets never are.
//! * `interactions`: which kinds of asks a caller answers, and when two postures agree.
//! * `sent`: a caller's block as it goes over the wire.
//! * [`Refusal`]: every way in which a block is refused, with its code.

mod identity;
mod interactions;
mod normalise;
mod refusal;
mod rules;
mod sent;

pub(super) use interactions::interaction_kind;
pub use normalise::normalise;
pub use refusal::Refusal;
pub use rules::read;
