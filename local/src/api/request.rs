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

use super::answer::Fault;

/// How long a client may take for a body's next bytes.
const STALL: Duration = Duration::from_secs(60);
/// How much of a refused body is read beyond its limit, so that the client gets to read the answer.
const DRAIN: usize = 16 << 20;

/// The whole body, at most `limit` bytes.
///
/// # Errors
///
/// 413 before anything happens; 400 when it breaks off; 408 when it stalls.
pub(crate) async fn body(request: Request, limit: usize) -> Result<Bytes, Fault> {
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let mut stream = request.into_body().into_data_stream();
    let mut bytes = BytesMut::new();
    let mut over = announced.is_some_and(|announced| announced > limit as u64);
    let mut dropped = 0;
    loop {
        let chunk = tokio::time::timeout(STALL, stream.next()).await;
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
            bytes.extend_from_slice(&chunk);
        }
    }
    if over {
        Err(Fault::too_large(limit))
    } else {
        Ok(bytes.freeze())
    }
}

/// A body as strict JSON.
pub(crate) async fn value(request: Request, limit: usize) -> Result<Value, Fault> {
    Ok(strict::parse(&body(request, limit).await?)?)
}

/// A body as strict JSON; an empty one is `{}`.
pub(crate) async fn value_or_empty(request: Request, limit: usize) -> Result<Value, Fault> {
    let bytes = body(request, limit).await?;
    if bytes.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    Ok(strict::parse(&bytes)?)
}

/// A checked document.
pub(crate) async fn document<T: Checked + DeserializeOwned>(
    request: Request,
    limit: usize,
) -> Result<T, Fault> {
    checked(value(request, limit).await?)
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
