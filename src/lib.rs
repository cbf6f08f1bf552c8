//! Type-state, codegen-driven SDK for coding agents in remote sandboxes.
//!
//! | room | what it is |
//! |---|---|
#![cfg_attr(
    feature = "client",
    doc = "| [`sandbox`] | the service as an SDK: [`Client`](sandbox::Client), [`Sandbox`](sandbox::Sandbox), runs, files, commands |
| [`provider`] | a running sandbox as an [`Environment`](provider::Environment) with proven claims |
| [`transport`] | HTTP, error envelopes, retry, server-sent events |"
)]
//! | [`mod@claims`] | what a deployment has proven, as types |
//! | [`contract`] | types, checks, digests, bounds and routes; no I/O |
//! | [`manual`] | the manual: contracts, limits, claims |
//!
//! A first turn, whole:
//!
//! ```no_run
//! # async fn first_turn() -> Result<(), Box<dyn std::error::Error>> {
//! use tangle_sandbox::sandbox::{Client, NewSandbox};
//!
//! let client = Client::builder("http://127.0.0.1:4100", std::env::var("TANGLE_API_KEY")?).build()?;
//! let sandbox = client.create(NewSandbox::new().backend("scripted")).await?.wait_ready().await?;
//! let result = sandbox.prompt("write notes.txt A note.").await?;
//! println!("{:?}: {}", result.status, sandbox.read_text("notes.txt").await?);
//! sandbox.delete().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! * `client` (default): everything but [`contract`] and [`mod@claims`]. Without it there is no I/O, no async and no TLS.
//! * `ring` (default): TLS with the ring provider. `aws-lc`: with aws-lc-rs instead. With neither, the program installs a
//!   provider of its own.

pub mod claims;
pub mod contract;
pub mod manual;
#[cfg(feature = "client")]
pub mod provider;
#[cfg(feature = "client")]
pub mod sandbox;
#[cfg(feature = "client")]
pub mod transport;

#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
