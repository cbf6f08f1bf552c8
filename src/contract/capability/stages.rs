//! The two stages of a capability document (provider runtime, 5.2).

use super::narrow::{Backend, Gates};
use super::surface::{ClientSurface, InstanceSurface, ObservationSources};
use super::{
    Capabilities, CapabilitySnapshot, ClaimsNothing, DeploymentFacts, Disclosure, Operations,
};
use crate::contract::check::Refused;
use crate::contract::types::{
    ExactProcessCapabilities, ExactProcessEgress, ObservationCapabilities,
};

/// What a provider can do at most: the document of the first stage. It proves nothing about any deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderCapabilities(CapabilitySnapshot);

impl ProviderCapabilities {
    /// The document.
    pub fn document(&self) -> &CapabilitySnapshot {
        &self.0
    }
}

/// What one environment honours: the document to publish, and the operations that it claims.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentCapabilities {
    document: CapabilitySnapshot,
    operations: Operations,
    claims_nothing: Option<ClaimsNothing>,
}

impl EnvironmentCapabilities {
    /// The document.
    pub fn document(&self) -> &CapabilitySnapshot {
        &self.document
    }

    /// The operations, exactly those that the document claims.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// Why the deployment claims nothing, if that is so.
    pub fn claims_nothing(&self) -> Option<ClaimsNothing> {
        self.claims_nothing
    }
}

/// The first stage: `document`, which is the [`ceiling`](super::ceiling) or one of the operator's own, narrowed to the
/// client's surface and to the backend. No request is sent, and every fact of a deployment counts as backed.
///
/// `exact_process` says that the provider was made for exact processes; its document then states their egress modes.
///
/// # Errors
///
/// [`Refused`] at `/exactProcess` when `document` advertises what the provider was not made for, and at the block whose
/// flags do not stand together after narrowing (core contracts, 9.2).
///
/// ```
/// use tangle_sandbox::contract::capability::{Backend, ClientSurface, ceiling, declared};
///
/// let client = ClientSurface { get: false, ..ClientSurface::ALL };
/// let provider = declared(&ceiling(Some("codex"), false), &client, Backend::NotChosen, false)?;
/// assert!(provider.document().streaming.detach);
/// assert!(provider.document().retained_control.is_none(), "a client without `get` finds no run again");
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
pub fn declared(
    document: &Capabilities,
    client: &ClientSurface,
    backend: Backend<'_>,
    exact_process: bool,
) -> Result<ProviderCapabilities, Refused> {
    if document.exact_process.is_some() && !exact_process {
        return Err(Refused::new(
            "/exactProcess",
            "needs a provider that was made for exact processes",
        ));
    }
    let gates = Gates {
        instance: client.handles(),
        facts: DeploymentFacts::ALL,
        reconstruct: client.get,
        placement: client.describe_placement,
        branching: client.manages_branches(),
        observation: ObservationCapabilities {
            placement: client.describe_placement,
            account_usage: client.usage && client.subscription,
            ..observation(true, &ObservationSources::ALL)
        },
    };
    let mut narrowed = gates.narrow(document);
    backend.narrow(&mut narrowed);
    narrowed.exact_process = exact_process.then(|| ExactProcessCapabilities {
        egress: vec![ExactProcessEgress::Blocked, ExactProcessEgress::Strict],
    });
    CapabilitySnapshot::new(narrowed).map(ProviderCapabilities)
}

/// The second stage: what the provider declared, narrowed to the handle of one sandbox and to what its deployment
/// disclosed. It is a pure function, called once when the environment is composed.
///
/// It never claims what the provider does not. A deployment that disclosed nothing loses what rests on its facts;
/// the operations of the workspace stay.
///
/// ```
/// use tangle_sandbox::contract::capability::*;
/// use serde_json::json;
///
/// let provider = declared(&ceiling(None, false), &ClientSurface::ALL, Backend::NotChosen, false)?;
/// let disclosed = Disclosure::of(&json!({ "runs": { "eventReplay": true } }));
/// let environment = derive(&provider, &InstanceSurface::ALL, &ObservationSources::ALL, disclosed);
/// assert!(environment.document().streaming.replay && !environment.document().streaming.detach);
/// assert!(environment.operations().contains(Operation::Session));
/// assert!(!environment.operations().contains(Operation::Dispatch));
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
pub fn derive(
    provider: &ProviderCapabilities,
    instance: &InstanceSurface,
    sources: &ObservationSources,
    disclosure: Disclosure,
) -> EnvironmentCapabilities {
    // What rests on the client is in the provider's document already.
    let gates = Gates {
        instance: *instance,
        facts: disclosure.facts(),
        reconstruct: true,
        placement: true,
        branching: instance.checkpoints.is_complete(),
        observation: observation(instance.resource_usage, sources),
    };
    let document = CapabilitySnapshot::narrowed(gates.narrow(&provider.0));
    let operations = Operations::of(&document, instance.delete);
    EnvironmentCapabilities {
        document,
        operations,
        claims_nothing: disclosure.claims_nothing(),
    }
}

/// Which values can exist (observation, 12.9), as far as they do not rest on the client.
fn observation(resource_usage: bool, sources: &ObservationSources) -> ObservationCapabilities {
    ObservationCapabilities {
        identity: true,
        lifecycle: true,
        endpoint: sources.endpoint,
        placement: true,
        resources: resource_usage || sources.requested_resources,
        resource_use: resource_usage,
        model_usage: true,
        compute_billing: sources.priced_lease,
        account_usage: true,
    }
}
