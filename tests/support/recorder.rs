//! A proxy on loopback that passes bytes on and keeps them: what a client and a server really sent each other.
//!
//! It knows no HTTP while it passes on. Only afterwards are the kept bytes read as exchanges; a byte that fits no message
//! fails the test.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::message::Message;

/// A request with its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When its first byte was kept, as [`Recorder::now`] counts.
    pub at: usize,
    /// The request.
    pub request: Message,
    /// The answer, as far as it came.
    pub response: Option<Message>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sent,
    Answered,
}

/// Bytes in the order in which they came, over all connections.
type Log = Arc<Mutex<Vec<(usize, Way, Vec<u8>)>>>;

/// The proxy. It ends when it is dropped.
#[derive(Debug)]
pub struct Recorder {
    address: SocketAddr,
    log: Log,
    accepting: JoinHandle<()>,
}

impl Recorder {
    /// Starts a proxy for the server at `base_url`.
    pub async fn start(base_url: &str) -> Self {
        let server = base_url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Log::default();
        let kept = log.clone();
        let accepting = tokio::spawn(async move {
            let (mut connections, mut number) = (JoinSet::new(), 0);
            loop {
                let (client, _) = listener.accept().await.unwrap();
                connections.spawn(pass(client, server.clone(), number, kept.clone()));
                number += 1;
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            log,
            accepting,
        }
    }

    /// The proxy's address, as it stands in the header `host`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The base URL for a client.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A point in the record.
    pub fn now(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// The exchanges that began after a point, in their order.
    pub fn since(&self, point: usize) -> Vec<Exchange> {
        let log = self.log.lock().unwrap();
        let connections = log.iter().map(|(number, ..)| number + 1).max().unwrap_or(0);
        let mut exchanges: Vec<Exchange> = (0..connections)
            .flat_map(|number| exchanges(&log, number))
            .filter(|exchange| exchange.at >= point)
            .collect();
        exchanges.sort_by_key(|exchange| exchange.at);
        exchanges
    }

    /// Looks until `found` gives something, at most ten seconds.
    pub async fn until<T>(&self, point: usize, found: impl Fn(&[Exchange]) -> Option<T>) -> T {
        for _ in 0..1000 {
            if let Some(found) = found(&self.since(point)) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not seen in ten seconds: {:#?}", self.since(point));
    }

    /// Sends bytes that no client of ours would send, and waits for the end of the connection.
    pub async fn send(&self, request: &str) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Passes on until one side has ended; then the other one is closed, as it would be without a proxy.
async fn pass(client: TcpStream, server: String, number: usize, log: Log) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (client_reader, client_writer) = client.into_split();
    let (server_reader, server_writer) = server.into_split();
    tokio::select! {
        () = copy(client_reader, server_writer, (number, Way::Sent), &log) => {}
        () = copy(server_reader, client_writer, (number, Way::Answered), &log) => {}
    }
}

/// Keeps bytes, then passes them on, so that what somebody has read was kept.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    (number, way): (usize, Way),
    log: &Log,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let bytes = buffer[..count].to_vec();
                log.lock().unwrap().push((number, way, bytes));
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The exchanges of one connection: answers come in the order of the requests.
fn exchanges(log: &[(usize, Way, Vec<u8>)], number: usize) -> Vec<Exchange> {
    let (sent, starts) = joined(log, number, Way::Sent);
    let (answered, _) = joined(log, number, Way::Answered);
    let (mut exchanges, mut from) = (Vec::new(), 0);
    while let Some((request, length)) = Message::read(&sent[from..], None) {
        let at = starts.iter().rev().find(|(offset, _)| *offset <= from);
        exchanges.push(Exchange {
            at: at.unwrap().1,
            request,
            response: None,
        });
        from += length;
    }
    let mut rest = &answered[..];
    for exchange in &mut exchanges {
        let Some((response, length)) = Message::read(rest, Some(exchange.request.method())) else {
            break;
        };
        exchange.response = Some(response);
        rest = &rest[length..];
    }
    exchanges
}

/// The bytes of one direction, and the place in the log of each piece by its offset.
fn joined(
    log: &[(usize, Way, Vec<u8>)],
    number: usize,
    way: Way,
) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for (at, (connection, direction, piece)) in log.iter().enumerate() {
        if *connection == number && *direction == way {
            starts.push((bytes.len(), at));
            bytes.extend_from_slice(piece);
        }
    }
    (bytes, starts)
}
