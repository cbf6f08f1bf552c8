//! Server-sent events as they go over the wire (wire protocol, 7.3).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::Stream;

use crate::store::StoreError;

/// A comment that tells a reader that the stream lives.
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Appends one frame. `data` is JSON text, so that it has no line end.
pub(crate) fn push_frame(out: &mut String, id: i64, event: &str, data: &str) {
    out.push_str("id: ");
    out.push_str(&id.to_string());
    out.push_str("\nevent: ");
    out.push_str(event);
    out.push_str("\ndata: ");
    out.push_str(data);
    out.push_str("\n\n");
}

/// 200 with a stream of frames.
pub(crate) fn answer(
    frames: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
) -> Response {
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}
