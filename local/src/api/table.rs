//! Which handler serves which route of the table; the rest of the table answers 501.

use std::collections::HashSet;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, delete, get, on, post};
use tangle_sandbox::contract::routes::{self, Method, ROUTES, Route};

use super::{
    Shared, backends, cancel, capabilities, directories, exec, files, health, layer,
    lifecycle_events, runs, sandboxes, sessions,
};

/// The words under `fs/` that are routes of their own. `DELETE` takes them as names of files.
const FS_WORDS: [&str; 8] = [
    "list",
    "stat",
    "exists",
    "mkdir",
    "upload",
    "upload-dir",
    "download",
    "download-dir",
];

/// Whether a first word under `fs/` is a route of its own.
pub(super) fn is_fs_word(word: &str) -> bool {
    word == "rename" || FS_WORDS.contains(&word)
}

/// Collects routes and remembers which of the table are taken.
struct Table {
    router: Router<Shared>,
    taken: HashSet<(&'static str, &'static str)>,
}

impl Table {
    fn serve<H, T>(mut self, route: &Route, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.taken.insert((route.template, route.method.as_str()));
        self.router = self
            .router
            .route(route.template, on(filter(route.method), handler));
        self
    }

    fn route(mut self, path: &str, method: MethodRouter<Shared>) -> Self {
        self.router = self.router.route(path, method);
        self
    }

    /// What of the table is not served answers 501, so that a client can tell it from a wrong path.
    fn rest(mut self) -> Router<Shared> {
        for route in ROUTES {
            if self.taken.insert((route.template, route.method.as_str())) {
                let lacking = on(filter(route.method), layer::not_served);
                self.router = self.router.route(route.template, lacking);
            }
        }
        self.router
    }
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

pub(super) fn routes() -> Router<Shared> {
    let table = Table {
        router: Router::new(),
        taken: HashSet::new(),
    };
    let table = control(table);
    let table = agents(table);
    let table = file_routes(table);
    table.rest()
}

fn control(table: Table) -> Table {
    table
        .serve(&routes::HEALTH, health::server)
        .serve(&routes::SANDBOXES_CREATE, sandboxes::create)
        .serve(&routes::SANDBOXES_LIST, sandboxes::list)
        .serve(&routes::SANDBOXES_GET, sandboxes::get)
        .serve(&routes::SANDBOXES_PATCH, sandboxes::update)
        .serve(&routes::SANDBOXES_DELETE, sandboxes::remove)
        .serve(&routes::SANDBOXES_STOP, sandboxes::stop)
        .serve(&routes::SANDBOXES_RESUME, sandboxes::resume)
        .serve(&routes::SANDBOXES_DRIVER, sandboxes::driver)
        .serve(&routes::SANDBOXES_EVENTS, lifecycle_events::stream)
        .serve(&routes::BACKENDS, backends::list)
        .serve(&routes::RUNTIME_HEALTH, health::runtime)
        .serve(&routes::RUNTIME_HEALTH_DETAILED, health::detailed)
        .serve(&routes::CAPABILITIES, capabilities::document)
        .serve(&routes::EXEC, exec::command)
}

fn agents(table: Table) -> Table {
    table
        .serve(&routes::AGENTS_RUN_STREAM, runs::stream)
        .serve(&routes::AGENTS_RUN, runs::blocking)
        .serve(&routes::AGENTS_RUN_CANCEL, cancel::run)
        .serve(&routes::AGENTS_LIST, backends::agents)
        .serve(&routes::SESSIONS_LIST, sessions::list)
        .serve(&routes::SESSIONS_CREATE, sessions::create)
        .serve(&routes::SESSIONS_GET, sessions::get)
        .serve(&routes::SESSIONS_DELETE, sessions::remove)
        .serve(&routes::SESSIONS_ABORT, cancel::abort)
        .serve(&routes::SESSIONS_EVENTS, sessions::events)
        .serve(&routes::SESSIONS_RUNS, sessions::runs)
        .serve(&routes::SESSIONS_RUN, sessions::run)
        .serve(&routes::SESSIONS_RESULT, sessions::result)
        .serve(&routes::SESSIONS_TURN, sessions::turn)
}

fn file_routes(table: Table) -> Table {
    let mut table = table
        .serve(&routes::FILES_READ, files::read)
        .serve(&routes::FILES_WRITE, files::write)
        .route("/v1/sandboxes/{id}/files/write", post(files::write))
        .serve(&routes::FS_LIST, directories::list)
        .serve(&routes::FS_STAT, directories::stat)
        .serve(&routes::FS_EXISTS, directories::exists)
        .serve(&routes::FS_MKDIR, directories::mkdir)
        .serve(&routes::FS_REMOVE, directories::remove)
        .serve(&routes::FS_RENAME, directories::rename)
        .route(
            "/v1/sandboxes/{id}/runtime/fs/rename",
            delete(directories::remove),
        );
    for word in FS_WORDS {
        let here = format!("/v1/sandboxes/{{id}}/runtime/fs/{word}");
        // The tail of a route cannot be empty, and the root of the workspace is an empty tail.
        let root = match word {
            "list" => get(directories::list),
            "stat" => get(directories::stat),
            "exists" => get(directories::exists),
            "mkdir" => post(directories::mkdir),
            _ => MethodRouter::new(),
        };
        table = table
            .route(&here, root.clone().delete(directories::remove))
            .route(&format!("{here}/"), root)
            .route(&format!("{here}/{{*path}}"), delete(directories::remove));
    }
    table
}
