//! Reading requests: bounded bodies, checked documents, query parameters.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tangle_sandbox::contract::checker::{Checked, Extra};
use tangle_sandbox::contract::{from_value, strict};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::Fault;

/// How long a client may take for a body's next bytes.
const STALL: Duration = Duration::from_secs(60);
/// How long a client may take for a whole body.
const WHOLE: Duration = Duration::from_secs(600);
/// How much of a refused body is read beyond its limit, so that the client gets to read the answer.
const DRAIN: usize = 16 << 20;

/// Above this size a body counts against [`ROOM`] and is read as JSON away from the threads that serve.
const LARGE: usize = 256 << 10;
/// Bytes of large bodies that may be in memory at the same time.
const MAX_LARGE: usize = 256 << 20;
/// How much room a body takes at a time.
const STEP: usize = 1 << 20;
static ROOM: Semaphore = Semaphore::const_new(MAX_LARGE);

/// Room for what has come of a large body, until this is dropped; nothing for a small one.
#[derive(Default)]
pub(crate) struct Held {
    permit: Option<SemaphorePermit<'static>>,
    bytes: usize,
}

impl Held {
    /// Waits for room for `bytes` in all. Room is taken as bytes come, so that an announcement alone keeps nobody out.
    async fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes <= LARGE || bytes <= self.bytes {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(STEP).min(MAX_LARGE) - self.bytes;
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let busy = || Fault::passing("other requests are too large at this moment");
        let room = tokio::time::timeout(STALL, ROOM.acquire_many(wanted)).await;
        let room = room.map_err(|_| busy())?.map_err(|_| busy())?;
        self.bytes += wanted as usize;
        match &mut self.permit {
            Some(permit) => permit.merge(room),
            none => *none = Some(room),
        }
        Ok(())
    }
}

/// The whole body, at most `limit` bytes, with the room that it takes.
///
/// # Errors
///
/// 413 before anything happens; 400 when it breaks off; 408 when it stalls; 503 when there is no room for it.
async fn body(request: Request, limit: usize) -> Result<(Bytes, Held), Fault> {
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let mut stream = request.into_body().into_data_stream();
    let mut bytes = BytesMut::new();
    let mut over = announced.is_some_and(|announced| announced > limit as u64);
    let mut dropped = 0;
    let mut held = Held::default();
    let end = tokio::time::Instant::now() + WHOLE;
    loop {
        let next = end.min(tokio::time::Instant::now() + STALL);
        let chunk = tokio::time::timeout_at(next, stream.next()).await;
        let chunk = chunk.map_err(|_| {
            Fault::new(
                StatusCode::REQUEST_TIMEOUT,
                "TIMEOUT",
                "the body did not arrive in time",
            )
            .with("timeoutMs", STALL.as_millis() as u64)
        })?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|_| Fault::field("body", "broke off"))?;
        over |= bytes.len() + chunk.len() > limit;
        if over {
            bytes = BytesMut::new();
            dropped += chunk.len();
            if dropped > limit.saturating_add(DRAIN) {
                break;
            }
        } else {
            held.grow(bytes.len() + chunk.len()).await?;
            bytes.extend_from_slice(&chunk);
        }
    }
    if over {
        Err(Fault::too_large(limit))
    } else {
        Ok((bytes.freeze(), held))
    }
}

/// Work on so many bytes: away from the threads that serve when it may take a while.
async fn weighed<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    if bytes <= LARGE {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(Fault::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "SERVER_ERROR",
            "the body could not be read",
        ))
    })
}

/// A body as strict JSON.
pub(crate) async fn value(request: Request, limit: usize) -> Result<Value, Fault> {
    let (bytes, _held) = body(request, limit).await?;
    weighed(bytes.len(), move || Ok(strict::parse(&bytes)?)).await
}

/// A body as strict JSON; an empty one is `{}`.
pub(crate) async fn value_or_empty(request: Request, limit: usize) -> Result<Value, Fault> {
    let (bytes, _held) = body(request, limit).await?;
    if bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    weighed(bytes.len(), move || Ok(strict::parse(&bytes)?)).await
}

