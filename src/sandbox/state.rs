//! The states of a sandbox, as types.

use std::time::Duration;

mod sealed {
    pub trait Sealed {}
}

/// A state of [`Sandbox`](super::Sandbox). Sealed: the states are those of this module.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state of a sandbox",
    label = "not a state",
    note = "the states are `Provisioning`, `Running`, `Stopped` and `Ended`; `wait_ready`, `stop` and `resume` lead from one to the next"
)]
pub trait State: sealed::Sealed + 'static {
    /// The state's name.
    const NAME: &'static str;
}

/// Accepted, not yet usable; `wait_ready` makes it [`Running`].
pub struct Provisioning(());
/// Running, its file system included; can be prompted.
pub struct Running(());
/// Stopped with its state kept; `resume` makes it [`Provisioning`].
pub struct Stopped(());
/// Failed, expired or deleted; nothing but its record is left.
pub struct Ended(());

macro_rules! states {
    ($($state:ident),*) => {$(
        impl sealed::Sealed for $state {}
        impl State for $state {
            const NAME: &'static str = stringify!($state);
        }
    )*};
}
states!(Provisioning, Running, Stopped, Ended);

/// A sandbox in this state can be prompted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a running sandbox",
    label = "this sandbox is `{Self}`",
    note = "a new sandbox has to get ready first: `let sandbox = sandbox.wait_ready().await?;` gives a `Sandbox<Running>`",
    note = "a stopped sandbox has to be resumed first: `let sandbox = sandbox.resume().await?.wait_ready().await?;`"
)]
pub trait Ready: State {}

impl Ready for Running {}

/// How long a caller waits for one request or one turn.
///
/// It ends the waiting, not the sandbox: how long a sandbox may live is a [`Lifetime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

/// How long a sandbox may live. The service ends the sandbox when it is over, whether or not anyone still waits.
///
/// How long a caller waits for an answer is a [`Deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime(Duration);

macro_rules! spans {
    ($($span:ident),*) => {$(
        impl $span {
            /// From a standard duration.
            pub const fn new(duration: Duration) -> Self {
                Self(duration)
            }

            /// From milliseconds.
            pub const fn from_millis(millis: u64) -> Self {
                Self(Duration::from_millis(millis))
            }

            /// From seconds.
            pub const fn from_secs(seconds: u64) -> Self {
                Self(Duration::from_secs(seconds))
            }

            /// From minutes.
            pub const fn from_minutes(minutes: u64) -> Self {
                Self(Duration::from_secs(minutes.saturating_mul(60)))
            }

            /// As a standard duration.
            pub const fn get(self) -> Duration {
                self.0
            }
        }
    )*};
}
spans!(Deadline, Lifetime);

impl Lifetime {
    /// Whole seconds, as the wire has them; a part of a second counts as one.
    pub(crate) fn seconds(self) -> u64 {
        let begun = u64::from(self.0.subsec_nanos() > 0);
        self.0.as_secs().saturating_add(begun)
    }
}
