//! The route table as data: one constant per route, shared by the client and the embedded server.
//!
//! A path that a deployment spells otherwise is corrected here and nowhere else (wire protocol, 21).

use std::fmt;

/// The part of the service that a route belongs to (wire protocol, 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Directly under the base URL.
    Base,
    /// The account's plane, under `/v1`.
    Control,
    /// The runtime of one sandbox, under `/v1/sandboxes/{id}/runtime`.
    Runtime,
}

/// How sure it is that the hosted service serves a route in this spelling (wire protocol, 0.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Shown by the requirement or by upstream code, tests or documentation.
    Known,
    /// The behaviour is shown, the spelling is a deduction.
    Inferred,
    /// Nothing shows the live route: a deployment may lack it.
    Proposed,
}

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl Method {
    /// The method as it stands in a request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a server writes around the success value of a route (wire protocol, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The record itself.
    Bare,
    /// `{ "success": true, "data": … }`
    Data,
    /// `{ "success": true, "<key>": … }`
    Key(&'static str),
    /// Server-sent events.
    Events,
    /// The bytes of a file or an archive.
    Bytes,
    /// A WebSocket.
    Socket,
}

/// One route of the service.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The name in the route index, for instance `sandboxes.create`.
    pub name: &'static str,
    /// The method.
    pub method: Method,
    /// The plane.
    pub plane: Plane,
    /// The whole path under the base URL, with `{name}` for a segment and `{*name}` for a tail.
    pub template: &'static str,
    /// How sure the path is.
    pub status: Status,
    /// Whether the answer is a stream of events.
    pub stream: bool,
    /// The envelope of a success answer.
    pub answer: Answer,
}

/// A path parameter that cannot become part of a URL. It names the parameter, never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{route}: the path parameter `{parameter}` {rule}")]
pub struct SegmentRefused {
    /// The route's name.
    pub route: &'static str,
    /// The parameter's name in the template.
    pub parameter: &'static str,
    /// The rule that the value breaks.
    pub rule: SegmentRule,
}

/// The rules for a path parameter (wire protocol, 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentRule {
    /// A value must be given.
    Missing,
    /// An empty id would address the collection.
    Empty,
    /// A segment `.` or `..` would be resolved away and address something else.
    Dots,
}

impl fmt::Display for SegmentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is not given",
            Self::Empty => "is empty",
            Self::Dots => "contains a segment `.` or `..`",
        })
    }
}

impl Route {
    /// The path for these parameters: every segment is percent-encoded as `encodeURIComponent` does it, a `{*tail}`
    /// is encoded segment by segment (one leading `/` is dropped, since the template has it).
    ///
    /// # Errors
    /// [`SegmentRefused`] when a parameter is missing or empty, or has a segment `.` or `..`. Only a tail may be empty.
    pub fn path(&self, params: &[(&str, &str)]) -> Result<String, SegmentRefused> {
        let mut path = String::with_capacity(self.template.len() + 40);
        let mut rest = self.template;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}').unwrap_or(rest.len() - open - 1);
            path.push_str(&rest[..open]);
            let parameter = &rest[open + 1..close];
            rest = &rest[close + 1..];
            let (parameter, tail) = match parameter.strip_prefix('*') {
                Some(name) => (name, true),
                None => (parameter, false),
            };
            let refused = |rule| SegmentRefused {
                route: self.name,
                parameter,
                rule,
            };
            let value = params
                .iter()
                .find(|(name, _)| *name == parameter)
                .map(|(_, value)| *value)
                .ok_or(refused(SegmentRule::Missing))?;
            if tail {
                push_tail(&mut path, value).map_err(refused)?;
            } else {
                push_segment(&mut path, value).map_err(refused)?;
            }
        }
        path.push_str(rest);
        Ok(path)
    }
}

fn push_tail(path: &mut String, value: &str) -> Result<(), SegmentRule> {
    for (index, segment) in value
        .strip_prefix('/')
        .unwrap_or(value)
        .split('/')
        .enumerate()
    {
        if index > 0 {
            path.push('/');
        }
        if !segment.is_empty() {
            push_segment(path, segment)?;
        }
    }
    Ok(())
}

fn push_segment(path: &mut String, value: &str) -> Result<(), SegmentRule> {
    match value {
        "" => Err(SegmentRule::Empty),
        "." | ".." => Err(SegmentRule::Dots),
        _ => {
            encode_component(path, value);
            Ok(())
        }
    }
}

