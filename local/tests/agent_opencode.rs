//! The real OpenCode, driven against a scripted model on loopback through the model proxy.
//!
//! It is looked for as the deployment does: `TANGLE_OPENCODE_BIN`, then `PATH`. Where it is missing the tests say so in
//! one line and return, unless `TANGLE_REQUIRE_ALL` is `1`.

#[path = "support/model.rs"]
mod model;

use std::time::Duration;

use model::{KEY, Model};
use serde_json::Value;
use tangle_sandbox_local::agent::{
    Agent, AgentEvent, AgentPrograms, KnownAgent, ModelProxy, ModelTarget, Outcome, Place, TurnEnd,
};
use tangle_sandbox_local::process::sweep::marked;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(120);

struct Bench {
    folder: tempfile::TempDir,
    model: Model,
    proxy: ModelProxy,
    agent: Agent,
}

impl Bench {
    /// `None` when OpenCode is not installed.
    async fn start() -> Option<Self> {
        let Ok(installed) = AgentPrograms::default().find(KnownAgent::OpenCode) else {
            assert!(
                std::env::var_os("TANGLE_REQUIRE_ALL").is_none_or(|value| value != "1"),
                "opencode is not installed"
            );
            println!("skipped: opencode is not installed (set TANGLE_OPENCODE_BIN)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let model = Model::start().await;
        let proxy = ModelProxy::start(ModelTarget::new(&model.base_url, KEY).unwrap())
            .await
            .unwrap();
        let place = Place {
            workspace: folder.path().join("workspace"),
            home: folder.path().join("home"),
            log: folder.path().join("agent.log"),
            env: Vec::new(),
        };
        let agent = Agent::start(installed.launch(place, Some(&proxy.access("fake"))))
            .await
            .unwrap();
        Some(Self {
            folder,
            model,
            proxy,
            agent,
        })
    }

    async fn turn(
        &mut self,
        script: &str,
        cancel: CancellationToken,
        watchdog: Duration,
    ) -> (TurnEnd, Vec<AgentEvent>) {
        let (sender, mut receiver) = mpsc::channel(8);
        let collect = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(event);
            }
            events
        };
        tokio::join!(self.agent.prompt(script, sender, cancel, watchdog), collect)
    }

    async fn end(self) {
        let marker = self.agent.marker().cloned();
        self.agent.end().await;
        self.proxy.stop().await;
        assert!(marker.is_none_or(|marker| marked(&marker).is_empty()));
    }
}

fn tool_part<'a>(events: &'a [AgentEvent], tool: &str) -> &'a Value {
    let mut parts = events
        .iter()
        .rev()
        .filter_map(|event| event.data.get("part"));
    parts.find(|part| part["tool"] == tool).unwrap()
}

#[tokio::test]
async fn open_code_runs_a_command_writes_a_file_and_never_sees_the_key() {
    let Some(mut bench) = Bench::start().await else {
        return;
    };
    let file = bench.folder.path().join("workspace/made.txt");
    let script = format!(
        "please work\n> say I will work\n> tool bash {}\n> tool write {}\n> say all done",
        serde_json::json!({ "command": "env; echo shell > shell.txt", "description": "look around" }),
        serde_json::json!({ "filePath": file, "content": "made by a tool\n" }),
    );
    let (end, events) = bench
        .turn(&script, CancellationToken::new(), PATIENCE)
        .await;
    assert_eq!(end.outcome, Outcome::Completed, "{end:?}\n{events:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "made by a tool\n");
    assert_eq!(
        std::fs::read_to_string(bench.folder.path().join("workspace/shell.txt")).unwrap(),
        "shell\n"
    );
    assert_eq!(end.final_text.as_deref().map(str::trim), Some("all done"));
    assert_eq!(bench.model.calls(), 3);
    // OpenCode reports its last call only; the proxy counts the three calls (100 and 20 tokens each) and a title.
    assert!(
        end.usage
            .is_some_and(|usage| usage.input_tokens >= 300 && usage.output_tokens >= 60),
        "{:?}",
        end.usage
    );
    let names: Vec<_> = end
        .tool_invocations
        .iter()
        .map(|tool| (&*tool.tool_name, &*tool.status))
        .collect();
    assert_eq!(names, [("bash", "completed"), ("write", "completed")]);
    let shell = tool_part(&events, "bash");
    let environment = shell["state"]["output"].as_str().unwrap();
    assert!(environment.contains("TANGLE_RUN_MARKER="), "{environment}");
    assert!(!environment.contains(KEY));

    // The warm process goes on with the conversation.
    let (end, _) = bench
        .turn("> say still here", CancellationToken::new(), PATIENCE)
        .await;
    assert_eq!(end.final_text.as_deref().map(str::trim), Some("still here"));
    assert_eq!(
        end.usage
            .map(|usage| (usage.input_tokens, usage.output_tokens)),
        Some((100, 20))
    );
    bench.end().await;
}

#[tokio::test]
async fn open_code_is_cancelled_in_mid_command_and_its_escaped_child_ends_too() {
    let Some(mut bench) = Bench::start().await else {
        return;
    };
    let script = format!(
        "> tool bash {}\n> say never",
        serde_json::json!({ "command": "setsid sleep 300 & echo $$ > pid; sleep 300", "description": "wait" }),
    );
    let cancel = CancellationToken::new();
    let pid = bench.folder.path().join("workspace/pid");
    let stop = cancel.clone();
    let canceller = tokio::spawn(async move {
        for _ in 0..6000 {
            if pid.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    });
    let (end, _) = bench.turn(&script, cancel, PATIENCE).await;
    canceller.await.unwrap();
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert_eq!(
        bench.agent.marker().map(|marker| marked(marker).len()),
        Some(1),
        "only the agent itself is left"
    );
    bench.end().await;
}

#[tokio::test]
async fn a_model_error_fails_the_turn_and_a_silent_model_meets_the_watchdog() {
    let Some(mut bench) = Bench::start().await else {
        return;
    };
    let (end, _) = bench
        .turn("> http 400", CancellationToken::new(), PATIENCE)
        .await;
    assert!(
        matches!(&end.outcome, Outcome::Failed { code, .. } if code == "AGENT_EXECUTION_FAILED"),
        "{end:?}"
    );
    let (end, _) = bench
        .turn("> hang", CancellationToken::new(), Duration::from_secs(2))
        .await;
    assert!(
        matches!(&end.outcome, Outcome::Failed { code, .. } if code == "AGENT_SILENT"),
        "{end:?}"
    );
    bench.end().await;
}
