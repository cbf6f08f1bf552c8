//! Agents that misbehave, seen from the client.

use std::time::{Duration, Instant};

use tangle_sandbox::contract::types::SessionId;
use tangle_sandbox::sandbox::{EventKind, Prompt, PromptStatus};

use crate::support::deployed::{Deployed, assert_whole, finish, text};
use crate::within;

fn in_session(script: &str) -> Prompt {
    Prompt::new(script).session(SessionId::new("s-1").unwrap())
}

pub fn an_agent_that_dies_fails_its_run_and_the_session_goes_on() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let run = sandbox
            .stream(in_session("say before\nthink hm\ncrash"))
            .await
            .unwrap();
        let (events, result) = finish(run).await;
        assert_eq!(text(&events), "before", "what was sent is kept");
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(
            result.error_code.as_deref(),
            Some("AGENT_CRASHED"),
            "{result:?}"
        );
        let errors = events.iter().filter(|event| event.name == "error").count();
        assert_eq!((errors, &*events.last().unwrap().name), (1, "done"));
        let result = sandbox.prompt(in_session("say after")).await.unwrap();
        assert_eq!(
            (result.success(), result.text()),
            (true, "after"),
            "{result:?}"
        );
        deployed.stop().await;
    });
}

pub fn an_agent_that_hangs_meets_the_watchdog() {
    within(Duration::from_secs(90), async {
        let silence = Duration::from_secs(1);
        let deployed = Deployed::start_with(|builder| builder.watchdog(silence)).await;
        let sandbox = deployed.sandbox().await;
        let begun = Instant::now();
        let result = sandbox
            .prompt(in_session("say before\nhang"))
            .await
            .unwrap();
        assert_eq!(
            result.error_code.as_deref(),
            Some("AGENT_SILENT"),
            "{result:?}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(25),
            "{:?}",
            begun.elapsed()
        );
        let result = sandbox.prompt(in_session("say after")).await.unwrap();
        assert_eq!(
            (result.success(), result.text()),
            (true, "after"),
            "{result:?}"
        );
        deployed.stop().await;
    });
}

pub fn stray_lines_and_unknown_updates_do_not_disturb_a_turn() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let script =
            "banner Welcome to the agent!\nsay a\nfuture\nescaped\nbanner {not json\nsay b";
        let run = sandbox.stream(script).await.unwrap();
        let (events, result) = finish(run).await;
        assert_whole(&events);
        assert!(result.success(), "{result:?}");
        assert_eq!(text(&events), "aa/b \u{1f600}b");
        let raw = events.iter().find_map(|event| match &event.kind {
            EventKind::Raw(data) if event.name == "raw" => Some(data.clone()),
            _ => None,
        });
        let raw = serde_json::to_string(&raw.unwrap()).unwrap();
        assert!(raw.contains("hologram"), "{raw}");
        assert!(!format!("{events:?}").contains("Welcome"));
        deployed.stop().await;
    });
}

pub fn a_giant_line_ends_only_its_agent() {
    within(Duration::from_secs(90), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let neighbour = sandbox.stream("sleep 2000\nsay unharmed").await.unwrap();
        let giant = format!("say before\ngiant {}\nsay never", 65 << 20);
        let result = sandbox.prompt(in_session(&giant)).await.unwrap();
        assert_eq!(
            result.error_code.as_deref(),
            Some("AGENT_LINE_TOO_LONG"),
            "{result:?}"
        );
        let result = sandbox.prompt(in_session("say after")).await.unwrap();
        assert_eq!(
            (result.success(), result.text()),
            (true, "after"),
            "{result:?}"
        );
        let (events, result) = finish(neighbour).await;
        assert_whole(&events);
        assert_eq!(result.text(), "unharmed");
        deployed.stop().await;
    });
}

pub fn a_failing_agent_is_a_result_with_its_message() {
    within(Duration::from_secs(60), async {
        let deployed = Deployed::start().await;
        let sandbox = deployed.sandbox().await;
        let result = sandbox
            .prompt("say trying\nfail the model is away")
            .await
            .unwrap();
        assert_eq!(result.status, PromptStatus::Failed);
        assert_eq!(result.error_code.as_deref(), Some("AGENT_EXECUTION_FAILED"));
        assert_eq!(result.error.as_deref(), Some("the model is away"));
        assert_eq!(result.usage, None, "what was not reported is absent");
        let refused = sandbox.prompt("").await.unwrap_err();
        assert_eq!(refused.code().as_str(), "VALIDATION_ERROR");
        deployed.stop().await;
    });
}
