//! A TCP proxy on loopback between a client and a deployment, for the faults of a network: it cuts event streams after a
//! number of bytes or on demand, by a reset or by an end, and it kills connections that are silent for too long.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What tells the head of an answer that is an event stream.
const MARK: &[u8] = b"text/event-stream";

/// A running proxy; dropping it cuts everything.
pub struct Proxy {
    /// The base URL of the deployment, seen through the proxy.
    pub base: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    target: SocketAddr,
    idle: Option<Duration>,
    cuts: Mutex<VecDeque<usize>>,
    now: watch::Sender<()>,
    streams: AtomicUsize,
    bytes: AtomicU64,
    silenced: AtomicUsize,
}

impl Proxy {
    /// A proxy that cuts only when it is told.
    pub async fn start(base_url: &str) -> Self {
        Self::start_with(base_url, None).await
    }

    /// A proxy that also cuts a connection on which no byte passes for so long.
    pub async fn start_with(base_url: &str, idle: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            target: base_url.trim_start_matches("http://").parse().unwrap(),
            idle,
            cuts: Mutex::default(),
            now: watch::Sender::new(()),
            streams: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            silenced: AtomicUsize::new(0),
        });
        let kept = shared.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let shared = kept.clone();
                connections.spawn(async move { shared.connection(client).await });
            }
        });
        Self {
            base,
            shared,
            accepting,
        }
    }

    /// Each of the next event streams is cut after so many bytes of its body: by a reset when the number is odd.
    pub fn cut_next(&self, after: impl IntoIterator<Item = usize>) {
        self.shared.cuts.lock().unwrap().extend(after);
    }

    /// Cuts that did not happen yet.
    pub fn cuts_left(&self) -> usize {
        self.shared.cuts.lock().unwrap().len()
    }

    /// Cuts every connection that carries an event stream now.
    pub fn cut_now(&self) {
        self.shared.now.send_replace(());
    }

    /// Event streams so far.
    pub fn streams(&self) -> usize {
        self.shared.streams.load(Ordering::SeqCst)
    }

    /// Bytes of event streams that went to the client, with what HTTP puts around them.
    pub fn stream_bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::SeqCst)
    }

    /// Event streams that were cut because they were silent.
    pub fn silenced(&self) -> usize {
        self.shared.silenced.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An event stream on its way.
struct Passing {
    /// Bytes that may still pass.
    left: Option<usize>,
    reset: bool,
}

impl Shared {
    async fn connection(&self, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(self.target).await else {
            return;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let reset = self.relay(&mut client, &mut server).await;
        if reset {
            let _ = client.set_zero_linger();
        }
    }

    /// Passes bytes until one side ends or the connection is to be cut; true when it is to be reset.
    async fn relay(&self, client: &mut TcpStream, server: &mut TcpStream) -> bool {
        let mut now = self.now.subscribe();
        let mut passing: Option<Passing> = None;
        let (mut up, mut down) = (vec![0; 16 << 10], vec![0; 16 << 10]);
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        loop {
            tokio::select! {
                read = from_client.read(&mut up) => {
                    let Ok(count @ 1..) = read else { return false };
                    if to_server.write_all(&up[..count]).await.is_err() {
                        return false;
                    }
                }
                read = from_server.read(&mut down) => {
                    let Ok(count @ 1..) = read else { return false };
                    let count = self.allowed(&down[..count], &mut passing);
                    if to_client.write_all(&down[..count]).await.is_err() {
                        return false;
                    }
                    if let Some(Passing { left: Some(0), reset }) = passing {
                        return reset;
                    }
                }
                _ = now.changed(), if passing.is_some() => return true,
                () = silence(self.idle) => {
                    if passing.is_some() {
                        self.silenced.fetch_add(1, Ordering::SeqCst);
                    }
                    return false;
                }
            }
        }
    }

    /// How many of the bytes may pass.
    fn allowed(&self, bytes: &[u8], passing: &mut Option<Passing>) -> usize {
        let mut head = 0;
        if bytes.windows(MARK.len()).any(|window| window == MARK) {
            self.streams.fetch_add(1, Ordering::SeqCst);
            let left = self.cuts.lock().unwrap().pop_front();
            *passing = Some(Passing {
                left,
                reset: left.is_some_and(|left| left % 2 == 1),
            });
            let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
            head = end.map_or(bytes.len(), |end| end + 4);
        }
        let Some(passing) = passing else {
            return bytes.len();
        };
        let body = bytes.len() - head;
        let body = passing.left.map_or(body, |left| left.min(body));
        passing.left = passing.left.map(|left| left - body);
        self.bytes.fetch_add(body as u64, Ordering::SeqCst);
        head + body
    }
}

async fn silence(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
