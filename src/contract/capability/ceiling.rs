//! The document that is declared when nothing is configured: the most that this provider can do (provider runtime, 5.1).

use super::Capabilities;
use crate::contract::types::{
    AnswerFieldType, AttachmentCapabilities, BranchingCapabilities, CreateCapabilities,
    CwdBaseCapabilities, EgressMode, Harness, Identifier, InteractionCapabilities,
    InteractiveAgentCapabilities, InteractiveTerminalCapabilities, ObservationCapabilities,
    ProfileCapabilities, ResourceCapabilities, ResponseScope, RetainedControlCapabilities,
    SessionCapabilities, StreamingCapabilities, SystemPromptSupport, WorkspaceCapabilities,
};

/// The most that an environment with the backend `backend` can do, before anything narrows it.
///
/// The backend, a harness name in practice, decides what becomes of a system prompt; without one, or with one that is
/// unknown, none takes effect. `branches` says that the client manages checkpoints and forks whole
/// ([`ClientSurface::manages_branches`](super::ClientSurface::manages_branches)); nothing less raises their flags.
///
/// ```
/// use tangle_sandbox::contract::capability::{CapabilitySnapshot, ceiling};
///
/// let document = CapabilitySnapshot::new(ceiling(Some("codex"), false))?;
/// assert!(document.profile.system_prompt.replace && !document.profile.system_prompt.append);
/// assert!(document.retained_control.is_some() && !document.branching.fork);
/// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
/// ```
pub fn ceiling(backend: Option<&str>, branches: bool) -> Capabilities {
    Capabilities {
        profile: profile(backend),
        streaming: StreamingCapabilities {
            live: true,
            replay: true,
            detach: true,
            turn_idempotency: true,
        },
        sessions: SessionCapabilities {
            continue_: true,
            list: false,
            messages: false,
        },
        retained_control: Some(RetainedControlCapabilities {
            exact_run_identity: true,
            result_identity: true,
            event_identity: true,
            cancellation_idempotency: true,
        }),
        native_continuation: None,
        context_transfer: None,
        interactions: Some(interactions()),
        workspace: WorkspaceCapabilities {
            read: true,
            write: true,
            exec: true,
            git: false,
            upload: true,
            download: true,
            cwd_bases: Some(CwdBaseCapabilities {
                repository: true,
                host: false,
            }),
        },
        branching: branching(branches),
        placement: true,
        usage: false,
        confidential: false,
        exact_process: None,
        create: Some(CreateCapabilities {
            egress: Some(vec![
                EgressMode::Open,
                EgressMode::Strict,
                EgressMode::Blocked,
            ]),
            billing_owner: Some(true),
            runtime_attachments: Some(AttachmentCapabilities { mcp: true }),
            workspace_checkpoint: Some(true),
        }),
        observation: Some(observation()),
        interactive_terminal: Some(InteractiveTerminalCapabilities {
            attach: true,
            input: true,
            resize: true,
            reattach: true,
        }),
        interactive_agent: Some(interactive_agent()),
    }
}

fn profile(backend: Option<&str>) -> ProfileCapabilities {
    let harness = backend.and_then(|backend| backend.parse::<Harness>().ok());
    let neither = SystemPromptSupport {
        replace: false,
        append: false,
    };
    ProfileCapabilities {
        named_profiles: true,
        system_prompt: harness.map_or(neither, Harness::system_prompt),
        instructions: true,
        tools: true,
        permissions: true,
        mcp: true,
        subagents: true,
        resources: ResourceCapabilities {
            files: true,
            instructions: true,
            tools: Some(true),
            skills: Some(true),
            agents: Some(true),
            commands: Some(true),
        },
        hooks: Some(true),
        modes: Some(true),
        runtime_update: true,
        validation: true,
        extensions: None,
    }
}

fn interactions() -> InteractionCapabilities {
    InteractionCapabilities {
        kinds: ["question", "permission", "plan"]
            .into_iter()
            .filter_map(|kind| Identifier::new(kind).ok())
            .collect(),
        answer_field_types: vec![
            AnswerFieldType::Text,
            AnswerFieldType::Number,
            AnswerFieldType::Boolean,
            AnswerFieldType::Select,
        ],
        response_scopes: vec![ResponseScope::Interaction],
        secret_answers: false,
        concurrent_requests: true,
        replay: true,
        response_idempotency: true,
    }
}

fn branching(branches: bool) -> BranchingCapabilities {
    let durable = branches.then_some(true);
    BranchingCapabilities {
        checkpoint: branches,
        fork: branches,
        confidential: None,
        retry_safe: durable,
        lookup: durable,
        cleanup: durable,
    }
}

fn observation() -> ObservationCapabilities {
    ObservationCapabilities {
        identity: true,
        lifecycle: true,
        endpoint: true,
        placement: true,
        resources: true,
        resource_use: true,
        model_usage: true,
        compute_billing: true,
        account_usage: true,
    }
}

fn interactive_agent() -> InteractiveAgentCapabilities {
    InteractiveAgentCapabilities {
        start: true,
        control: true,
        status: true,
        attach: true,
        reattach: true,
        send_prompt: true,
        input: true,
        resize: true,
        stop: true,
    }
}
