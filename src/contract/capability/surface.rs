//! What a client and the handle of one sandbox offer, as plain booleans. A claim rests on an operation that is there.

/// What a client offers besides creating a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientSurface {
    /// A sandbox is found again by its id, so that an environment can be rebuilt in another process.
    pub get: bool,
    /// Sandboxes are listed.
    pub list: bool,
    /// Where a sandbox runs is described.
    pub describe_placement: bool,
    /// The account's usage counters are read.
    pub usage: bool,
    /// The account's subscription is read.
    pub subscription: bool,
    /// What the handles of this client offer, measured without a request; `None` when they cannot be measured.
    pub instance: Option<InstanceSurface>,
}

/// What the handle of one sandbox offers besides streaming a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceSurface {
    /// The deployment's capability document is read.
    pub capabilities: bool,
    /// A prompt is dispatched that outlives its reader.
    pub dispatch_prompt: bool,
    /// Sessions are opened, with these operations.
    pub session: Option<SessionSurface>,
    /// Terminals exist, with these operations.
    pub terminals: Option<TerminalSurface>,
    /// Files are read.
    pub read: bool,
    /// Files are written.
    pub write: bool,
    /// Commands are run.
    pub exec: bool,
    /// The sandbox is deleted.
    pub delete: bool,
    /// The resource usage is read.
    pub resource_usage: bool,
    /// Checkpoints exist, with these operations.
    pub checkpoints: CheckpointSurface,
}

/// What the handle of one session offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSurface {
    /// A run is cancelled by its exact reference.
    pub cancel_run: bool,
    /// A response command is sent.
    pub respond_to_interaction: bool,
    /// The agent's own terminal interface is driven.
    pub interactive: bool,
}

/// What the terminals of a sandbox offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSurface {
    /// A socket to a terminal is opened.
    pub attach: bool,
    /// The metadata of a terminal is looked up.
    pub get: bool,
}

/// What branching needs of a sandbox (branching, 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointSurface {
    /// A snapshot is taken under a key and with tags.
    pub snapshot: bool,
    /// Snapshots are listed.
    pub list: bool,
    /// A snapshot is deleted, with an outcome.
    pub delete: bool,
    /// A snapshot operation is looked up by its key.
    pub lookup: bool,
}

/// From where the values of an observation can come now (observation, 12.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservationSources {
    /// The sandbox has a runtime URL that is a safe endpoint.
    pub endpoint: bool,
    /// The resources that the create asked for are known.
    pub requested_resources: bool,
    /// The sandbox holds a lease with a usable price.
    pub priced_lease: bool,
}

impl ObservationSources {
    /// Every source: what counts before a sandbox exists.
    pub const ALL: Self = Self {
        endpoint: true,
        requested_resources: true,
        priced_lease: true,
    };
}

impl ClientSurface {
    /// Everything that a client can offer.
    pub const ALL: Self = Self {
        get: true,
        list: true,
        describe_placement: true,
        usage: true,
        subscription: true,
        instance: Some(InstanceSurface::ALL),
    };

    /// Whether checkpoints and forks can be managed whole: made, found again and removed.
    pub fn manages_branches(&self) -> bool {
        self.get && self.list && self.handles().checkpoints.is_complete()
    }

    /// What the handles offer: as measured, else what counts without a measurement.
    pub(super) fn handles(&self) -> InstanceSurface {
        self.instance.unwrap_or(InstanceSurface::ASSUMED)
    }
}

impl InstanceSurface {
    /// Everything that a handle can offer.
    pub const ALL: Self = Self {
        capabilities: true,
        dispatch_prompt: true,
        session: Some(SessionSurface {
            cancel_run: true,
            respond_to_interaction: true,
            interactive: true,
        }),
        terminals: Some(TerminalSurface {
            attach: true,
            get: true,
        }),
        read: true,
        write: true,
        exec: true,
        delete: true,
        resource_usage: true,
        checkpoints: CheckpointSurface {
            snapshot: true,
            list: true,
            delete: true,
            lookup: true,
        },
    };

    /// What counts for handles that cannot be measured: the plain operations, and nothing that control, answers, the
    /// agent's own terminal interface or checkpoints rest on.
    pub const ASSUMED: Self = Self {
        session: Some(SessionSurface {
            cancel_run: false,
            respond_to_interaction: false,
            interactive: false,
        }),
        checkpoints: CheckpointSurface {
            snapshot: false,
            list: false,
            delete: false,
            lookup: false,
        },
        ..Self::ALL
    };
}

impl CheckpointSurface {
    /// Whether every operation is there.
    pub fn is_complete(&self) -> bool {
        self.snapshot && self.list && self.delete && self.lookup
    }
}