/// Appends `value` percent-encoded by the component rule: all but `A-Z a-z 0-9 - _ . ! ~ * ' ( )`.
pub fn encode_component(out: &mut String, value: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(byte as char),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => out.push(byte as char),
            _ => {
                out.push('%');
                out.push(HEX[usize::from(byte >> 4)] as char);
                out.push(HEX[usize::from(byte & 15)] as char);
            }
        }
    }
}

/// The route with this name.
pub fn find(name: &str) -> Option<&'static Route> {
    ROUTES.iter().copied().find(|route| route.name == name)
}

macro_rules! template {
    (Base $path:literal) => {
        $path
    };
    (Control $path:literal) => {
        concat!("/v1", $path)
    };
    (Runtime $path:literal) => {
        concat!("/v1/sandboxes/{id}/runtime", $path)
    };
}

macro_rules! routes {
    ($($id:ident $name:literal $method:ident $plane:ident $path:literal $status:ident $answer:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`: `", template!($plane $path), "`.")]
            pub const $id: Route = Route {
                name: $name,
                method: Method::$method,
                plane: Plane::$plane,
                template: template!($plane $path),
                status: Status::$status,
                stream: matches!($answer, Answer::Events),
                answer: $answer,
            };
        )*
        /// Every route of the table, in the order of the route index.
        pub const ROUTES: &[&Route] = &[$(&$id),*];
    };
}

use Answer::{Bare, Bytes, Data, Events, Key, Socket};

routes! {
    HEALTH "health" Get Base "/health" Known Bare;
    SANDBOXES_CREATE "sandboxes.create" Post Control "/sandboxes" Known Bare;
    SANDBOXES_LIST "sandboxes.list" Get Control "/sandboxes" Known Bare;
    SANDBOXES_GET "sandboxes.get" Get Control "/sandboxes/{id}" Known Bare;
    SANDBOXES_PATCH "sandboxes.patch" Patch Control "/sandboxes/{id}" Known Bare;
    SANDBOXES_DELETE "sandboxes.delete" Delete Control "/sandboxes/{id}" Known Bare;
    SANDBOXES_STOP "sandboxes.stop" Post Control "/sandboxes/{id}/stop" Known Bare;
    SANDBOXES_RESUME "sandboxes.resume" Post Control "/sandboxes/{id}/resume" Known Bare;
    SANDBOXES_DRIVER "sandboxes.driver" Get Control "/sandboxes/{id}/driver" Known Bare;
    SANDBOXES_EVENTS "sandboxes.events" Get Control "/sandboxes/{id}/events" Known Events;
    SANDBOXES_TRACE "sandboxes.trace" Get Control "/sandboxes/{id}/trace" Known Bare;
    SANDBOXES_RESOURCE_USAGE "sandboxes.resource_usage" Get Control "/sandboxes/{id}/resource-usage" Proposed Bare;
    SANDBOXES_NATIVE_CREDENTIALS "sandboxes.native_credentials" Post Control "/sandboxes/{id}/native-credentials" Proposed Bare;
    SANDBOXES_SCOPED_TOKENS "sandboxes.scoped_tokens" Post Control "/sandboxes/{id}/scoped-tokens" Proposed Bare;
    SANDBOXES_EGRESS "sandboxes.egress" Patch Control "/sandboxes/{id}/egress" Known Bare;
    SANDBOXES_EGRESS_DENIALS "sandboxes.egress.denials" Get Control "/sandboxes/{id}/egress/denials" Known Bare;
    SANDBOXES_EGRESS_ACTIVITY "sandboxes.egress.activity" Get Control "/sandboxes/{id}/egress/activity" Known Bare;
    SANDBOXES_TEE_ATTESTATION "sandboxes.tee.attestation" Post Control "/sandboxes/{id}/tee/attestation" Known Bare;
    SANDBOXES_TEE_PUBLIC_KEY "sandboxes.tee.public_key" Get Control "/sandboxes/{id}/tee/public-key" Known Bare;
    SNAPSHOTS_CREATE "snapshots.create" Post Control "/sandboxes/{id}/snapshot" Known Bare;
    SNAPSHOTS_LIST "snapshots.list" Get Control "/sandboxes/{id}/snapshots" Known Bare;
    SNAPSHOTS_DELETE "snapshots.delete" Delete Control "/sandboxes/{id}/snapshots/{snapshot_id}" Proposed Bare;
    SNAPSHOTS_REVERT "snapshots.revert" Post Control "/sandboxes/{id}/revert" Proposed Bare;
    SNAPSHOTS_RESTORE_PATHS "snapshots.restore_paths" Post Control "/sandboxes/{id}/restore-paths" Proposed Bare;
    CHECKPOINTS_LIST "checkpoints.list" Get Control "/sandboxes/{id}/checkpoints" Known Bare;
    CHECKPOINTS_CREATE "checkpoints.create" Post Control "/sandboxes/{id}/checkpoints" Known Bare;
    CHECKPOINTS_DELETE "checkpoints.delete" Delete Control "/sandboxes/{id}/checkpoints/{checkpoint_id}" Known Bare;
    FORK "fork" Post Control "/sandboxes/{id}/fork" Known Bare;
    OPERATIONS_LOOKUP "operations.lookup" Post Control "/sandboxes/{id}/operations/lookup" Proposed Bare;
    BATCH "batch" Post Control "/sandboxes/batch/run" Known Events;
    BACKENDS "backends" Get Control "/backends" Known Bare;
    MODELS "models" Get Control "/router-models" Known Bare;
    USAGE "usage" Get Control "/usage" Known Data;
    SUBSCRIPTION "subscription" Get Control "/usage/subscription" Known Data;
    IDENTITY "identity" Get Control "/identity" Proposed Bare;
    SHAPES "shapes" Get Control "/shapes" Proposed Bare;
    ENVIRONMENTS "environments" Get Control "/environments" Proposed Bare;
    EVIDENCE_CAPABILITIES "evidence_capabilities" Get Control "/evidence-capabilities" Inferred Bare;
    SECRETS_LIST "secrets.list" Get Control "/secrets" Known Bare;
    SECRETS_CREATE "secrets.create" Post Control "/secrets" Known Bare;
    SECRETS_GET "secrets.get" Get Control "/secrets/{name}" Known Bare;
    SECRETS_PATCH "secrets.patch" Patch Control "/secrets/{name}" Known Bare;
    SECRETS_DELETE "secrets.delete" Delete Control "/secrets/{name}" Known Bare;
    TEMPLATES "templates" Get Control "/public-templates" Known Bare;
    CRIU "criu" Get Control "/system/criu-status" Known Bare;
    RUNTIME_HEALTH "runtime.health" Get Runtime "/health" Known Bare;
    RUNTIME_HEALTH_DETAILED "runtime.health.detailed" Get Runtime "/health/detailed" Known Bare;
    CAPABILITIES "capabilities" Get Runtime "/capabilities" Known Bare;
    AGENTS_RUN_STREAM "agents.run_stream" Post Runtime "/agents/run/stream" Known Events;
    AGENTS_RUN "agents.run" Post Runtime "/agents/run" Known Data;
    AGENTS_RUN_CANCEL "agents.run_cancel" Post Runtime "/agents/run/cancel" Known Data;
    SESSIONS_CANCEL_RUN "sessions.cancel_run" Post Runtime "/agents/run/cancel" Inferred Data;
    AGENTS_LIST "agents.list" Get Runtime "/agents" Known Bare;
    AGENTS_EVENTS "agents.events" Get Runtime "/agents/events" Inferred Events;
    PROFILES_PRIME "profiles.prime" Post Runtime "/agents/profiles" Proposed Data;
    SESSIONS_LIST "sessions.list" Get Runtime "/agents/sessions" Known Data;
    SESSIONS_CREATE "sessions.create" Post Runtime "/agents/sessions" Inferred Data;
    SESSIONS_GET "sessions.get" Get Runtime "/agents/sessions/{session_id}" Known Data;
    SESSIONS_DELETE "sessions.delete" Delete Runtime "/agents/sessions/{session_id}" Inferred Data;
    SESSIONS_MESSAGES_SEND "sessions.messages.send" Post Runtime "/agents/sessions/{session_id}/messages" Known Data;
    SESSIONS_MESSAGES_LIST "sessions.messages.list" Get Runtime "/agents/sessions/{session_id}/messages" Inferred Data;
    SESSIONS_ABORT "sessions.abort" Post Runtime "/agents/sessions/{session_id}/abort" Known Data;
    SESSIONS_EVENTS "sessions.events" Get Runtime "/agents/sessions/{session_id}/events" Proposed Events;
    SESSIONS_RUNS "sessions.runs" Get Runtime "/agents/sessions/{session_id}/runs" Proposed Data;
    SESSIONS_RUN "sessions.run" Get Runtime "/agents/sessions/{session_id}/runs/{execution_id}" Proposed Data;
    SESSIONS_RESULT "sessions.result" Get Runtime "/agents/sessions/{session_id}/runs/{execution_id}/result" Proposed Data;
    SESSIONS_TURN "sessions.turn" Get Runtime "/agents/sessions/{session_id}/turns/{turn_id}" Proposed Data;
    SESSIONS_FORK "sessions.fork" Post Runtime "/agents/sessions/{session_id}/fork" Proposed Data;
    SESSIONS_INTERACTIONS "sessions.interactions" Get Runtime "/agents/sessions/{session_id}/interactions" Known Data;
    SESSIONS_INTERACTIONS_RESPOND "sessions.interactions.respond" Post Runtime "/agents/sessions/{session_id}/interactions" Known Data;
    SESSIONS_PLAN "sessions.plan" Get Runtime "/agents/sessions/{session_id}/plan" Proposed Data;
    SESSIONS_PLAN_DECIDE "sessions.plan.decide" Post Runtime "/agents/sessions/{session_id}/plan/decision" Proposed Data;
    SESSIONS_EVIDENCE "sessions.evidence" Post Runtime "/agents/sessions/{session_id}/evidence/raw" Proposed Bytes;
    SESSIONS_TASK_CHANGES "sessions.task.changes" Get Runtime "/agents/sessions/{session_id}/task/changes" Proposed Data;
    SESSIONS_TASK_COMMIT "sessions.task.commit" Post Runtime "/agents/sessions/{session_id}/task/commit" Proposed Data;
    INTERACTIVE_START "interactive.start" Post Runtime "/agents/sessions/{session_id}/interactive" Proposed Data;
    INTERACTIVE_STATUS "interactive.status" Get Runtime "/agents/sessions/{session_id}/interactive" Proposed Data;
    INTERACTIVE_CLAIM "interactive.claim" Post Runtime "/agents/sessions/{session_id}/interactive/control" Proposed Data;
    INTERACTIVE_VALIDATE "interactive.validate" Post Runtime "/agents/sessions/{session_id}/interactive/control/validate" Proposed Data;
    INTERACTIVE_PROMPT "interactive.prompt" Post Runtime "/agents/sessions/{session_id}/interactive/prompt" Proposed Data;
    INTERACTIVE_STOP "interactive.stop" Post Runtime "/agents/sessions/{session_id}/interactive/stop" Proposed Data;
    TERMINALS_LIST "terminals.list" Get Runtime "/terminals" Known Data;
    TERMINALS_CREATE "terminals.create" Post Runtime "/terminals" Known Data;
    TERMINALS_GET "terminals.get" Get Runtime "/terminals/{terminal_id}" Known Data;
    TERMINALS_PATCH "terminals.patch" Patch Runtime "/terminals/{terminal_id}" Known Data;
    TERMINALS_DELETE "terminals.delete" Delete Runtime "/terminals/{terminal_id}" Known Data;
    TERMINALS_INPUT "terminals.input" Post Runtime "/terminals/{terminal_id}/input" Known Data;
    TERMINALS_STREAM "terminals.stream" Get Runtime "/terminals/{terminal_id}/stream" Known Events;
    TERMINALS_WS "terminals.ws" Get Runtime "/terminals/{terminal_id}/ws" Known Socket;
    EXEC "exec" Post Runtime "/terminals/commands" Known Key("result");
    FILES_READ "files.read" Post Runtime "/files/read" Known Data;
    FILES_WRITE "files.write" Post Runtime "/files/write" Known Data;
    FILES_READ_BATCH "files.read_batch" Post Runtime "/files/read-batch" Proposed Data;
    FILES_WRITE_BATCH "files.write_batch" Post Runtime "/files/write-batch" Proposed Data;
    FILES_USAGE "files.usage" Post Runtime "/files/usage" Proposed Data;
    FILES_DOWNLOAD "files.download" Post Runtime "/files/download" Proposed Bytes;
    FS_LIST "fs.list" Get Runtime "/fs/list/{*path}" Known Data;
    FS_STAT "fs.stat" Get Runtime "/fs/stat/{*path}" Known Data;
    FS_EXISTS "fs.exists" Get Runtime "/fs/exists/{*path}" Known Data;
    FS_MKDIR "fs.mkdir" Post Runtime "/fs/mkdir/{*path}" Known Data;
    FS_REMOVE "fs.remove" Delete Runtime "/fs/{*path}" Known Data;
    FS_UPLOAD "fs.upload" Post Runtime "/fs/upload" Known Data;
    FS_UPLOAD_DIR "fs.upload_dir" Post Runtime "/fs/upload-dir" Known Data;
    FS_DOWNLOAD "fs.download" Get Runtime "/fs/download/{*path}" Known Bytes;
    FS_DOWNLOAD_DIR "fs.download_dir" Get Runtime "/fs/download-dir/{*path}" Known Bytes;
    FS_RENAME "fs.rename" Post Runtime "/fs/rename" Proposed Data;
    SEARCH "search" Post Runtime "/search" Known Bare;
    PROCESS_SPAWN "process.spawn" Post Runtime "/process/spawn" Known Data;
    PROCESS_RUN_CODE "process.run_code" Post Runtime "/process/run-code" Known Data;
    PROCESS_LIST "process.list" Get Runtime "/process" Known Data;
    PROCESS_GET "process.get" Get Runtime "/process/{pid}" Known Data;
    PROCESS_DELETE "process.delete" Delete Runtime "/process/{pid}" Known Data;
    PROCESS_LOGS "process.logs" Get Runtime "/process/{pid}/logs" Known Events;
    PREVIEW_LINKS_CREATE "preview_links.create" Post Runtime "/preview-links" Known Bare;
    PREVIEW_LINKS_GET "preview_links.get" Get Runtime "/preview-links/{preview_id}" Known Bare;
    STORAGE_CREATE "storage.create" Post Runtime "/snapshots" Known Bare;
    STORAGE_LIST "storage.list" Post Runtime "/snapshots/list" Known Bare;
    STORAGE_RESTORE "storage.restore" Post Runtime "/snapshots/restore" Known Bare;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_1_3_an_id_becomes_one_segment() {
        let path = SESSIONS_GET.path(&[("id", "sb-1"), ("session_id", "a/b c?d")]);
        assert_eq!(
            path.as_deref(),
            Ok("/v1/sandboxes/sb-1/runtime/agents/sessions/a%2Fb%20c%3Fd")
        );
    }

    #[test]
    fn the_component_rule_is_that_of_encode_uri_component() {
        let mut out = String::new();
        encode_component(&mut out, "aZ9-_.!~*'() #%&+/:;=?@[]^|é\u{1F600}");
        assert_eq!(
            out,
            "aZ9-_.!~*'()%20%23%25%26%2B%2F%3A%3B%3D%3F%40%5B%5D%5E%7C%C3%A9%F0%9F%98%80"
        );
    }

    #[test]
    fn an_id_that_would_address_something_else_is_refused() {
        for (value, rule) in [
            ("", SegmentRule::Empty),
            (".", SegmentRule::Dots),
            ("..", SegmentRule::Dots),
        ] {
            let refused = SANDBOXES_GET.path(&[("id", value)]).unwrap_err();
            assert_eq!((refused.parameter, refused.rule), ("id", rule));
        }
        let missing = SANDBOXES_GET.path(&[]).unwrap_err();
        assert_eq!(missing.rule, SegmentRule::Missing);
    }

    #[test]
    fn a_tail_is_encoded_by_segment_and_may_be_the_root() {
        let list = |path| FS_LIST.path(&[("id", "s"), ("path", path)]);
        assert_eq!(
            list("/a b/#c/%").as_deref(),
            Ok("/v1/sandboxes/s/runtime/fs/list/a%20b/%23c/%25")
        );
        assert_eq!(list("/").as_deref(), Ok("/v1/sandboxes/s/runtime/fs/list/"));
        assert_eq!(list("/a/../b").unwrap_err().rule, SegmentRule::Dots);
    }

    #[test]
    fn names_are_unique_and_found() {
        let mut names: Vec<_> = ROUTES.iter().map(|route| route.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROUTES.len());
        assert_eq!(find("exec"), Some(&EXEC));
        assert!(find("nothing").is_none());
    }
}
