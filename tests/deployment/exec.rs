//! Commands through the client.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tangle_sandbox::sandbox::{Deadline, Exec};

use crate::support::deployed::{Deployed, gone, pid_in};
use crate::within;

pub fn wire_14_1_an_exit_code_is_an_answer_and_a_limit_ends_the_processes() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let output = sandbox
            .exec("echo out; echo err >&2; exit 3")
            .await
            .unwrap();
        assert_eq!(output.exit_code, 3);
        assert_eq!((&*output.stdout, &*output.stderr), ("out\n", "err\n"));
        assert_ne!(output.truncated, Some(true));

        let command =
            "echo $$ > shell.pid; setsid sleep 300 & echo $! > escaped.pid; sleep 30; touch late";
        let limited = Exec::new(command).deadline(Deadline::from_secs(1));
        let begun = Instant::now();
        let error = sandbox.exec(limited).await.unwrap_err();
        assert!(
            begun.elapsed() < Duration::from_secs(6),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(error.code().as_str(), "EXEC_TIMEOUT");
        let message = error.to_string();
        assert!(
            message.contains("1000 ms") && message.contains("ended"),
            "{message}"
        );
        let file = |name| deployed.file(&sandbox, name);
        let pids = [
            pid_in(&file("shell.pid")).await,
            pid_in(&file("escaped.pid")).await,
        ];
        assert!(
            gone(&pids).await < Duration::from_millis(500),
            "they are gone already"
        );
        assert!(!file("late").exists());
        deployed.stop().await;
    });
}

pub fn fifty_megabytes_on_both_streams_end_with_the_first_ten_exact() {
    within(Duration::from_secs(120), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let command = "seq 1 7000000 & seq -s, 1 7000000 >&2 & wait";
        let exec = Exec::new(command).deadline(Deadline::from_secs(60));
        let output = sandbox.exec(exec).await.unwrap();
        assert_eq!((output.exit_code, output.truncated), (0, Some(true)));
        let (mut lines, mut commas) = (String::new(), String::new());
        let kept = 10 << 20;
        for number in 1.. {
            if lines.len() >= kept {
                break;
            }
            writeln!(lines, "{number}").unwrap();
            write!(commas, "{number},").unwrap();
        }
        // Not `assert_eq`, which would print both.
        assert_eq!((output.stdout.len(), output.stderr.len()), (kept, kept));
        assert!(output.stdout == lines[..kept] && output.stderr == commas[..kept]);
        deployed.stop().await;
    });
}