/// A checked document.
pub(crate) async fn document<T: Checked + DeserializeOwned + Send + 'static>(
    request: Request,
    limit: usize,
) -> Result<T, Fault> {
    let (document, _held) = held(request, limit).await?;
    Ok(document)
}

/// A checked document with the room that its body took, for as long as what is in it is needed.
pub(crate) async fn held<T: Checked + DeserializeOwned + Send + 'static>(
    request: Request,
    limit: usize,
) -> Result<(T, Held), Fault> {
    let (bytes, held) = body(request, limit).await?;
    let document = weighed(bytes.len(), move || checked(strict::parse(&bytes)?)).await?;
    Ok((document, held))
}

/// A checked document from JSON; unknown fields are named one by one.
pub(crate) fn checked<T: Checked + DeserializeOwned>(value: Value) -> Result<T, Fault> {
    let node = T::node();
    if let (Value::Object(members), Extra::Refuse) = (&value, &node.extra) {
        let known: Vec<&str> = node.fields().collect();
        let unknown: BTreeMap<String, String> = members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .take(32)
            .map(|name| (shorten(name), "is not a known field".to_owned()))
            .collect();
        if !unknown.is_empty() {
            return Err(Fault::fields(unknown));
        }
    }
    Ok(from_value(value)?)
}

fn shorten(name: &str) -> String {
    name.chars().take(64).collect()
}

/// The query parameters, decoded; a name that is given twice is there twice.
pub(crate) fn query(request: &Request) -> Result<Vec<(String, String)>, Fault> {
    axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        .map(|query| query.0)
        .map_err(|_| Fault::field("query", "cannot be read"))
}

/// One query parameter.
pub(crate) fn parameter<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query
        .iter()
        .find_map(|(found, value)| (found == name).then_some(value.as_str()))
}

/// A query flag: `true`, `1` or without a value.
pub(crate) fn flag(query: &[(String, String)], name: &str) -> Result<bool, Fault> {
    match parameter(query, name) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1" | "") => Ok(true),
        Some(_) => Err(Fault::field(name, "must be `true` or `false`")),
    }
}

/// A whole number among the query parameters, within `range`.
pub(crate) fn number(
    query: &[(String, String)],
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, Fault> {
    let Some(text) = parameter(query, name) else {
        return Ok(None);
    };
    let number = text
        .parse::<u64>()
        .ok()
        .filter(|number| range.contains(number));
    number.map(Some).ok_or_else(|| {
        Fault::field(
            name,
            format!(
                "must be a whole number from {} to {}",
                range.start(),
                range.end()
            ),
        )
    })
}

/// A header as text.
pub(crate) fn header_text<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a str>, Fault> {
    headers
        .get(name)
        .map(|value| {
            value
                .to_str()
                .map_err(|_| Fault::field(name, "must be plain text"))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::FutureExt as _;

    use super::*;

    fn announced(bytes: usize, content: Body) -> Request {
        let request = Request::builder().header(header::CONTENT_LENGTH, bytes);
        request.body(content).unwrap()
    }

    #[tokio::test]
    async fn large_bodies_wait_for_room_as_their_bytes_come_and_announcements_take_none() {
        let mut first = Held::default();
        first.grow(MAX_LARGE - STEP).await.unwrap();
        let whole = body(announced(MAX_LARGE, Body::from("come")), MAX_LARGE).await;
        assert_eq!(&whole.unwrap().0[..], b"come");
        let mut second = Held::default();
        second.grow(LARGE).await.unwrap();
        second.grow(STEP).await.unwrap();
        let mut more = Box::pin(second.grow(STEP + 1));
        assert!((&mut more).now_or_never().is_none(), "there was room");
        drop(first);
        more.await.unwrap();
    }

    #[tokio::test]
    async fn a_large_body_is_read_away_from_the_threads_that_serve() {
        let here = std::thread::current().id();
        let on = |bytes| weighed(bytes, || Ok(std::thread::current().id()));
        assert_eq!(on(LARGE).await.unwrap(), here);
        assert_ne!(on(LARGE + 1).await.unwrap(), here);
    }
}
