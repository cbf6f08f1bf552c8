//! The frames of an execution for one reader: from the record, a page at a time, at the reader's pace. What waits for a
//! slow reader waits on the disk, so that its memory is bounded by a page.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::watch;

use super::live::{Attached, Progress};
use crate::api::Shared;
use crate::api::answer::Fault;
use crate::api::sse::{self, KEEP_ALIVE};
use crate::store::executions::ExecutionRow;
use crate::store::frames::{self, Frame};
use crate::store::{Store, StoreError};

/// Frames in a page.
const PAGE_FRAMES: usize = 512;
/// Bytes after which a page takes no further frame.
const PAGE_BYTES: usize = 256 << 10;

/// Frames of one execution, in order, each once.
pub(crate) struct Reader {
    store: Store,
    execution: i64,
    cursor: i64,
    progress: watch::Receiver<Progress>,
    keep_alive: Duration,
    closing: tokio_util::sync::CancellationToken,
    /// Set when the stream answers a dispatch of a run that was there: its admission is told as a replay, with the
    /// status that the run has now.
    replayed: Option<Arc<str>>,
    /// Counts as a reader of the run while it goes on.
    _attached: Option<Attached>,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// After this frame.
    After(i64),
    /// The run is over and nothing comes after the cursor.
    Over,
}

/// Reads a cursor (wire protocol, 7.6).
///
/// # Errors
///
/// 410 `EVENT_CURSOR_UNKNOWN` for one that was never issued.
pub(crate) fn position(
    db: &Connection,
    execution: &ExecutionRow,
    cursor: Option<&str>,
) -> Result<Position, Fault> {
    let Some(cursor) = cursor else {
        return Ok(Position::After(0));
    };
    let issued = cursor
        .parse::<i64>()
        .ok()
        .filter(|number| number.to_string() == cursor && (0..=execution.newest).contains(number));
    match issued {
        Some(number) if number == execution.newest && execution.ended() => Ok(Position::Over),
        Some(number) => Ok(Position::After(number)),
        None => {
            let oldest = frames::oldest(db, execution.pk)?;
            let fault = Fault::new(
                StatusCode::GONE,
                "EVENT_CURSOR_UNKNOWN",
                "the cursor names no frame of this execution that is held",
            );
            Err(match oldest {
                Some(oldest) => fault.with("oldestEventId", oldest.to_string()),
                None => fault,
            })
        }
    }
}

/// The answer with the frames after `cursor`.
pub(crate) fn answer(
    deployment: &Shared,
    execution: &ExecutionRow,
    cursor: i64,
    attached: Option<Attached>,
    replayed: bool,
) -> Response {
    let reader = Reader {
        store: deployment.store.clone(),
        execution: execution.pk,
        cursor,
        progress: follow(deployment, execution),
        keep_alive: deployment.settings.keep_alive,
        closing: deployment.closing.clone(),
        replayed: replayed.then(|| execution.status.as_str().into()),
        _attached: attached,
    };
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let bytes = reader.next().await?;
        Some((bytes, reader))
    });
    sse::answer(stream)
}

/// The progress of a run that goes on, or the last one of a run that is over.
pub(crate) fn follow(deployment: &Shared, execution: &ExecutionRow) -> watch::Receiver<Progress> {
    match deployment.runs.get(execution.pk) {
        Some(live) => live.follow(),
        None => watch::Sender::new(Progress {
            newest: i64::MAX,
            ended: true,
        })
        .subscribe(),
    }
}

impl Reader {
    /// The next bytes of the stream; `None` at its end. An error cuts it, which a client sees as severed.
    async fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        let silence = tokio::time::sleep(self.keep_alive);
        tokio::pin!(silence);
        loop {
            let progress = *self.progress.borrow_and_update();
            if self.cursor < progress.newest {
                match self.page().await {
                    Ok(bytes) if bytes.is_empty() => {}
                    other => return Some(other),
                }
            }
            if progress.ended {
                return None;
            }
            tokio::select! {
                biased;
                changed = self.progress.changed() => changed.ok()?,
                () = self.closing.cancelled() => {
                    // The run's last frames are still on their way; without an end of the run this is a cut.
                    let last = tokio::time::timeout(LAST_FRAMES, self.progress.changed()).await;
                    last.ok()?.ok()?;
                }
                () = &mut silence => return Some(Ok(Bytes::from_static(KEEP_ALIVE))),
            }
        }
    }

    async fn page(&mut self) -> Result<Bytes, StoreError> {
        let (execution, cursor, replayed) = (self.execution, self.cursor, self.replayed.clone());
        let (bytes, last) = self
            .store
            .read::<_, StoreError>(move |db| {
                let page = frames::page(db, execution, cursor, PAGE_FRAMES, PAGE_BYTES)?;
                let last = page.last().map_or(cursor, |frame| frame.number);
                Ok((written(&page, replayed.as_deref()), last))
            })
            .await?;
        self.cursor = last;
        Ok(bytes)
    }
}

/// How long a reader waits for the last frames of a run while the deployment ends.
const LAST_FRAMES: Duration = Duration::from_secs(12);

fn written(page: &[Frame], replayed: Option<&str>) -> Bytes {
    let size = page
        .iter()
        .map(|frame| frame.data.len() + frame.kind.len() + 48);
    let mut text = String::with_capacity(size.sum());
    for frame in page {
        let status = replayed.filter(|_| frame.kind == "execution.started");
        let replay = status.and_then(|status| as_replay(&frame.data, status));
        let data = replay.as_deref().unwrap_or(&frame.data);
        sse::push_frame(&mut text, frame.number, &frame.kind, data);
    }
    Bytes::from(text)
}

/// The receipt of a dispatch that started nothing (wire protocol, 8.2).
fn as_replay(data: &str, status: &str) -> Option<String> {
    let mut data: Value = serde_json::from_str(data).ok()?;
    let members = data.as_object_mut()?;
    members.insert("alreadyExisted".to_owned(), true.into());
    members.insert("dispatched".to_owned(), false.into());
    members.insert("status".to_owned(), status.into());
    Some(data.to_string())
}

/// Waits until the execution is over and its end is recorded.
pub(crate) async fn over(
    deployment: &Arc<crate::deployment::Deployment>,
    execution: &ExecutionRow,
) {
    let mut progress = follow(deployment, execution);
    let _ = progress.wait_for(|progress| progress.ended).await; // a sender that is gone has ended too
}
