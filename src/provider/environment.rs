//! An environment: a running sandbox with the claims that its deployment proved.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::claims::{self, ClaimList, Claims, Detach, Has, NoClaims, Superset};
use crate::contract::capability::ClaimsNothing;
use crate::contract::types::{DeploymentDocument, SandboxId};
use crate::sandbox::{Call, Inner, Ready, Running, Sandbox};

use super::capabilities::{self, Document};
use super::dispatch::Dispatch;
use super::turn::Turn;

/// A running sandbox as an environment for agents, with the claims `C` that the deployment's capability document proved
/// when the environment was composed.
///
/// A new environment claims nothing. [`claim`](Self::claim) compares with the document and gives an environment whose type
/// carries the claim; only then do the operations that rest on it compile. A claim is not a promise of success: a sandbox
/// can stop later, so every call still gives a `Result`.
///
/// It is one pointer wide and cheap to clone; clones share what they know.
///
/// ```no_run
/// # async fn example(sandbox: tangle_sandbox::sandbox::Sandbox<tangle_sandbox::sandbox::Running>) -> Result<(), Box<dyn std::error::Error>> {
/// use tangle_sandbox::claims::Detach;
///
/// let environment = sandbox.environment().await?.claim::<Detach>()?;
/// let run = environment.dispatch("tidy the docs").await?;
/// println!("{}", serde_json::to_string(run.control_ref())?);
/// # Ok(())
/// # }
/// ```
pub struct Environment<S, C = NoClaims> {
    shared: Arc<Shared>,
    proof: PhantomData<fn() -> (S, C)>,
}

/// An environment that carries no claims, for places that hold several kinds; claim again from it.
pub type AnyEnvironment = Environment<Running>;

struct Shared {
    inner: Inner,
    /// The document, or why there is none.
    document: Result<Document, ClaimsNothing>,
    proven: u64,
}

impl<S> Sandbox<S> {
    /// Composes the environment of this sandbox: reads the deployment's capability document once.
    ///
    /// A document that is absent, newer or cannot be read claims nothing; the last is a warning on `tracing`, not an
    /// error, since the sandbox works without claims.
    ///
    /// # Errors
    ///
    /// None today; the call gives a `Result` like every other.
    pub fn environment(&self) -> Call<'_, Environment<Running>>
    where
        S: Ready,
    {
        let inner = self.inner().clone();
        Call::new(async move {
            let document = match capabilities::read(&inner).await {
                Ok(document) => document.ok_or(ClaimsNothing::NoDocument),
                Err(error) => {
                    tracing::warn!(sandbox = %inner.id(), code = %error.code(), %error, "the capability document cannot be read; nothing is claimed");
                    Err(ClaimsNothing::ReadFailed)
                }
            };
            let proven = document
                .as_ref()
                .map_or(0, |document| claims::proven(&document.value));
            Ok(Environment::new(Arc::new(Shared {
                inner,
                document,
                proven,
            })))
        })
    }
}

impl<S, C> Environment<S, C> {
    fn new(shared: Arc<Shared>) -> Self {
        Environment {
            shared,
            proof: PhantomData,
        }
    }

    /// Its identity: that of the sandbox.
    pub fn id(&self) -> &SandboxId {
        self.shared.inner.id()
    }

    /// The document that the deployment gave when this environment was composed; `None` when there was none to read.
    pub fn capabilities(&self) -> Option<&DeploymentDocument> {
        self.shared
            .document
            .as_ref()
            .ok()
            .map(|document| &document.typed)
    }

    /// Why there is no document and nothing is claimed, if that is so.
    pub fn claims_nothing(&self) -> Option<ClaimsNothing> {
        self.shared.document.as_ref().err().copied()
    }

    /// The names of all claims that the document proves, claimed or not.
    pub fn proven(&self) -> impl Iterator<Item = &'static str> {
        claims::names(self.shared.proven)
    }
}

impl<C: Claims> Environment<Running, C> {
    /// Proves claims from the capability document: one (`claim::<Detach>()`), several (`claim::<(Detach, Replay)>()`), or
    /// a named set (`claim::<Worker>()`), which gives exactly that set.
    ///
    /// # Errors
    ///
    /// [`Unproven`] with this environment, the missing claims and the flags that are not set.
    pub fn claim<K: ClaimList<C>>(self) -> Result<Environment<Running, K::Out>, Unproven<Self>> {
        let missing = K::BITS & !self.shared.proven;
        if missing == 0 {
            Ok(Environment::new(self.shared))
        } else {
            Err(Unproven {
                environment: self,
                missing,
            })
        }
    }

    /// Forgets claims, or puts them in another order. It costs nothing.
    pub fn narrow<T: Claims>(self) -> Environment<Running, T>
    where
        C: Superset<T>,
    {
        Environment::new(self.shared)
    }

    /// Dispatches a turn that outlives its reader. Await it for the [`Run<Detached>`](crate::sandbox::Detached), whose
    /// reference names provider, environment, session, execution, run and request digest.
    pub fn dispatch(&self, turn: impl Into<Turn>) -> Dispatch<'_>
    where
        C: Has<Detach>,
    {
        Dispatch::new(&self.shared.inner, turn.into())
    }
}

impl<S, C> Clone for Environment<S, C> {
    fn clone(&self) -> Self {
        Environment::new(self.shared.clone())
    }
}

impl<S, C: Claims> fmt::Debug for Environment<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("id", self.id())
            .field("claims", &claims::names(C::BITS).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Claims that the deployment does not prove. The environment is given back unchanged.
pub struct Unproven<E> {
    /// The environment as it was.
    pub environment: E,
    missing: u64,
}

impl<C> Unproven<Environment<Running, C>> {
    /// The claims that are not proven.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        claims::names(self.missing)
    }

    /// The flags that the document would have to set, as JSON pointers.
    pub fn unset_flags(&self) -> impl Iterator<Item = &'static str> {
        let document = self.environment.shared.document.as_ref().ok();
        claims::unset_flags(self.missing, document.map(|document| &document.value)).into_iter()
    }
}

impl<C> fmt::Display for Unproven<Environment<Running, C>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<_> = self.missing().collect();
        let flags: Vec<_> = self.unset_flags().collect();
        let (missing, flags) = (missing.join(", "), flags.join(", "));
        if let Err(why) = &self.environment.shared.document {
            return write!(
                f,
                "this deployment has no readable capability document ({why}), so {missing} is not proven"
            );
        }
        write!(
            f,
            "this deployment does not prove {missing}: its capability document does not set {flags}"
        )
    }
}

impl<C> fmt::Debug for Unproven<Environment<Running, C>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unproven")
            .field("missing", &self.missing().collect::<Vec<_>>())
            .field("unset_flags", &self.unset_flags().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl<C> std::error::Error for Unproven<Environment<Running, C>> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Replay;

    #[test]
    fn an_environment_is_one_pointer_wide() {
        type Full = Environment<Running, crate::claims![Detach, Replay]>;
        assert_eq!(size_of::<Full>(), size_of::<usize>());
        assert_eq!(size_of::<Option<Full>>(), size_of::<usize>());
        assert_eq!(size_of::<AnyEnvironment>(), size_of::<usize>());
    }

    #[test]
    fn handles_cross_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Environment<Running, crate::claims![Detach]>>();
        crosses::<Sandbox<Running>>();
        fn moves<T: Send + 'static>() {}
        moves::<crate::sandbox::Run<crate::sandbox::Attached>>();
        moves::<crate::sandbox::Run<crate::sandbox::Detached>>();
    }
}
