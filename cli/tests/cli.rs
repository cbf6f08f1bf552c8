//! The command as a person or a supervisor uses it: what it prints, how it ends, what it leaves.

mod support;

use std::io::Read as _;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Served, command, processes_of, run, until};
use tangle_sandbox::sandbox::{ListOptions, NewSandbox};

/// A key that must not be printed anywhere.
const CANARY: &str = "canary-key-7d1f";

#[tokio::test]
async fn serve_tells_where_it_is_and_where_its_key_is_and_ends_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let served = Served::start(&data);
    assert!(
        served.base_url.starts_with("http://127.0.0.1:"),
        "{}",
        served.base_url
    );
    let file = data.canonicalize().unwrap().join("api-key");
    assert_eq!(
        served.key_line,
        format!("API key:  in {}\n", file.display())
    );
    let key = std::fs::read_to_string(&file).unwrap();
    let client = served.client(&data);
    assert_eq!(client.health().await.unwrap().status, "ok");

    // A run and what it started are there when the server is asked to end.
    let made = client
        .create(NewSandbox::new().backend("scripted"))
        .await
        .unwrap();
    let sandbox = made.wait_ready().await.unwrap();
    let script =
        "run sleep 300 >/dev/null 2>&1 & setsid sleep 300 >/dev/null 2>&1 & touch there; wait";
    let run = sandbox.stream(script).await.unwrap();
    until("the command of the run", async || {
        sandbox.read("there").await.ok()
    })
    .await;
    assert!(
        processes_of(&data).len() >= 3,
        "agent, child, escaped child"
    );
    let (status, rest) = served.terminate();
    assert_eq!(status.code(), Some(0), "{rest}");
    assert_eq!(processes_of(&data), [0; 0]);
    assert!(!rest.contains(&key));
    drop(run);
}

#[tokio::test]
async fn a_second_server_on_one_directory_is_refused_and_the_first_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path());
    let name = folder.path().to_str().unwrap();
    let second = run(&mut command(&[
        "serve",
        "--data-dir",
        name,
        "--address",
        "127.0.0.1:0",
    ]));
    assert_eq!((second.code, &*second.stdout), (Some(2), ""), "{second:?}");
    assert!(
        second.stderr.contains("another server") && second.stderr.contains(name),
        "{second:?}"
    );
    let client = served.client(folder.path());
    assert!(
        client
            .inventory(ListOptions::new())
            .await
            .unwrap()
            .is_empty()
    );

    let address = served.base_url.trim_start_matches("http://");
    let other = tempfile::tempdir().unwrap();
    let other = other.path().to_str().unwrap();
    let taken = run(&mut command(&[
        "serve",
        "--data-dir",
        other,
        "--address",
        address,
    ]));
    assert_eq!(taken.code, Some(2));
    assert!(
        taken.stderr.contains(address) && taken.stderr.contains("--address"),
        "{taken:?}"
    );
    assert_eq!(served.terminate().0.code(), Some(0));
}

#[test]
fn a_given_key_is_used_and_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start_with(folder.path(), |command| {
        command
            .env("TANGLE_API_KEY", CANARY)
            .env("RUST_LOG", "trace");
    });
    assert_eq!(served.key_line, "API key:  as given\n");
    let mut asked = command(&["run", "--base-url", &served.base_url, "say hello"]);
    let ran = run(asked.env("TANGLE_API_KEY", CANARY).env("RUST_LOG", "trace"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains(CANARY));
    let wrong = run(
        command(&["run", "--base-url", &served.base_url, "say hello"])
            .env("TANGLE_API_KEY", "wrong-canary"),
    );
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("refused the API key"), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains("wrong-canary"));
    let (status, rest) = served.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(!rest.contains(CANARY) && !rest.contains("wrong-canary"));
    let help = run(command(&["run", "--help"]).env("TANGLE_API_KEY", CANARY));
    assert!(help.code == Some(0) && !help.stdout.contains(CANARY));
    let empty = folder.path().join("empty");
    let empty = run(&mut command(&[
        "serve",
        "--data-dir",
        empty.to_str().unwrap(),
        "--api-key",
        "",
    ]));
    assert_eq!(empty.code, Some(2), "{empty:?}");
}

