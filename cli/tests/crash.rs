//! A server that is killed in mid-run and started again on the same directory (wire protocol, 20).

mod support;

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use support::{Seeded, Served, processes_of, until};
use tangle_sandbox::contract::routes;
use tangle_sandbox::contract::types::{ExecutionId, SessionId};
use tangle_sandbox::sandbox::{Client, ListOptions, NewSandbox, Prompt, Running, Sandbox};
use tangle_sandbox::transport::{Call, EventStream, Transport};

/// A frame as it came: id, event type, data.
type Seen = (String, String, String);

/// The frames of an execution after a cursor; `None` when nothing comes after it.
async fn events(
    served: &Served,
    folder: &Path,
    of: (&str, &str, &str),
    cursor: &str,
) -> Option<EventStream> {
    let key = std::fs::read_to_string(folder.join("api-key")).unwrap();
    let transport = Transport::connect(&*served.base_url, key).unwrap();
    let (sandbox, session, execution) = of;
    let call = Call::new(
        &routes::SESSIONS_EVENTS,
        &[("id", sandbox), ("session_id", session)],
    )
    .query("executionId", execution)
    .query("lastEventId", cursor);
    transport.stream(call).await.unwrap()
}

/// The next frames, at most so many; fewer when the stream ends or is cut.
async fn take(stream: &mut EventStream, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let Some(Ok(frame)) = stream.next().await else {
            break;
        };
        let id = frame.id().unwrap().to_owned();
        seen.push((id, frame.kind().to_owned(), frame.data().to_owned()));
    }
    seen
}

async fn data(client: &Client, sandbox: &str, path: &str) -> Value {
    let path = format!("/v1/sandboxes/{sandbox}/runtime/agents/sessions{path}");
    let answer = client.fetch("GET", &path, &[], None).await.unwrap();
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["success"], true, "{path}: {body}");
    body["data"].take()
}

/// The only sandbox of the account.
async fn listed(client: &Client) -> Sandbox<Running> {
    let records = client.inventory(ListOptions::new()).await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    let found = client.get(&records[0].id).await.unwrap().unwrap();
    found.into_running().await.unwrap()
}

/// Ends truthfully, once, and nothing follows.
#[track_caller]
fn assert_failed_once(frames: &[Seen]) {
    let ids: Vec<_> = frames.iter().map(|(id, _, _)| id.clone()).collect();
    let wanted: Vec<_> = (1..=frames.len()).map(|id| id.to_string()).collect();
    assert_eq!(ids, wanted);
    let of = |name: &str| frames.iter().filter(|(_, event, _)| event == name).count();
    assert_eq!((of("error"), of("done"), of("result")), (1, 1, 0));
    let [.., error, done] = frames else { panic!() };
    assert!(error.2.contains("STREAM_INTERRUPTED"), "{error:?}");
    assert!(done.1 == "done" && done.2.contains("failed"), "{done:?}");
}

#[tokio::test]
async fn wire_20_1_a_killed_server_replays_what_it_acknowledged_and_fails_the_run_once() {
    let whole = async {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut seeded = Seeded::new(0x6b69_6c6c);
        let mut served = Served::start(folder);
        let client = served.client(folder);
        let made = client.create(NewSandbox::new().backend("scripted").name("kept"));
        made.await.unwrap().wait_ready().await.unwrap();
        let session = SessionId::new("s-killed").unwrap();
        let mut earlier: Vec<(ExecutionId, Vec<Seen>)> = Vec::new();

        for round in 0..5 {
            let client = served.client(folder);
            let sandbox = listed(&client).await;
            let script = "run setsid sleep 300 >/dev/null 2>&1 & echo $$ > shell.pid\nflood 4000\nrun sleep 300";
            let prompt = Prompt::new(script).session(session.clone());
            let run = sandbox.stream(prompt).await.unwrap();
            let execution = run.execution_id().clone();
            let run = run.detach().await.unwrap();
            let of = (sandbox.id().as_str(), session.as_str(), execution.as_str());
            let mut stream = events(&served, folder, of, "0").await.unwrap();
            let count = seeded.within(8, 2000);
            let mut acknowledged = take(&mut stream, count).await;
            assert_eq!(acknowledged.len(), count);
            assert!(!processes_of(folder).is_empty());
            served.kill();
            let left = processes_of(folder);
            assert!(!left.is_empty(), "the escaped child outlives its server");
            // What was still on its way was acknowledged, too.
            acknowledged.extend(take(&mut stream, usize::MAX).await);
            drop(run);

            served = Served::start(folder);
            assert_eq!(
                processes_of(folder),
                [0; 0],
                "round {round}: an old agent is left"
            );
            let client = served.client(folder);
            let sandbox = listed(&client).await;
            let sessions = data(&client, sandbox.id(), "").await;
            assert_eq!(
                sessions["sessions"][0]["id"],
                session.as_str(),
                "{sessions}"
            );
            let path = format!("/{session}/runs/{execution}");
            assert_eq!(data(&client, sandbox.id(), &path).await["status"], "failed");
            let result = data(&client, sandbox.id(), &format!("{path}/result")).await;
            assert_eq!(result["errorCode"], "STREAM_INTERRUPTED", "{result}");

            let of = (sandbox.id().as_str(), session.as_str(), execution.as_str());
            let mut stream = events(&served, folder, of, "0").await.unwrap();
            let frames = take(&mut stream, usize::MAX).await;
            assert!(frames.len() >= acknowledged.len() + 2);
            assert!(
                frames[..acknowledged.len()] == acknowledged,
                "round {round}"
            );
            assert_failed_once(&frames);
            let cursor = seeded.within(1, acknowledged.len());
            let mut stream = events(&served, folder, of, &cursor.to_string())
                .await
                .unwrap();
            let rest = take(&mut stream, usize::MAX).await;
            assert!(rest == frames[cursor..], "round {round}: after {cursor}");
            assert!(
                events(&served, folder, of, &frames.len().to_string())
                    .await
                    .is_none()
            );

            earlier.push((execution, frames));
            for (execution, frames) in &earlier {
                let of = (sandbox.id().as_str(), session.as_str(), execution.as_str());
                let mut stream = events(&served, folder, of, "0").await.unwrap();
                assert!(
                    take(&mut stream, usize::MAX).await == *frames,
                    "nothing is added later"
                );
            }
            let next = Prompt::new("say on it goes").session(session.clone());
            let result = sandbox.prompt(next).await.unwrap();
            assert_eq!(result.text(), "on it goes", "{result:?}");
        }
        assert_eq!(served.terminate().0.code(), Some(0));
        until("the end of every process", async || {
            processes_of(folder).is_empty().then_some(())
        })
        .await;
    };
    tokio::time::timeout(Duration::from_secs(120), whole)
        .await
        .unwrap();
}
