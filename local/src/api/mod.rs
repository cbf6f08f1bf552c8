//! The routes, one file a chapter of the wire protocol.
//!
//! * [`sandboxes`], [`create`], [`create_fields`], [`lifecycle_events`] – sandboxes and their lifecycle (4).
//! * [`backends`] – the backend catalogue (5.1). [`capabilities`] – the capability document (6).
//! * [`runs`] – running an agent (7, 8). [`cancel`] – stopping it (7.7, 9.8). [`sessions`] – sessions (9).
//! * [`files`], [`directories`] – files (13). [`exec`] – commands (14.1). [`health`] – health (18).
//! * [`layer`] – what every request goes through: request id, credential, envelope of errors.
//! * [`request`], [`answer`], [`sse`] – bounded reading, envelopes, streams.

pub(crate) mod answer;
mod backends;
mod call;
mod cancel;
mod capabilities;
mod create;
mod create_fields;
mod directories;
mod exec;
mod files;
mod health;
mod layer;
mod lifecycle_events;
pub(crate) mod request;
mod runs;
mod sandboxes;
mod sessions;
pub(crate) mod sse;
mod table;

use std::sync::Arc;

use axum::Router;

use crate::deployment::Deployment;

pub(crate) use call::must_run;

/// The deployment as handlers hold it.
pub(crate) type Shared = Arc<Deployment>;

/// Every route of the protocol: those that are served, and 501 for the rest of the table.
pub(crate) fn router(deployment: Shared) -> Router {
    table::routes()
        .fallback(layer::no_route)
        .layer(axum::middleware::from_fn_with_state(
            deployment.clone(),
            layer::every_request,
        ))
        .with_state(deployment)
}
