//! How a deployment is started.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fs4::fs_std::FileExt as _;
use tangle_sandbox::contract::Secret;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::backends::{Backends, Configured};
use crate::deployment::{Credentials, Deployment, Places, Settings};
use crate::occupancy::Occupancy;
use crate::run::{Runs, Warm, recovery};
use crate::server::{self, Local};
use crate::store::{Store, StoreError};
use crate::{api, lifecycle};

/// Why a deployment could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No data directory was named. Call [`LocalBuilder::data_dir`].
    #[error("no data directory is named")]
    NoDataDir,
    /// The API key is empty, or cannot be sent in a header. Leave it out to have one generated.
    #[error("the API key must be 1 or more visible ASCII characters")]
    BadKey,
    /// Another server uses the directory. Stop it, or take another directory.
    #[error("another deployment uses the data directory")]
    InUse,
    /// The data directory cannot be made or written, usually because it is read-only.
    #[error("the data directory cannot be used: {0}")]
    DataDir(#[source] io::Error),
    /// The disk of the data directory is full.
    #[error("the disk of the data directory is full")]
    Full,
    /// The record in the data directory cannot be used.
    #[error(transparent)]
    Store(StoreError),
    /// The address cannot be listened on.
    #[error("the address cannot be listened on: {0}")]
    Address(#[source] io::Error),
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::Full,
            other => Self::Store(other),
        }
    }
}

/// What a deployment is started with. Made by [`Local::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `start` is called"]
pub struct LocalBuilder {
    data_dir: Option<PathBuf>,
    address: SocketAddr,
    api_key: Option<Secret>,
    backends: Backends,
    settings: Settings,
}

impl LocalBuilder {
    pub(crate) fn new() -> Self {
        Self {
            data_dir: None,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            api_key: None,
            backends: Backends::default(),
            settings: Settings::default(),
        }
    }

    /// Where everything is kept: the record, the workspaces, the key. It is made when it is missing, and nobody but its
    /// owner may enter it (mode 0700) from then on.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// The address to listen on; a free port of 127.0.0.1 when none is named.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// The API key. Without one, a key is generated once and kept in the file `api-key` of the data directory.
    pub fn api_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }

    /// A program whose `main` calls [`agent_main`](crate::agent_main) first. Without it this very program is used when
    /// its own `main` has called it.
    pub fn scripted_agent(mut self, program: impl Into<PathBuf>) -> Self {
        self.backends.programs.scripted = Some(program.into());
        self
    }

    /// The `opencode` program. Without it `TANGLE_OPENCODE_BIN`, then `PATH`, are looked into.
    pub fn opencode(mut self, program: impl Into<PathBuf>) -> Self {
        self.backends.programs.open_code = Some(program.into());
        self
    }

    /// Any other agent of the Agent Client Protocol, under the backend type `name`.
    pub fn acp_agent(
        mut self,
        name: impl Into<String>,
        command: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.backends.configured.push(Configured {
            name: name.into(),
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// How long a run that is not detached goes on after its reader vanished; 10 s unless set, 0 allowed.
    pub fn reader_grace(mut self, grace: Duration) -> Self {
        self.settings.reader_grace = grace;
        self
    }

    /// After how much silence a stream gets a comment; 15 s unless set.
    pub fn keep_alive(mut self, silence: Duration) -> Self {
        self.settings.keep_alive = silence.max(Duration::from_millis(1));
        self
    }

    /// How long an agent may send nothing before its turn fails; 15 minutes unless set.
    pub fn watchdog(mut self, silence: Duration) -> Self {
        self.settings.watchdog = silence;
        self
    }

    /// The largest create request in bytes; at most, and unless set, 1 MiB.
    pub fn create_body_limit(mut self, bytes: usize) -> Self {
        self.settings.create_body = bytes.min(Settings::default().create_body);
        self
    }

    /// The largest body with a backend block or file content in bytes; at most, and unless set, 128 MiB.
    pub fn run_body_limit(mut self, bytes: usize) -> Self {
        self.settings.run_body = bytes.min(Settings::default().run_body);
        self
    }

    /// The largest other body in bytes; at most, and unless set, 16 MiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.settings.other_body = bytes.min(Settings::default().other_body);
        self
    }

    /// Bytes kept of each output stream of a command; at most, and unless set, 10 MiB.
    pub fn exec_output_limit(mut self, bytes: usize) -> Self {
        self.settings.exec_output = bytes.min(Settings::default().exec_output);
        self
    }

    /// The largest file that is read as JSON in bytes; at most, and unless set, 4 MiB.
    pub fn read_limit(mut self, bytes: usize) -> Self {
        self.settings.read = bytes.min(Settings::default().read);
        self
    }

    /// Starts the deployment on the current tokio runtime.
    ///
    /// What an earlier process left behind is cleared first: its agents are ended, and runs that did not survive become
    /// `failed` with the code `STREAM_INTERRUPTED`.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left running then.
    pub async fn start(self) -> Result<Local, StartError> {
        let data_dir = self.data_dir.clone().ok_or(StartError::NoDataDir)?;
        if let Some(key) = &self.api_key {
            check_key(key.expose())?;
        }
        let prepared = tokio::task::spawn_blocking(move || prepare(&data_dir));
        let prepared = prepared
            .await
            .map_err(|error| StartError::DataDir(io::Error::other(error.to_string())))??;
        let key = match &self.api_key {
            Some(key) => key.clone(),
            None => kept_key(&prepared.places)?,
        };
        let listener = TcpListener::bind(self.address)
            .await
            .map_err(StartError::Address)?;
        let address = listener.local_addr().map_err(StartError::Address)?;
        let base_url = format!("http://{}", reachable(address));
        let deployment = Arc::new(Deployment {
            settings: self.settings,
            announced_url: (!address.ip().is_unspecified()).then(|| base_url.clone()),
            base_url,
            key,
            store: prepared.store,
            places: prepared.places,
            occupancy: Occupancy::default(),
            backends: self.backends,
            credentials: Credentials::default(),
            runs: Runs::default(),
            warm: Warm::default(),
            changes: watch::Sender::new(0),
            deadlines: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            started_at: std::time::Instant::now(),
            serving_since: crate::ids::now(),
            lock: Mutex::new(Some(prepared.lock)),
        });
        recovery::before_serving(&deployment).await?;
        recovery::take_up(&deployment).await?;
        let tasks = &deployment.tasks;
        tasks.spawn(lifecycle::watch_deadlines(deployment.clone()));
        tasks.spawn(lifecycle::watch_activity(deployment.clone()));
        tasks.spawn(server::end_idle_agents(deployment.clone()));
        let router = api::router(deployment.clone());
        Ok(server::serve(deployment, listener, router))
    }
}

/// An address that clients on this machine can connect to.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        match address.ip() {
            IpAddr::V4(_) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(_) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        }
    }
    address
}

