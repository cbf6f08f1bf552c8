//! Every request, answer, event and refusal of the slice as a snapshot: the exact bytes off the socket, and a readable
//! form. The client is the SDK's, the server the embedded deployment, the agent the scripted one.
//!
//! `INSTA_UPDATE=always cargo test --test wire_snapshots` writes the snapshots again; what is left over is named by
//! `no_snapshot_is_orphaned` and deleted by hand.

mod support {
    #[macro_use]
    pub mod agent_main;
    pub mod message;
    pub mod recorder;
    pub mod wire;
}

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use support::agent_main;
use support::wire::stage::{Snapshots, Stage, json};
use support::wire::{cancels, lifecycle, refusals, turns, workspace};
use tangle_sandbox::contract::routes::{ROUTES, Route};

agent_main_tests! {
    every_message_is_the_recorded_one,
    every_served_route_has_a_snapshot,
    every_event_type_has_a_snapshot,
    no_snapshot_is_orphaned,
}

/// What one run of all steps recorded, and which routes the deployment serves.
struct Recorded {
    snapshots: Snapshots,
    served: Vec<&'static Route>,
}

/// Longer than any silence of the steps, so that no comment comes between their events.
const NO_COMMENTS: Duration = Duration::from_secs(3600);

fn recorded() -> &'static Recorded {
    // A recording that failed is not tried again.
    static RECORDED: OnceLock<Option<Recorded>> = OnceLock::new();
    let recorded = RECORDED.get_or_init(|| catch_unwind(|| agent_main::block_on(record())).ok());
    recorded.as_ref().expect("the steps could not be recorded")
}

async fn record() -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::start(folder.path(), NO_COMMENTS).await;
    let served = served(&stage).await;
    let sandbox = lifecycle::begin(&mut stage).await;
    lifecycle::read(&mut stage, &sandbox).await;
    workspace::files(&mut stage, &sandbox).await;
    workspace::directories(&mut stage, &sandbox).await;
    workspace::commands(&mut stage, &sandbox).await;
    turns::whole_run(&mut stage, &sandbox).await;
    turns::short_runs(&mut stage, &sandbox).await;
    turns::failed_runs(&mut stage, &sandbox).await;
    cancels::cancelled_run(&mut stage, &sandbox).await;
    cancels::detached_run(&mut stage, &sandbox).await;
    turns::sessions(&mut stage, &sandbox).await;
    turns::dispatch(&mut stage, &sandbox).await;
    refusals::control(&mut stage).await;
    refusals::runtime(&mut stage, &sandbox).await;
    lifecycle::end(&mut stage, sandbox).await;
    let mut snapshots = stage.end().await;
    snapshots.add(silence().await);
    Recorded { snapshots, served }
}

/// A deployment that comments on silence at once.
async fn silence() -> Snapshots {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::start(folder.path(), Duration::from_millis(20)).await;
    let sandbox = stage.client.create("scripted").await.unwrap();
    stage
        .forms
        .learn("sandbox", sandbox.id(), "sbx_[a-z2-7]{26}");
    let sandbox = sandbox.wait_ready().await.unwrap();
    cancels::silence(&mut stage, &sandbox).await;
    stage.end().await
}

/// The routes that the deployment serves: it answers 501, or 404 about the route, for the rest of the table.
async fn served(stage: &Stage) -> Vec<&'static Route> {
    let mut served = Vec::new();
    for route in ROUTES {
        let segments = route.template.split('/').map(|segment| match segment {
            parameter if parameter.starts_with('{') => "none",
            segment => segment,
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let answer = json(&stage.client, route.method.as_str(), &path, "").await;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let absent = answer.status == 404 && body.contains(r#""resourceType":"route""#);
        if answer.status != 501 && !absent {
            served.push(*route);
        }
    }
    served
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/wire")
}

fn every_message_is_the_recorded_one() {
    let mut differ = Vec::new();
    for (name, text) in &recorded().snapshots.texts {
        let (kind, name) = name.split_once('/').unwrap();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder().join(kind));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name, text));
        let compared = catch_unwind(AssertUnwindSafe(compare));
        if compared.is_err() {
            differ.push(format!("{kind}/{name}"));
        }
    }
    assert!(differ.is_empty(), "{} differ: {differ:#?}", differ.len());
}

fn every_served_route_has_a_snapshot() {
    let recorded = recorded();
    let lacking: Vec<&str> = recorded
        .served
        .iter()
        .map(|route| route.name)
        .filter(|name| !recorded.snapshots.routes.contains(name))
        .collect();
    assert!(lacking.is_empty(), "routes without a snapshot: {lacking:?}");
    let served: BTreeSet<&str> = recorded.served.iter().map(|route| route.name).collect();
    let others: Vec<_> = recorded.snapshots.routes.difference(&served).collect();
    assert!(others.is_empty(), "routes that are not served: {others:?}");
}

fn every_event_type_has_a_snapshot() {
    let snapshots = &recorded().snapshots;
    let lacking: Vec<_> = snapshots.came.difference(&snapshots.events).collect();
    assert!(lacking.is_empty(), "events without a snapshot: {lacking:?}");
}

fn no_snapshot_is_orphaned() {
    let mut orphans = Vec::new();
    for kind in std::fs::read_dir(folder()).unwrap() {
        let kind = kind.unwrap().file_name().into_string().unwrap();
        for file in std::fs::read_dir(folder().join(&kind)).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            let name = file
                .strip_suffix(".snap")
                .map(|name| format!("{kind}/{name}"));
            if !name.is_some_and(|name| recorded().snapshots.texts.contains_key(&name)) {
                orphans.push(format!("{kind}/{file}"));
            }
        }
    }
    assert!(orphans.is_empty(), "no step writes these: {orphans:#?}");
}
