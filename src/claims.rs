//! Claims: what a deployment has proven, as types.
//!
//! A claim is a marker such as [`Detach`]. A set of claims is [`NoClaims`], or [`With`] one more; [`claims!`](crate::claims!)
//! names a set. A method that needs a claim says `where C: Has<Detach>`, so that a call without the proof does not
//! compile. Markers, the flags that prove them and the lattice come from `x-claims` in `schemas/capabilities.json`.
//!
//! ```
//! # #[cfg(feature = "client")]
//! # mod worker {
//! use tangle_sandbox::claims::{Detach, Has, Replay};
//! use tangle_sandbox::provider::{Environment, Running};
//!
//! /// A named set: write it once, use it in fields and signatures.
//! type Worker = tangle_sandbox::claims![Detach, Replay];
//!
//! struct Queue {
//!     environment: Environment<Running, Worker>,
//! }
//!
//! fn needs_detach<C: Has<Detach>>(environment: &Environment<Running, C>) {}
//! # }
//! ```

use std::marker::PhantomData;

use serde_json::Value;

use crate::contract::types::DeploymentFacts;

mod sealed {
    pub trait Sealed {}
}

/// Something that a deployment can prove. Sealed: the claims are those of the capability schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a claim",
    label = "not something that a deployment proves",
    note = "the claims are those of `tangle_sandbox::claims`, for example `Detach` or `Replay`"
)]
pub trait Claim: sealed::Sealed + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its place in a bit set.
    #[doc(hidden)]
    const BIT: u64;
    /// JSON pointers of the flags that prove it; all must be exactly `true`.
    const FLAGS: &'static [&'static str];
}

/// A set of proven claims. Sealed: only [`NoClaims`] and [`With`] are sets.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of proven claims",
    label = "proves nothing",
    note = "a set is written `claims![Detach, Replay]`; only `environment.claim::<..>()?` proves one"
)]
pub trait Claims: sealed::Sealed + 'static {
    /// The claims as bits.
    #[doc(hidden)]
    const BITS: u64;
}

/// The empty set: nothing is proven.
pub struct NoClaims(());

/// Everything that `Rest` proves, and `K`.
pub struct With<K, Rest>(PhantomData<fn() -> (K, Rest)>);

impl sealed::Sealed for NoClaims {}
impl Claims for NoClaims {
    const BITS: u64 = 0;
}
impl<K: Claim, Rest: Claims> sealed::Sealed for With<K, Rest> {}
impl<K: Claim, Rest: Claims> Claims for With<K, Rest> {
    const BITS: u64 = K::BIT | Rest::BITS;
}

/// This set of claims proves `K`.
#[diagnostic::on_unimplemented(
    message = "this environment does not prove the `{K}` claim",
    label = "needs `{K}`; only `{Self}` is proven here",
    note = "a claim is proven at run time from the deployment's capability document: `let env = env.claim::<{K}>()?;` (the error gives `env` back)",
    note = "in a function signature, ask the caller for the proof: `fn f<C: Has<{K}>>(env: &Environment<Running, C>)`"
)]
pub trait Has<K: Claim>: Claims {}

include!(concat!(env!("OUT_DIR"), "/claims.rs"));

/// This set of claims proves every claim in `T`, in any order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not prove every claim in `{T}`",
    label = "cannot be narrowed to `{T}`",
    note = "`narrow` forgets claims or puts them in another order; a new claim needs proof: `env.claim::<{T}>()?`"
)]
pub trait Superset<T>: Claims {}

impl<C: Claims> Superset<NoClaims> for C {}

#[diagnostic::do_not_recommend]
impl<K: Claim, Rest: Claims, C: Has<K> + Superset<Rest>> Superset<With<K, Rest>> for C {}

/// Names a set of claims: `claims![Detach, Replay]`.
#[macro_export]
macro_rules! claims {
    () => { $crate::claims::NoClaims };
    ($claim:ty $(, $rest:ty)* $(,)?) => { $crate::claims::With<$claim, $crate::claims![$($rest),*]> };
}

/// What `claim` takes: one claim, a tuple of claims, or a named set.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a claim, a tuple of claims or a set of claims",
    label = "not something that a deployment proves",
    note = "one claim: `env.claim::<Detach>()?`; several: `env.claim::<(Detach, Replay)>()?` or `env.claim::<claims![Detach, Replay]>()?`"
)]
pub trait ClaimList<C>: sealed::Sealed {
    /// The set that results.
    type Out: Claims;
    /// The claims to prove, as bits.
    #[doc(hidden)]
    const BITS: u64;
}

/// A single claim is added to what is proven.
#[diagnostic::do_not_recommend]
impl<C: Claims, K: Claim> ClaimList<C> for K {
    type Out = With<K, C>;
    const BITS: u64 = K::BIT;
}

/// A named set gives exactly that set; whatever was proven before and is not in it is forgotten.
impl<C: Claims, K: Claim, Rest: Claims> ClaimList<C> for With<K, Rest> {
    type Out = With<K, Rest>;
    const BITS: u64 = K::BIT | Rest::BITS;
}

