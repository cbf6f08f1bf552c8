//! The model proxy: the placeholder in, the provider's key out, and nothing held back on the way.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{any, get};
use futures_util::{StreamExt as _, stream};
use reqwest::{Client, Url};
use tangle_sandbox_local::agent::{ModelProxy, ModelTarget};
use tokio::sync::{Mutex, mpsc};

const KEY: &str = "sk-canary";

/// What the endpoint shares with the test: lines to stream, and a note when the stream's reader has gone.
struct Upstream {
    lines: Mutex<mpsc::Receiver<&'static str>>,
    gone: mpsc::Sender<()>,
}

struct Bench {
    client: Client,
    url: String,
    placeholder: String,
    lines: mpsc::Sender<&'static str>,
    gone: mpsc::Receiver<()>,
    _proxy: ModelProxy,
}

impl Bench {
    async fn start() -> Self {
        let (lines, receiver) = mpsc::channel(1);
        let (note, gone) = mpsc::channel(1);
        let upstream = Arc::new(Upstream {
            lines: Mutex::new(receiver),
            gone: note,
        });
        let router = Router::new()
            .route("/v1/echo", any(echo))
            .route("/v1/stream", get(lines_as_they_come))
            .route(
                "/v1/away",
                get(|| async { Redirect::temporary("http://127.0.0.1:1/elsewhere") }),
            )
            .route("/admin", any(|| async { "secret" }))
            .with_state(upstream);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let proxy = ModelProxy::start(ModelTarget::new(&base, KEY).unwrap())
            .await
            .unwrap();
        let access = proxy.access("m");
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            client,
            url: access.base_url,
            placeholder: access.api_key,
            lines,
            gone,
            _proxy: proxy,
        }
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client
            .get(format!("{}{path}", self.url))
            .bearer_auth(&self.placeholder)
    }
}

async fn echo(uri: Uri, headers: HeaderMap, request: Request) -> Response {
    let mut text = format!("{uri}\n");
    for (name, value) in &headers {
        text.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
    }
    let mut bytes = 0;
    let mut body = request.into_body().into_data_stream();
    while let Some(Ok(chunk)) = body.next().await {
        bytes += chunk.len();
    }
    text.push_str(&format!("{bytes} bytes\n"));
    ([("set-cookie", "a=b"), ("x-model", "yes")], text).into_response()
}

/// Tells when the body that holds it is dropped.
struct Goodbye(mpsc::Sender<()>);

impl Drop for Goodbye {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

async fn lines_as_they_come(State(upstream): State<Arc<Upstream>>) -> Response {
    let goodbye = Goodbye(upstream.gone.clone());
    let lines = stream::unfold((upstream, goodbye), |(upstream, goodbye)| async move {
        let line = upstream.lines.lock().await.recv().await?;
        Some((
            Ok::<_, std::convert::Infallible>(Bytes::from(line)),
            (upstream, goodbye),
        ))
    });
    Body::from_stream(lines).into_response()
}

#[tokio::test]
async fn the_placeholder_becomes_the_key_and_the_rest_passes() {
    let bench = Bench::start().await;
    let body = vec![b'x'; 3 << 20];
    let request = bench
        .client
        .post(format!("{}/echo?a=b%20c", bench.url))
        .bearer_auth(&bench.placeholder);
    let answer = request
        .header("cookie", "c=d")
        .header("x-agent", "yes")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-model"], "yes");
    assert!(!answer.headers().contains_key("set-cookie"));
    let text = answer.text().await.unwrap();
    assert!(text.starts_with("/v1/echo?a=b%20c\n"), "{text}");
    assert!(
        text.contains(&format!("authorization: Bearer {KEY}\n")),
        "{text}"
    );
    assert!(
        text.contains("x-agent: yes\n") && text.contains("3145728 bytes\n"),
        "{text}"
    );
    assert!(
        !text.contains("cookie") && !text.contains(&bench.placeholder),
        "{text}"
    );
}

#[tokio::test]
async fn nobody_without_the_placeholder_gets_through() {
    let bench = Bench::start().await;
    let url = format!("{}/echo", bench.url);
    for request in [
        bench.client.get(&url),
        bench.client.get(&url).bearer_auth("x"),
        bench.client.get(&url).bearer_auth(KEY),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        assert!(!answer.text().await.unwrap().contains("canary"));
    }
}

#[tokio::test]
async fn an_answer_streams_as_it_comes() {
    let bench = Bench::start().await;
    let mut answer = bench.get("/stream").send().await.unwrap().bytes_stream();
    for line in ["data: one\n\n", "data: two\n\n"] {
        bench.lines.send(line).await.unwrap();
        let chunk = tokio::time::timeout(Duration::from_secs(10), answer.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(chunk, line);
    }
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_request_at_the_provider() {
    let mut bench = Bench::start().await;
    let mut answer = bench.get("/stream").send().await.unwrap().bytes_stream();
    bench.lines.send("data: one\n\n").await.unwrap();
    answer.next().await.unwrap().unwrap();
    drop(answer);
    tokio::time::timeout(Duration::from_secs(10), bench.gone.recv())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_not_passed_on() {
    let bench = Bench::start().await;
    let answer = bench.get("/away").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(!answer.headers().contains_key("location"));
    assert!(answer.text().await.unwrap().contains("MODEL_REDIRECT"));
}

#[tokio::test]
async fn no_request_leaves_the_base_path() {
    let bench = Bench::start().await;
    // Sent by hand: an HTTP client would take the dots away.
    let url = Url::parse(&bench.url).unwrap();
    let address = format!("127.0.0.1:{}", url.port().unwrap());
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /../admin HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        bench.placeholder
    );
    tokio::io::AsyncWriteExt::write_all(&mut socket, request.as_bytes())
        .await
        .unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut socket, &mut text)
        .await
        .unwrap();
    assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_reached_is_told_without_its_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = ModelProxy::start(ModelTarget::new(&format!("http://{address}"), KEY).unwrap())
        .await
        .unwrap();
    let access = proxy.access("m");
    let answer = Client::new()
        .get(format!("{}/x", access.base_url))
        .bearer_auth(access.api_key)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    let text = answer.text().await.unwrap();
    assert!(
        text.contains("MODEL_UNREACHABLE") && !text.contains(&address.to_string()),
        "{text}"
    );
    proxy.stop().await;
}
