//! A call of the client against the same call of bare reqwest, on loopback, JSON parsed on both sides.
//!
//! Prints the p50 of both and their ratio, calls taken in turns: `cargo bench --bench call`.

use std::time::{Duration, Instant};

use axum::{Json, Router, routing::post};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tangle_sandbox::contract::routes;
use tangle_sandbox::transport::{Call, Transport};

const ROUNDS: usize = 11;
const CALLS: usize = 1000;

#[derive(Serialize)]
struct Command<'a> {
    command: &'a str,
    cwd: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    exit_code: i32,
    stdout: String,
}

#[derive(Deserialize)]
struct Envelope {
    success: bool,
    result: Done,
}

async fn exec(Json(command): Json<Value>) -> Json<Value> {
    let stdout = command["command"].as_str().unwrap_or_default().repeat(20);
    Json(
        json!({"success": true, "result": {"exitCode": 0, "stdout": stdout, "stderr": "", "duration": 3}}),
    )
}

/// A server on a runtime of its own, so that both clients find it in the same state.
fn serve() -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            let address = listener.local_addr().expect("an address");
            sender
                .send(format!("http://{address}"))
                .expect("a receiver");
            let app = Router::new().route(routes::EXEC.template, post(exec));
            axum::serve(listener, app).await.expect("a server");
        });
    });
    receiver.recv().expect("a server")
}

fn p50(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn ours(transport: &Transport) -> Duration {
    let started = Instant::now();
    let call = Call::new(&routes::EXEC, &[("id", "sbx_1")]).body(&Command {
        command: "cargo test",
        cwd: "/home/agent",
    });
    let done: Done = transport.json(call).await.expect("an answer");
    assert!(done.exit_code == 0 && done.stdout.len() == 200);
    started.elapsed()
}

async fn bare(client: &reqwest::Client, base: &str) -> Duration {
    let started = Instant::now();
    let answer = client
        .post(format!(
            "{base}/v1/sandboxes/sbx_1/runtime/terminals/commands"
        ))
        .bearer_auth("key")
        .json(&Command {
            command: "cargo test",
            cwd: "/home/agent",
        })
        .send()
        .await
        .expect("an answer");
    let done: Envelope = answer.json().await.expect("a body");
    assert!(done.success && done.result.exit_code == 0 && done.result.stdout.len() == 200);
    started.elapsed()
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let base = serve();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let transport = Transport::connect(&base, "key").expect("a transport");
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        let mut ratios = Vec::new();
        for round in 0..=ROUNDS {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in 0..CALLS {
                a.push(ours(&transport).await);
                b.push(bare(&client, &base).await);
            }
            let (a, b) = (p50(&mut a), p50(&mut b));
            if round > 0 {
                ratios.push((a.as_secs_f64() / b.as_secs_f64(), a, b));
            }
        }
        ratios.sort_by(|x, y| x.0.total_cmp(&y.0));
        let (ratio, a, b) = ratios[ratios.len() / 2];
        println!("p50 of a call: ours {a:.1?}, bare reqwest {b:.1?}: {ratio:.3}x (at most 1.150)");
    });
}
