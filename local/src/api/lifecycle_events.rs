//! The changes of a sandbox's status as a stream (wire protocol, 4.7).

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;

use super::Shared;
use super::answer::Fault;
use super::call::Call;
use super::request::{header_text, parameter, query};
use super::sse::{self, KEEP_ALIVE};
use crate::ids::{now, rfc3339};
use crate::store::{StoreError, changes};

struct Reader {
    deployment: Shared,
    sandbox: String,
    cursor: i64,
    changed: watch::Receiver<u64>,
    over: bool,
}

/// `GET C/sandboxes/{id}/events`: the changes so far, then each new one; `sandbox.deleted` is the last.
pub(super) async fn stream(call: Call) -> Result<Response, Fault> {
    // Listened to before anything is read, so that no change falls in between.
    let changed = call.deployment.changes.subscribe();
    let query = query(&call.request)?;
    let header = header_text(call.request.headers(), "last-event-id")?.map(str::to_owned);
    let cursor = match (parameter(&query, "lastEventId"), header.as_deref()) {
        (Some(query), Some(header)) if query != header => {
            return Err(Fault::field(
                "lastEventId",
                "must be the cursor of the header `Last-Event-ID`",
            ));
        }
        (query, header) => query.or(header).unwrap_or("0").to_owned(),
    };
    let deployment = call.deployment.clone();
    let sandbox = call.sandbox().await?.id;
    let id = sandbox.clone();
    let newest = deployment
        .store
        .read::<_, StoreError>(move |db| changes::newest(db, &id))
        .await?;
    let issued = cursor.parse::<i64>().ok();
    let issued = issued.filter(|number| (0..=newest).contains(number));
    let cursor = issued.ok_or_else(|| {
        Fault::new(
            StatusCode::GONE,
            "EVENT_CURSOR_UNKNOWN",
            "the cursor names no event of this sandbox",
        )
        .with("oldestEventId", "1")
    })?;
    let reader = Reader {
        deployment,
        sandbox,
        cursor,
        changed,
        over: false,
    };
    let frames = futures_util::stream::unfold(reader, |mut reader| async move {
        let bytes = reader.next().await?;
        Some((bytes, reader))
    });
    Ok(sse::answer(frames))
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        if self.over {
            return None;
        }
        let silence = tokio::time::sleep(self.deployment.settings.keep_alive);
        tokio::pin!(silence);
        loop {
            self.changed.mark_unchanged();
            match self.read().await {
                Ok(bytes) if bytes.is_empty() => {}
                other => return Some(other),
            }
            tokio::select! {
                changed = self.changed.changed() => changed.ok()?,
                () = self.deployment.closing.cancelled() => return None,
                () = &mut silence => return Some(Ok(Bytes::from_static(KEEP_ALIVE))),
            }
        }
    }

    async fn read(&mut self) -> Result<Bytes, StoreError> {
        let (id, cursor) = (self.sandbox.clone(), self.cursor);
        let (changes, there) = self
            .deployment
            .store
            .read::<_, StoreError>(move |db| changes::after(db, &id, cursor))
            .await?;
        let mut text = String::new();
        for change in changes {
            let data = json!({
                "sandboxId": self.sandbox,
                "status": change.status,
                "at": rfc3339(change.at),
            });
            sse::push_frame(
                &mut text,
                change.number,
                "sandbox.status",
                &data.to_string(),
            );
            self.cursor = change.number;
        }
        if !there {
            let data = json!({ "sandboxId": self.sandbox, "at": rfc3339(now()) });
            sse::push_frame(
                &mut text,
                self.cursor + 1,
                "sandbox.deleted",
                &data.to_string(),
            );
            self.over = true;
        }
        Ok(Bytes::from(text))
    }
}
