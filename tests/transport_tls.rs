//! TLS with a private authority, proxies, and what the logs show (wire protocol, 1.1 and 1.2).

mod scripted;

use std::io::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use scripted::{Server, answer, events};
use serde_json::Value;
use tangle_sandbox::contract::routes;
use tangle_sandbox::transport::{BuildError, Call, Error, RetryPolicy, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const KEY: &str = "canary-4f81c2/+x";
const NAME: &str = "sandbox.test";

/// A server with a certificate of a private authority; gives its port and the authority's certificate.
async fn serve_tls() -> (u16, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".into(), NAME.into()])
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut socket = acceptor.accept(socket).await.ok()?;
                let mut input = Vec::new();
                while !input.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                    if socket.read_buf(&mut input).await.ok()? == 0 {
                        return None;
                    }
                }
                let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                socket.write_all(bytes).await.ok()?;
                socket.shutdown().await.ok()
            });
        }
    });
    (port, root)
}

fn get() -> Call {
    Call::new(&routes::SANDBOXES_GET, &[("id", "s")])
}

#[tokio::test]
async fn a_private_authority_is_trusted_only_when_it_is_given() {
    let (port, root) = serve_tls().await;
    let base = format!("https://localhost:{port}");
    let distrusting = Transport::builder(&base, KEY)
        .retry(RetryPolicy::OFF)
        .build();
    let error = distrusting.unwrap().json::<Value>(get()).await.unwrap_err();
    assert!(matches!(error, Error::Network { .. }), "{error:?}");
    let trusting = Transport::builder(&base, KEY)
        .root_certificate(root)
        .build()
        .unwrap();
    trusting.json::<Value>(get()).await.unwrap();
    let garbage = Transport::builder(&base, KEY)
        .root_certificate("no PEM")
        .build();
    assert!(matches!(garbage, Err(BuildError::RootCertificate)));
}

/// Runs the test `child` of this program in a process with these variables.
async fn in_child(child: &'static str, variables: Vec<(&'static str, String)>) {
    let output = tokio::task::spawn_blocking(move || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child, "--nocapture"])
            .envs(variables)
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("the child was answered"), "{text}");
}

/// The child's half of the tests below: one call of the deployment that the parent names.
#[tokio::test]
async fn child() {
    let Ok(base) = std::env::var("TRANSPORT_TEST_BASE") else {
        return;
    };
    let transport = Transport::connect(base, KEY).unwrap();
    transport.json::<Value>(get()).await.unwrap();
    println!("the child was answered");
}

#[tokio::test]
async fn ssl_cert_file_names_the_roots() {
    let (port, root) = serve_tls().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(root.as_bytes()).unwrap();
    let variables = vec![
        ("TRANSPORT_TEST_BASE", format!("https://localhost:{port}")),
        ("SSL_CERT_FILE", file.path().display().to_string()),
        ("NO_PROXY", "localhost".to_owned()),
    ];
    in_child("child", variables).await;
}

#[tokio::test]
async fn a_cleartext_deployment_on_loopback_is_reached_without_the_proxy() {
    let server = Server::start(|_, _| answer(200, "{}")).await;
    let nowhere = "http://127.0.0.1:1".to_owned();
    let variables = vec![
        ("TRANSPORT_TEST_BASE", server.base.clone()),
        ("HTTP_PROXY", nowhere.clone()),
        ("http_proxy", nowhere),
    ];
    in_child("child", variables).await;
    assert_eq!(server.seen().len(), 1);
}

/// A proxy that connects every tunnel to `port`; keeps the requests that it sees.
async fn tunnel(port: u16, seen: Arc<Mutex<Vec<u8>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut input = Vec::new();
            while !input.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                socket.read_buf(&mut input).await.unwrap();
            }
            seen.lock().unwrap().extend_from_slice(&input);
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::io::copy_bidirectional(&mut socket, &mut server)
                .await
                .ok();
        }
    });
    url
}

#[tokio::test]
async fn a_proxy_is_tunnelled_through_and_never_sees_the_bearer() {
    let (port, root) = serve_tls().await;
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let proxy = tunnel(port, seen.clone()).await;
    let transport = Transport::builder(format!("https://{NAME}"), KEY)
        .root_certificate(root)
        .proxy(proxy)
        .build()
        .unwrap();
    transport.json::<Value>(get()).await.unwrap();
    let seen = String::from_utf8(seen.lock().unwrap().clone()).unwrap();
    assert!(
        seen.starts_with("CONNECT sandbox.test:443 HTTP/1.1"),
        "{seen}"
    );
    assert!(!seen.contains("canary"), "{seen}");
}

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }
}

#[tokio::test]
async fn the_log_at_trace_level_never_shows_the_key() {
    let log = Log::default();
    let _guard = log.start();
    let server = Server::start(|seen, number| match number {
        0 => answer(
            502,
            &format!("{{\"message\":\"key {KEY}\",\"code\":\"{KEY}\"}}"),
        ),
        _ if seen.line().contains("stream") => events("data: {}\n\n"),
        _ => answer(200, "{}"),
    })
    .await;
    let transport = Transport::connect(&server.base, KEY).unwrap();
    transport.json::<Value>(get()).await.unwrap();
    transport.fetch("GET", "/x", &[], None).await.unwrap();
    let run = Call::new(&routes::AGENTS_RUN_STREAM, &[("id", "s")]);
    transport.stream(run).await.unwrap();
    let text = log.text();
    assert!(text.contains("a call is repeated"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn a_cleartext_base_is_warned_about_once_unless_it_is_loopback() {
    for (base, warnings) in [
        ("http://sandbox.test", 1),
        ("https://sandbox.test", 0),
        ("http://localhost:1", 0),
        ("http://127.0.0.1:1", 0),
        ("http://[::1]:1", 0),
    ] {
        let log = Log::default();
        let guard = log.start();
        Transport::connect(base, KEY).unwrap();
        drop(guard);
        let text = log.text();
        assert_eq!(text.matches("WARN").count(), warnings, "{base}: {text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