macro_rules! tuples {
    ($(($($claim:ident),+) => $out:ty;)*) => {$(
        impl<$($claim: Claim),+> sealed::Sealed for ($($claim,)+) {}
        impl<C: Claims, $($claim: Claim),+> ClaimList<C> for ($($claim,)+) {
            type Out = $out;
            const BITS: u64 = 0 $(| $claim::BIT)+;
        }
    )*};
}
tuples! {
    (A) => With<A, C>;
    (A, B) => With<A, With<B, C>>;
    (A, B, D) => With<A, With<B, With<D, C>>>;
    (A, B, D, E) => With<A, With<B, With<D, With<E, C>>>>;
}

/// What a capability document proves, without a deployment: for a program that only reads documents.
///
/// ```
/// use tangle_sandbox::claims::{Detach, Proof, Replay};
///
/// let document = serde_json::json!({ "runs": { "eventReplay": true } });
/// let proof = Proof::of(&document);
/// assert!(proof.proves::<Replay>() && !proof.proves::<Detach>());
/// assert_eq!(proof.claims().collect::<Vec<_>>(), ["Replay"]);
/// assert_eq!(
///     Proof::unset_flags::<Detach>(&document),
///     ["/dispatch/executionIdOnAdmission", "/dispatch/runControlRef"],
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof(u64);

impl Proof {
    /// What `document` proves; a flag counts only when it is exactly `true`.
    pub fn of(document: &Value) -> Self {
        Proof(proven(document))
    }

    /// Whether it proves `K`.
    pub fn proves<K: Claim>(self) -> bool {
        self.0 & K::BIT != 0
    }

    /// The names of the claims that it proves.
    pub fn claims(self) -> impl Iterator<Item = &'static str> {
        names(self.0)
    }

    /// The flags of `K` that `document` does not set, as JSON pointers.
    pub fn unset_flags<K: Claim>(document: &Value) -> Vec<&'static str> {
        unset_flags(K::BIT, Some(document))
    }
}

/// The claims that `document` proves, as bits.
pub(crate) fn proven(document: &Value) -> u64 {
    bits(&DeploymentFacts::of(document))
}

/// The names of the claims in `bits`.
pub(crate) fn names(bits: u64) -> impl Iterator<Item = &'static str> {
    ALL.iter()
        .filter(move |(_, bit, _)| bits & bit != 0)
        .map(|(name, _, _)| *name)
}

/// The flags of the claims in `bits` that `document` does not set.
pub(crate) fn unset_flags(bits: u64, document: Option<&Value>) -> Vec<&'static str> {
    let mut unset: Vec<&'static str> = ALL
        .iter()
        .filter(|(_, bit, _)| bits & bit != 0)
        .flat_map(|(_, _, flags)| flags.iter().copied())
        .filter(|flag| {
            document.and_then(|document| document.pointer(flag)) != Some(&Value::Bool(true))
        })
        .collect();
    unset.sort_unstable();
    unset.dedup();
    unset
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn has<K: Claim, C: Has<K>>() {}
    fn covers<T: Claims, C: Superset<T>>() {}

    #[test]
    fn sets_prove_in_any_order_and_by_implication() {
        has::<Detach, crate::claims![Detach, Replay]>();
        has::<Detach, crate::claims![Replay, Detach]>();
        has::<Replay, crate::claims![RetainedControl]>();
        has::<Detach, crate::claims![Interactions, RetainedControl]>();
        has::<TurnIdempotency, crate::claims![RetainedControl]>();
        covers::<crate::claims![Detach, Replay], crate::claims![Replay, Interactions, Detach]>();
        covers::<NoClaims, crate::claims![Detach]>();
    }

    #[test]
    fn only_an_exact_true_proves() {
        let of = |value: Value| proven(&json!({"runs": {"eventReplay": value}})) & Replay::BIT != 0;
        assert!(of(json!(true)));
        for value in [json!(false), json!("true"), json!(1), json!(null)] {
            assert!(!of(value));
        }
    }

    #[test]
    fn a_missing_digest_bound_flag_takes_retained_control_alone() {
        let mut document = json!({
            "dispatch": {"runControlRef": true, "executionIdOnAdmission": true},
            "cancel": {"canonicalRunCancellation": true, "idempotent": true},
            "runs": {"executionScopedStatus": true, "eventReplay": true},
        });
        let bits = proven(&document);
        assert_eq!(
            names(bits).collect::<Vec<_>>(),
            ["Detach", "Replay", "TurnIdempotency"]
        );
        assert_eq!(
            unset_flags(RetainedControl::BIT, Some(&document)),
            ["/cancel/digestBound"]
        );
        document["cancel"]["digestBound"] = json!(true);
        assert_eq!(
            names(proven(&document)).collect::<Vec<_>>(),
            ["Detach", "Replay", "RetainedControl", "TurnIdempotency"]
        );
    }

    #[test]
    fn five_of_six_interactive_flags_prove_nothing() {
        let mut document = json!({"interactiveAgent": {
            "start": true, "status": true, "attach": true, "control": true, "sendPrompt": true,
        }});
        assert_eq!(proven(&document), 0);
        document["interactiveAgent"]["stop"] = json!(true);
        assert_eq!(proven(&document), InteractiveAgent::BIT);
    }
}