#[test]
fn run_prints_the_answer_and_its_exit_code_tells_success() {
    let script = "say Good morning.\nrun echo shell > shell.txt\nwrite made.txt text\nsay Done.";
    let ran = run(&mut command(&["run", script]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "Good morning.\nDone.\n");
    for line in [
        "ready",
        "· run (echo shell > shell.txt): completed",
        "· write (write made.txt): completed",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    let ran = run(&mut command(&["run", "say trying\nfail the model is away"]));
    assert_eq!((ran.code, &*ran.stdout), (Some(1), "trying\n"), "{ran:?}");
    assert!(
        ran.stderr
            .ends_with("failed: AGENT_EXECUTION_FAILED: the model is away\n"),
        "{ran:?}"
    );
    let ran = run(&mut command(&["run", "--deadline", "1", "sleep 30000"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("failed: TIMEOUT"), "{ran:?}");
}

#[test]
fn what_cannot_be_run_says_what_to_do_next_and_exits_with_2() {
    let none = ["run", "--backend", "no-such-agent", "hello"];
    let open_code = ["run", "--backend", "opencode", "hello"];
    let away = [
        "run",
        "--base-url",
        "http://127.0.0.1:9",
        "--api-key",
        CANARY,
        "hello",
    ];
    let keyless = ["run", "--base-url", "http://127.0.0.1:9", "hello"];
    let scheme = [
        "run",
        "--base-url",
        "ftp://host",
        "--api-key",
        CANARY,
        "hello",
    ];
    for (arguments, texts) in [
        (
            &none[..],
            &["no such backend", "--backend:\n  scripted "][..],
        ),
        (
            &open_code,
            &[
                "OpenCode is not installed",
                "TANGLE_OPENCODE_BIN",
                "\n  scripted ",
            ],
        ),
        (
            &away,
            &[
                "http://127.0.0.1:9 cannot be reached",
                "tangle-sandbox serve",
            ],
        ),
        (&keyless, &["TANGLE_API_KEY"]),
        (&scheme, &["http:// or https://"]),
        (&["run", ""], &["a value is required"]),
        (&["run", "--keep", "hello"], &["--base-url"]),
        (&["run", "--deadline", "0", "hello"], &["--deadline"]),
    ] {
        let begun = std::time::Instant::now();
        let ran = run(&mut command(arguments));
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{arguments:?}: {ran:?}"
        );
        for text in texts {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains(CANARY), "{ran:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{arguments:?}");
    }
}

#[tokio::test]
async fn an_interrupt_cancels_the_run_and_deletes_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path());
    let key = std::fs::read_to_string(folder.path().join("api-key")).unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let script = "say working\nrun touch there; sleep 300";
        let mut asked = command(&["run", "--base-url", &served.base_url, script]);
        let mut child = asked.env("TANGLE_API_KEY", &key).spawn().unwrap();
        let mut printed = child.stdout.take().unwrap();
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = [0; 7];
            printed.read_exact(&mut text).unwrap();
            (printed, text)
        });
        let (mut printed, text) = tokio::time::timeout(PATIENCE, reading)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&text, b"working", "text is printed as it comes");
        let client = served.client(folder.path());
        until("the command of the run", async || {
            let records = client.inventory(ListOptions::new()).await.unwrap();
            let found = client.get(&records.first()?.id).await.unwrap()?;
            found.into_running().await.ok()?.read("there").await.ok()
        })
        .await;
        kill_process(Pid::from_child(&child), signal).unwrap();
        let waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
        let output = tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let ran = support::Ran::from(output);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let mut rest = String::new();
        printed.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "\n", "the line is ended");
        assert!(
            ran.stderr.contains("interrupted; the run was cancelled"),
            "{ran:?}"
        );
        assert!(
            client
                .inventory(ListOptions::new())
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(processes_of(folder.path()), [0; 0]);
    }
    assert_eq!(served.terminate().0.code(), Some(0));
}

#[tokio::test]
async fn a_kept_sandbox_is_named_and_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path());
    let key = std::fs::read_to_string(folder.path().join("api-key")).unwrap();
    let mut asked = command(&[
        "run",
        "--keep",
        "--base-url",
        &served.base_url,
        "write made.txt kept",
    ]);
    let ran = run(asked.env("TANGLE_API_KEY", &key));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let client = served.client(folder.path());
    let records = client.inventory(ListOptions::new()).await.unwrap();
    assert!(
        ran.stderr
            .contains(&format!("sandbox {} is kept", records[0].id)),
        "{ran:?}"
    );
    let found = client.get(&records[0].id).await.unwrap().unwrap();
    let sandbox = found.into_running().await.unwrap();
    assert_eq!(sandbox.read_text("made.txt").await.unwrap(), "kept");
    assert_eq!(served.terminate().0.code(), Some(0));
}
