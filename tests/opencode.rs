//! The real OpenCode through the real client and the embedded deployment, against a scripted model on loopback.
//!
//! It is looked for as the deployment does: `TANGLE_OPENCODE_BIN`, then `PATH`. Where it is missing the test says so in
//! one line and returns, unless `TANGLE_REQUIRE_ALL` is `1`.

#[path = "../local/tests/support/model.rs"]
mod model;
mod support {
    pub mod deployed;
    pub mod proxy;
}

use std::path::Path;
use std::time::Duration;

use model::{KEY, Model};
use serde_json::json;
use support::deployed::{
    Deployed, assert_recorded, assert_whole, drain, finish, text, tool_status,
};
use support::proxy::Proxy;
use tangle_sandbox::contract::types::SessionId;
use tangle_sandbox::sandbox::{Event, EventKind, NewSandbox, Prompt, Running, Sandbox};
use tangle_sandbox_local::agent::{AgentPrograms, KnownAgent};

/// Whether OpenCode is installed here.
fn installed() -> bool {
    if AgentPrograms::default().find(KnownAgent::OpenCode).is_ok() {
        return true;
    }
    let required = std::env::var_os("TANGLE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "opencode is not installed");
    println!("skipped: opencode is not installed (set TANGLE_OPENCODE_BIN)");
    false
}

async fn ready(deployed: &Deployed, model: &Model) -> Sandbox<Running> {
    let request = NewSandbox::new().backend("opencode").model("fake");
    let request = request.model_endpoint(&model.base_url, KEY);
    let made = deployed.client.create(request).await.unwrap();
    assert!(!format!("{:?}", made.record()).contains(KEY));
    made.wait_ready().await.unwrap()
}

/// A turn with two tool calls: one prints its environment, one writes a file.
fn working(workspace: &str) -> String {
    let shell = json!({ "command": "env; echo shell > shell.txt", "description": "look around" });
    let write =
        json!({ "filePath": format!("{workspace}/made.txt"), "content": "made by a tool\n" });
    format!(
        "please work\n> say I will work\n> tool bash {shell}\n> tool write {write}\n> say all done"
    )
}

/// A turn whose command runs until there is a file `go`.
fn waiting(mark: &str) -> String {
    let command =
        format!("echo {mark} >> ran.txt; while [ ! -e go ]; do sleep 0.05; done; echo over");
    let shell = json!({ "command": command, "description": "wait" });
    format!("> say one\n> tool bash {shell}\n> say two")
}

/// The newest output of a tool.
fn output<'a>(events: &'a [Event], tool: &str) -> &'a str {
    let parts = events.iter().rev().filter_map(|event| match &event.kind {
        EventKind::PartUpdated(update) if update.part.tool.as_deref() == Some(tool) => {
            update.part.state.as_ref()
        }
        _ => None,
    });
    let mut outputs = parts.filter_map(|state| state.output.as_ref()?.as_str());
    outputs.next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_code_works_through_the_client_and_survives_a_cut_connection() {
    if !installed() {
        return;
    }
    let whole = async {
        let (deployed, model) = (Deployed::start().await, Model::start().await);
        let proxy = Proxy::start(deployed.local.base_url()).await;
        let sandbox = ready(&deployed, &model).await;
        let session = SessionId::new("s-opencode").unwrap();
        let prompt = |script: String| Prompt::new(script).session(session.clone());

        let workspace = sandbox.exec("pwd").await.unwrap().stdout;
        let first = prompt(working(workspace.trim_end()));
        let run = sandbox.stream(first).await.unwrap();
        let first = run.execution_id().clone();
        let (events, result) = finish(run).await;
        assert_whole(&events);
        assert!(result.success(), "{result:?}");
        assert_eq!(result.text().trim(), "all done");
        assert!(text(&events).contains("I will work"));
        assert_eq!(
            sandbox.read_text("made.txt").await.unwrap(),
            "made by a tool\n"
        );
        assert_eq!(sandbox.read_text("shell.txt").await.unwrap(), "shell\n");
        let tools = result.tool_invocations.iter();
        let tools: Vec<_> = tools.map(|tool| &*tool.tool_name).collect();
        assert_eq!(tools, ["bash", "write"]);
        assert_eq!(model.calls(), 3);
        // Three calls of 100 and 20 tokens, and what the agent asked for besides, for example a title.
        let usage = result.usage.as_ref().unwrap();
        assert!(usage.input_tokens.get() >= 300 && usage.output_tokens.get() >= 60);
        let frames = deployed.replay(sandbox.id(), &session, &first).await;
        assert_recorded(&events, &frames);

        let environment = output(&events, "bash");
        assert!(environment.contains("HOME="), "{environment}");
        assert!(
            !environment.contains(KEY) && !environment.contains(deployed.local.api_key().expose())
        );
        assert!(!format!("{events:?}{frames:?}{result:?}").contains(KEY));

        // The second turn is cut while its command runs.
        let through = deployed.seen_through(&proxy.base, &sandbox).await;
        let before = model.calls();
        let mut run = through.stream(prompt(waiting("cut"))).await.unwrap();
        let cut = run.execution_id().clone();
        let mut events = Vec::new();
        while !events
            .iter()
            .any(|event| tool_status(event, "bash") == Some("running"))
        {
            events.push(run.next().await.unwrap().unwrap());
        }
        proxy.cut_now();
        sandbox.write("go", "").await.unwrap();
        events.extend(drain(&mut run).await);
        let with_cut = run.result().await.unwrap();
        assert_eq!(proxy.streams(), 2, "one cut, one rejoin");
        assert_whole(&events);
        assert!(with_cut.success(), "{with_cut:?}");
        assert_eq!(with_cut.text().trim(), "two");
        assert!(output(&events, "bash").contains("over"));
        let frames = deployed.replay(sandbox.id(), &session, &cut).await;
        assert_recorded(&events, &frames);
        let calls_with_cut = model.calls() - before;

        // The same turn without a cut asks the model as often and costs the same.
        let before = model.calls();
        let run = sandbox.stream(prompt(waiting("whole"))).await.unwrap();
        let (_, without) = finish(run).await;
        assert!(without.success(), "{without:?}");
        assert_eq!(calls_with_cut, model.calls() - before);
        assert_eq!(calls_with_cut, 2);
        let tokens = |usage: &tangle_sandbox::contract::types::TokenUsage| {
            (usage.input_tokens.get(), usage.output_tokens.get())
        };
        assert_eq!(with_cut.usage.as_ref().map(tokens), Some((200, 40)));
        assert_eq!(without.usage.as_ref().map(tokens), Some((200, 40)));
        assert_eq!(sandbox.read_text("ran.txt").await.unwrap(), "cut\nwhole\n");

        assert!(files_with(deployed.local.data_dir(), KEY).is_empty());
        let session = SessionId::new("s-none").unwrap();
        let empty = Prompt::new("> http 400").session(session);
        let failed = sandbox.prompt(empty).await.unwrap();
        assert_eq!(
            failed.error_code.as_deref(),
            Some("AGENT_EXECUTION_FAILED"),
            "{failed:?}"
        );
        assert!(!format!("{failed:?}").contains(KEY));
        let folder = deployed.local.data_dir().to_owned();
        sandbox.delete().await.unwrap();
        deployed.local.stop().await;
        assert!(files_with(&folder, KEY).is_empty());
    };
    tokio::time::timeout(Duration::from_secs(240), whole)
        .await
        .unwrap();
}

/// The files below a folder that hold a text.
fn files_with(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let (mut folders, mut found, mut looked) = (vec![folder.to_owned()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                looked += 1;
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes
                    .windows(text.len())
                    .any(|window| window == text.as_bytes())
                {
                    found.push(entry.path());
                }
            }
        }
    }
    assert!(looked > 0, "there is something to look at");
    found
}
