//! The running server: its listener, its connections, its end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tangle_sandbox::contract::Secret;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use crate::api::Shared;
use crate::builder::LocalBuilder;
use crate::lifecycle;

/// How long runs may take to end when the deployment stops.
const END_OF_RUNS: Duration = Duration::from_secs(15);
/// How long connections may then take.
const END_OF_CONNECTIONS: Duration = Duration::from_secs(2);
/// How often agents without turns are looked for.
const IDLE_LOOK: Duration = Duration::from_secs(30);

/// A running embedded deployment.
///
/// Dropping it ends it too, in the background of its runtime; [`Local::stop`] waits until it has ended, which a new
/// start on the same directory needs.
pub struct Local {
    deployment: Shared,
    serving: Option<JoinHandle<()>>,
    cut: CancellationToken,
    _closing: DropGuard,
    _cutting: DropGuard,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("base_url", &self.deployment.base_url)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Begins to configure a deployment.
    pub fn builder() -> LocalBuilder {
        LocalBuilder::new()
    }

    /// The base URL for clients, for example `http://127.0.0.1:40123`, without `/v1`.
    pub fn base_url(&self) -> &str {
        &self.deployment.base_url
    }

    /// The API key for clients.
    pub fn api_key(&self) -> &Secret {
        &self.deployment.key
    }

    /// Where everything is kept.
    pub fn data_dir(&self) -> &Path {
        self.deployment.places.root()
    }

    /// Ends the deployment: runs that go on become `failed` with the code `STREAM_INTERRUPTED`, agents end, connections
    /// close, the record is closed. Takes at most about 20 seconds.
    pub async fn stop(mut self) {
        let deployment = &self.deployment;
        deployment.closing.cancel();
        deployment.tasks.close();
        if tokio::time::timeout(END_OF_RUNS, deployment.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("not every run ended in time");
        }
        deployment.warm.end_all().await;
        if let Some(mut serving) = self.serving.take()
            && tokio::time::timeout(END_OF_CONNECTIONS, &mut serving)
                .await
                .is_err()
        {
            self.cut.cancel();
            let _ = serving.await; // an error means that it has ended
        }
        lifecycle::record_activity(deployment).await;
        deployment.store.close().await;
        deployment.unlock();
    }
}

/// Serves until the deployment closes.
pub(crate) fn serve(deployment: Shared, listener: TcpListener, router: Router) -> Local {
    let cut = CancellationToken::new();
    let closing = deployment.closing.clone();
    let listener = Cuttable {
        listener,
        cut: cut.clone(),
    };
    let stopped = closing.clone().cancelled_owned();
    let serving = tokio::spawn(async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(stopped)
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the server ended");
        }
    });
    Local {
        deployment,
        serving: Some(serving),
        _closing: closing.drop_guard(),
        _cutting: cut.clone().drop_guard(),
        cut,
    }
}

/// Ends agents that had no turn for a while, until the deployment ends.
pub(crate) async fn end_idle_agents(deployment: Shared) {
    loop {
        tokio::select! {
            () = deployment.closing.cancelled() => {
                return deployment.warm.end_all().await;
            }
            () = tokio::time::sleep(IDLE_LOOK) => deployment.warm.end_idle().await,
        }
    }
}

/// A listener whose connections can be cut, so that no stalled client keeps the deployment alive.
struct Cuttable {
    listener: TcpListener,
    cut: CancellationToken,
}

impl Listener for Cuttable {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // The first frame of a stream leaves at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection sends in larger pieces");
        }
        let connection = Connection {
            stream,
            cut: Box::pin(self.cut.clone().cancelled_owned()),
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

struct Connection {
    stream: TcpStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    fn poll_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_cut(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
