//! Whether a frame belongs to the run that its stream was opened for (provider runtime, 9.1).

use serde_json::{Map, Value};

use crate::contract::checks::CHECK_IDENTIFIER;
use crate::contract::types::{ExecutionId, SessionId};

use super::{RawFrame, Refusal};

/// The run that a stream was opened for. The default expects nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The execution.
    pub execution_id: Option<ExecutionId>,
    /// The session.
    pub session_id: Option<SessionId>,
    /// Whether the transport itself selects the run: the stream that a call started with an execution id of its own, or
    /// an exact replay. Only there may a frame say nothing of its run.
    pub bound: bool,
}

/// What a frame says of its identity. Its strings are identifiers.
pub(super) struct Carried<'a> {
    execution: Option<&'a str>,
    /// Where the data names the session itself: that of the runtime, on `session.updated` the harness's own.
    run_frame: Option<&'a str>,
    /// Where an envelope inside the data names it: always that of the runtime.
    envelope: Option<&'a str>,
}

/// Compares what `frame` says of its identity with what is expected. A frame that only says that the transport is connected
/// may say nothing of its run on any stream.
///
/// # Errors
///
/// `identifier`, `alias-conflict`, `execution-absent`, `execution-mismatch`, `session-absent` or `session-mismatch`.
pub fn check_identity(frame: &RawFrame, expected: &Expected) -> Result<(), Refusal> {
    let carried = Carried::read(frame)?;
    if frame.is_connection_marker() && !expected.bound {
        let bound = Expected {
            bound: true,
            ..expected.clone()
        };
        return carried.check(frame.kind(), &bound);
    }
    carried.check(frame.kind(), expected)
}

impl<'a> Carried<'a> {
    /// Reads every position of an identity. `null` says nothing; the session of `data.part` is the harness's own and is
    /// not read.
    pub(super) fn read(frame: &'a RawFrame) -> Result<Self, Refusal> {
        let data = frame.data();
        let properties = object(data, "properties");
        let info = properties.and_then(|properties| object(properties, "info"));
        let part = properties
            .filter(|_| frame.kind() == "message.part.updated")
            .and_then(|properties| object(properties, "part"));

        let everywhere = [
            (Some(data), "/data"),
            (properties, PROPERTIES),
            (info, INFO),
        ];
        let execution = told(&everywhere, &["executionId"])?;
        let run_frame = told(&[(Some(data), "/data")], &SESSION)?;
        let envelope = told(
            &[(properties, PROPERTIES), (info, INFO), (part, PART)],
            &SESSION,
        )?;
        Ok(Self {
            execution,
            run_frame,
            envelope,
        })
    }

    /// Compares with what the stream was opened for; the execution first.
    pub(super) fn check(&self, kind: &str, expected: &Expected) -> Result<(), Refusal> {
        if let Some(execution) = &expected.execution_id {
            match self.execution {
                Some(carried) if carried == execution.as_str() => {}
                Some(_) => return Err(Refusal::ExecutionMismatch),
                None if expected.bound => {}
                None => return Err(Refusal::ExecutionAbsent),
            }
        }
        let Some(session) = &expected.session_id else {
            return Ok(());
        };
        // On a bound stream the harness's own session is what `session.updated` tells.
        let is_content = expected.bound && kind == "session.updated";
        let run_frame = self.run_frame.filter(|_| !is_content);
        let differs = |carried: &str| carried != session.as_str();
        if run_frame.is_some_and(differs) || self.envelope.is_some_and(differs) {
            return Err(Refusal::SessionMismatch);
        }
        if !expected.bound && self.session().is_none() {
            return Err(Refusal::SessionAbsent);
        }
        Ok(())
    }

    /// The session that the frame tells, its own words before those of an envelope.
    pub(super) fn session(&self) -> Option<&'a str> {
        self.run_frame.or(self.envelope)
    }

    /// Whether one of the positions names `session`.
    pub(super) fn carries(&self, session: &str) -> bool {
        self.run_frame == Some(session) || self.envelope == Some(session)
    }
}

/// Both spellings of a session.
const SESSION: [&str; 2] = ["sessionId", "sessionID"];

const PROPERTIES: &str = "/data/properties";
const INFO: &str = "/data/properties/info";
const PART: &str = "/data/properties/part";

/// An identity that may stand under any of `keys` in each of `places`, which must not differ. That each is an identifier
/// comes first.
fn told<'a>(
    places: &[(Option<&'a Map<String, Value>>, &str)],
    keys: &[&str],
) -> Result<Option<&'a str>, Refusal> {
    let mut told = None;
    let mut conflict = None;
    for key in keys {
        for (members, path) in places {
            let place = || format!("{path}/{key}");
            let carried = match members.and_then(|members| members.get(*key)) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) if is_identifier(text) => text.as_str(),
                Some(_) => return Err(Refusal::Identifier { path: place() }),
            };
            if *told.get_or_insert(carried) != carried {
                conflict.get_or_insert_with(place);
            }
        }
    }
    match conflict {
        Some(path) => Err(Refusal::AliasConflict { path }),
        None => Ok(told),
    }
}

fn object<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    members.get(key)?.as_object()
}

fn is_identifier(text: &str) -> bool {
    CHECK_IDENTIFIER.check_text(text).is_ok()
}
