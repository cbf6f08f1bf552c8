//! A data directory that cannot be written.
//!
//! The tests need a small or read-only file system of their own. They start themselves again in a mount namespace, which
//! the same test recognises by a variable; where the machine allows no namespace they say so in one line.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tangle_sandbox::sandbox::{Client, NewSandbox};
use tangle_sandbox_local::{Local, StartError};

use crate::support::deployed::{finish, frames, until};
use crate::within;

/// Names the directory of the file system to the test in its namespace.
const PLACE: &str = "TANGLE_TEST_PLACE";

/// The file system, inside of its namespace; else runs this test there, with a file system of these mount options.
fn place(test: &str, options: &str) -> Option<PathBuf> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Some(PathBuf::from(place));
    }
    let folder = tempfile::tempdir().unwrap();
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ]);
        command.arg(folder.path()).stdin(Stdio::null());
        command
    };
    let probe = namespace("mount -t tmpfs tmpfs \"$1\"")
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        let required = std::env::var_os("TANGLE_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "this machine allows no mount namespace");
        println!("skipped: {test} (this machine allows no mount namespace)");
        return None;
    }
    let script = format!("mount -t tmpfs -o {options} tmpfs \"$1\" && shift && exec \"$@\"");
    let status = namespace(&script)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(PLACE, folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its namespace");
    None
}

pub fn a_read_only_data_directory_is_refused_at_the_start() {
    let test = "a_read_only_data_directory_is_refused_at_the_start";
    let Some(place) = place(test, "ro,size=4m") else {
        return;
    };
    within(Duration::from_secs(30), async {
        for folder in [place.clone(), place.join("below")] {
            let refused = Local::builder().data_dir(folder).start().await.unwrap_err();
            assert!(matches!(refused, StartError::DataDir(_)), "{refused:?}");
        }
    });
}

/// Fills the file system to the last byte.
fn fill(file: &Path) {
    let mut file = std::fs::File::create(file).unwrap();
    for size in [1 << 16, 1 << 10, 1] {
        while std::io::Write::write_all(&mut file, &vec![0; size]).is_ok() {}
    }
}

pub fn a_full_disk_refuses_by_name_and_room_makes_it_work_again() {
    let test = "a_full_disk_refuses_by_name_and_room_makes_it_work_again";
    let Some(place) = place(test, "size=16m") else {
        return;
    };
    within(Duration::from_secs(90), async {
        let local = Local::builder()
            .data_dir(place.join("data"))
            .start()
            .await
            .unwrap();
        let client = Client::builder(local.base_url(), local.api_key().clone());
        let client = client.build().unwrap();
        let scripted = || NewSandbox::new().backend("scripted");
        let sandbox = client
            .create(scripted())
            .await
            .unwrap()
            .wait_ready()
            .await
            .unwrap();
        assert!(sandbox.prompt("say warm").await.unwrap().success());
        let run = sandbox
            .stream("run while [ ! -e go ]; do sleep 0.05; done\nflood 20000")
            .await
            .unwrap();
        let (execution, session) = (run.execution_id().clone(), run.session_id().clone());
        sandbox.write("go", "").await.unwrap();
        let filling = place.join("filling");
        fill(&filling);

        let refused = client.create(scripted()).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "STORAGE_FULL", "{refused:?}");
        let refused = sandbox.write("big", vec![0; 1 << 20]).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "STORAGE_FULL", "{refused:?}");
        assert!(
            sandbox.read("big").await.is_err(),
            "no half of a file is left"
        );
        assert!(
            Local::builder()
                .data_dir(place.join("other"))
                .start()
                .await
                .is_err()
        );

        // The run cannot be recorded, so it is ended, and its reader is not left waiting.
        let (_, result) = finish(run).await;
        assert!(!result.success(), "{result:?}");

        // Its end is recorded once there is room.
        std::fs::remove_file(&filling).unwrap();
        let runs = format!(
            "/v1/sandboxes/{}/runtime/agents/sessions/{session}",
            sandbox.id()
        );
        let record = format!("{runs}/runs/{execution}");
        until("the end of the run in the record", async || {
            let answer = client.fetch("GET", &record, &[], None).await.unwrap();
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            body.contains("\"status\":\"failed\"").then_some(())
        })
        .await;
        let replay = format!("{runs}/events?executionId={execution}");
        let answer = client.fetch("GET", &replay, &[], None).await.unwrap();
        let [.., error, done] = &frames(&answer.body)[..] else {
            panic!("{answer:?}")
        };
        let message = error.data["message"].as_str().unwrap_or_default();
        assert!(message.contains("could not be recorded"), "{message}");
        assert_eq!(
            (&*done.event, &done.data["status"]),
            ("done", &"failed".into())
        );

        assert!(sandbox.prompt("say again").await.unwrap().success());
        client
            .create(scripted())
            .await
            .unwrap()
            .wait_ready()
            .await
            .unwrap();
        local.stop().await;
    });
}