struct Prepared {
    places: Places,
    store: Store,
    lock: File,
}

/// Makes and locks the data directory and opens the record.
fn prepare(data_dir: &Path) -> Result<Prepared, StartError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .map_err(data_dir_error)?;
    let root = data_dir.canonicalize().map_err(data_dir_error)?;
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o700))
        .map_err(data_dir_error)?;
    let lock = private_file()
        .create(true)
        .truncate(false)
        .open(root.join("lock"))
        .map_err(data_dir_error)?;
    match lock.try_lock_exclusive() {
        Ok(true) => {}
        Ok(false) => return Err(StartError::InUse),
        Err(error) => return Err(StartError::DataDir(error)),
    }
    let state = root.join("state.db");
    // Made here, so that nobody else can read it.
    private_file()
        .create(true)
        .truncate(false)
        .open(&state)
        .map_err(data_dir_error)?;
    Ok(Prepared {
        store: Store::open(&state)?,
        places: Places::new(root),
        lock,
    })
}

fn private_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn data_dir_error(error: io::Error) -> StartError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StartError::Full,
        _ => StartError::DataDir(error),
    }
}

fn check_key(key: &str) -> Result<(), StartError> {
    let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
    if key.is_empty() || !visible {
        return Err(StartError::BadKey);
    }
    Ok(())
}

/// The key of an earlier start, or a new one.
fn kept_key(places: &Places) -> Result<Secret, StartError> {
    let path = places.root().join("api-key");
    match std::fs::read_to_string(&path) {
        Ok(key) => {
            let key = key.trim_end();
            check_key(key)?;
            return Ok(Secret::from(key));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(StartError::DataDir(error)),
    }
    let key = format!("tsk_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let fresh = places.root().join("api-key.new");
    let written = private_file()
        .create(true)
        .truncate(true)
        .open(&fresh)
        .and_then(|mut file| io::Write::write_all(&mut file, key.as_bytes()))
        .and_then(|()| std::fs::rename(&fresh, &path));
    written.map_err(data_dir_error)?;
    Ok(Secret::from(key))
}
