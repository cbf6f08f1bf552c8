//! Numbers the frames of one execution and records them in batches; only then do readers hear of them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tangle_sandbox::contract::types::Warning;

use super::live::{Live, Progress};
use crate::ids::now;
use crate::store::executions::{newest, set_ended};
use crate::store::frames::{NewFrame, append};
use crate::store::{Store, StoreError, sessions};

/// Bytes of one frame's data. A reader refuses a raw frame of 16 MiB.
pub(super) const FRAME_LIMIT: usize = 15 << 20;

/// A frame of the run's own, from an event's name and its checked data.
pub(super) fn own_frame(kind: &str, data: &impl Serialize) -> NewFrame {
    NewFrame {
        kind: kind.to_owned(),
        data: json!(data).to_string(),
    }
}

/// A frame of the agent's, from an event's name and data.
pub(crate) fn frame(kind: &str, data: Map<String, Value>) -> NewFrame {
    let text = Value::Object(data).to_string();
    if text.len() <= FRAME_LIMIT && kind.len() <= 512 && !kind.contains(['\n', '\r']) {
        return NewFrame {
            kind: kind.to_owned(),
            data: text,
        };
    }
    let warning = Warning {
        code: Some("EVENT_TOO_LARGE".to_owned()),
        message: "an event of the agent was left out: it is too large".to_owned(),
        extra: Map::new(),
    };
    own_frame("warning", &warning)
}

/// The agent's own id of its session.
#[derive(Clone, Debug)]
pub(super) struct Native {
    /// Backend type.
    pub(super) backend: String,
    pub(super) id: String,
}

pub(super) struct Recorder {
    pub(super) store: Store,
    pub(super) live: Arc<Live>,
    pub(super) pk: i64,
    pub(super) newest: i64,
}

impl Recorder {
    /// Records the agent's own id of the session with its backend, before the prompt is handed over: should the deployment
    /// die in the turn, the next one goes on with that session, or says that it cannot.
    pub(super) async fn begun(&self, native: Native) -> Result<(), StoreError> {
        let (sandbox, session) = (self.live.sandbox.clone(), self.live.session.clone());
        self.store
            .write(move |db| {
                sessions::set_native(db, &sandbox, &session, &native.backend, &native.id)
            })
            .await
    }

    /// Records frames, when there are any, then tells the readers.
    pub(super) async fn record_some(&mut self, frames: Vec<NewFrame>) -> Result<(), StoreError> {
        if frames.is_empty() {
            return Ok(());
        }
        let (pk, newest) = (self.pk, self.newest);
        let recorded = self
            .store
            .write(move |db| append(db, pk, newest, &frames))
            .await?;
        self.newest = recorded;
        self.live.publish(Progress {
            newest: recorded,
            ended: false,
        });
        Ok(())
    }

    /// Records the last frames with the result, in one transaction, then tells the readers.
    pub(super) async fn finish(
        &mut self,
        frames: Vec<NewFrame>,
        status: &'static str,
        result: Value,
        native: Option<Native>,
    ) -> Result<(), StoreError> {
        let (pk, result) = (self.pk, result.to_string());
        let (sandbox, session) = (self.live.sandbox.clone(), self.live.session.clone());
        self.newest = self
            .store
            .write::<_, StoreError>(move |db| {
                // A batch that was recorded although its answer was an error counts, too.
                let newest = newest(db, pk)?;
                let newest = append(db, pk, newest, &frames)?;
                set_ended(db, pk, status, &result, now())?;
                sessions::touch(db, &sandbox, &session, now())?;
                if let Some(native) = native {
                    sessions::set_native(db, &sandbox, &session, &native.backend, &native.id)?;
                }
                Ok(newest)
            })
            .await?;
        Ok(())
    }

    /// No frame follows.
    pub(super) fn close(&self) {
        self.live.publish(Progress {
            newest: self.newest,
            ended: true,
        });
    }
}
