//! The two ends of a connection: lines out, bounded lines in.

use std::io;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::{Bounds, CallError, Ended, Inbound, RpcError, Waiting, Write, lock};

/// Bytes that the semaphore of waiting messages can count.
const BUDGET_LIMIT: usize = 1 << 28;

#[derive(Deserialize)]
struct Incoming {
    #[serde(default)]
    id: Option<Box<RawValue>>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcError>,
}

pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queued: mpsc::Receiver<Write>,
    mut closing: watch::Receiver<bool>,
) -> io::Result<()> {
    loop {
        let next = tokio::select! {
            biased;
            next = queued.recv() => next,
            _ = closing.wait_for(|close| *close) => None,
        };
        match next {
            None => return output.shutdown().await,
            Some(Write::Line(mut line)) => {
                line.push('\n');
                output.write_all(line.as_bytes()).await?;
                output.flush().await?;
            }
            Some(Write::Flushed(done)) => drop(done.send(())),
        }
    }
}

pub(super) async fn read<R: AsyncRead + Unpin>(
    input: R,
    bounds: Bounds,
    waiting: &Mutex<Waiting>,
    to_owner: &mpsc::Sender<(Inbound, OwnedSemaphorePermit)>,
) -> Ended {
    let mut reader = BufReader::with_capacity(64 << 10, input);
    let budget = bounds.inbound_bytes.clamp(1, BUDGET_LIMIT);
    let room = Arc::new(Semaphore::new(budget));
    loop {
        let line = match bounded_line(&mut reader, bounds.line).await {
            Ok(Some(line)) => line,
            Ok(None) => return Ended::Eof,
            Err(ended) => return ended,
        };
        let bytes = line.len().clamp(1, budget);
        let Some(message) = sort(line, waiting) else {
            continue;
        };
        let Ok(room) = room.clone().acquire_many_owned(bytes as u32).await else {
            return Ended::Eof;
        };
        if to_owner.send((message, room)).await.is_err() {
            return Ended::Eof; // the owner has gone
        }
    }
}

/// Hands an answer to its call and returns everything else.
fn sort(line: String, waiting: &Mutex<Waiting>) -> Option<Inbound> {
    if !line.trim_start().starts_with('{') {
        return Some(Inbound::Stray(line)); // a list would fill the fields of a message by position
    }
    match serde_json::from_str::<Incoming>(&line) {
        Ok(Incoming {
            id: Some(id),
            method: Some(method),
            params,
            ..
        }) => Some(Inbound::Request { id, method, params }),
        Ok(Incoming {
            id: None,
            method: Some(method),
            params,
            ..
        }) => Some(Inbound::Notification { method, params }),
        Ok(Incoming {
            id: Some(id),
            method: None,
            result,
            error,
            ..
        }) => {
            let call = id
                .get()
                .parse()
                .ok()
                .and_then(|id| lock(waiting).calls.remove(&id))?;
            let _ = call.send(match (result, error) {
                (_, Some(error)) => Err(CallError::Refused(error)),
                (Some(result), None) => Ok(result),
                (None, None) => to_raw_value(&()).map_err(|_| CallError::Shape), // `"result": null`
            });
            None
        }
        Ok(_) | Err(_) => Some(Inbound::Stray(line)),
    }
}

/// One line of at most `bound` bytes; no more than that is ever held. An unfinished last line is no message.
async fn bounded_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    bound: usize,
) -> Result<Option<String>, Ended> {
    let mut line = Vec::new();
    loop {
        let chunk = reader
            .fill_buf()
            .await
            .map_err(|error| Ended::Io(error.kind()))?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(chunk.len());
        if line.len() + take > bound {
            return Err(Ended::LineTooLong);
        }
        line.extend_from_slice(&chunk[..take]);
        reader.consume(take + usize::from(end.is_some()));
        if end.is_some() {
            return String::from_utf8(line)
                .map(Some)
                .map_err(|_| Ended::NotUtf8);
        }
    }
}
