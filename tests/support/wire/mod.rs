//! The recorded exchanges of the slice, as snapshots.
//!
//! * [`stage`] – a deployment, a client and the recorder between them; a step becomes snapshots.
//! * [`forms`] – what differs from run to run: its form is asserted, then a placeholder stands for it.
//! * [`render`] – exact bytes and readable form of one message.
//! * [`lifecycle`], [`workspace`], [`turns`], [`cancels`], [`refusals`] – the steps, a file for each family of routes.

pub mod cancels;
pub mod forms;
pub mod lifecycle;
pub mod refusals;
pub mod render;
pub mod stage;
pub mod turns;
pub mod workspace;
