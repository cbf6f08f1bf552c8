//! Which topics this repository serves and which it does not serve yet: the one place for both.

use super::{Topic, capabilities, control, core, create, events, harness, profile, turn};

/// The topics that are served.
pub const SERVED: &[Topic] = &[
    Topic {
        name: "core-canonical-json",
        serve: core::canonical_json,
    },
    Topic {
        name: "core-contract-limits",
        serve: core::contract_limits,
    },
    Topic {
        name: "core-profile",
        serve: profile::profile,
    },
    Topic {
        name: "core-profile-security",
        serve: profile::security,
    },
    Topic {
        name: "core-capabilities",
        serve: capabilities::documents,
    },
    Topic {
        name: "provider-runtime-capabilities",
        serve: capabilities::derivation,
    },
    Topic {
        name: "core-harness",
        serve: harness::harness,
    },
    Topic {
        name: "provider-runtime-control",
        serve: control::control,
    },
    Topic {
        name: "core-usage-and-events",
        serve: events::documents,
    },
    Topic {
        name: "provider-runtime-events",
        serve: events::frames,
    },
    Topic {
        name: "provider-runtime-step-usage",
        serve: events::steps,
    },
    Topic {
        name: "core-turn-input",
        serve: turn::input,
    },
    Topic {
        name: "core-create-input",
        serve: create::input,
    },
    Topic {
        name: "provider-runtime-create",
        serve: create::runtime,
    },
    Topic {
        name: "provider-runtime-request-digest",
        serve: turn::digest,
    },
];

/// The topics of the specification that are not served yet. A topic that comes to pass must leave this list.
pub const NOT_YET_SERVED: &[&str] = &[
    "interactions",
    "interactive-session",
    "terminal",
    "workspace-branching",
    "workspace-markers",
    "confidential-attestation",
    "exact-process",
    "environment-observation",
    "evidence-cases",
    "credentials-cases",
];
