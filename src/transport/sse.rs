//! A bounded decoder of server-sent events (wire protocol, 7.3).
//!
//! [`Decoder`] is push-style and does no I/O; [`Frames`] puts it on a stream of byte chunks. Every byte is looked at once,
//! however the input is cut, and no more than one frame is held.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::Stream;

/// The largest raw frame by default, in bytes (wire protocol, 1.6).
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The longest event type and the longest id, in UTF-16 code units (wire protocol, 1.6).
pub const MAX_FIELD_UNITS: usize = 512;

/// One frame that had data.
///
/// `data`, `event` and `id` stand one after the other in one text, so that a frame costs one allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    text: String,
    data: usize,
    event: usize,
}

impl Frame {
    /// The `data` lines, joined with LF.
    pub fn data(&self) -> &str {
        &self.text[..self.data]
    }

    /// The `event` field, if the frame had one that is not empty.
    pub fn event(&self) -> Option<&str> {
        Some(&self.text[self.data..self.event]).filter(|event| !event.is_empty())
    }

    /// The frame's own `id`, if it had one that is not empty. Ids are never carried over from an earlier frame.
    pub fn id(&self) -> Option<&str> {
        Some(&self.text[self.event..]).filter(|id| !id.is_empty())
    }

    /// Only the data, without a copy.
    pub fn into_data(self) -> String {
        let mut text = self.text;
        text.truncate(self.data);
        text
    }

    fn new(text: Vec<u8>, data: usize, event: usize) -> Result<Self, SseError> {
        let text = String::from_utf8(text).map_err(|_| SseError::Utf8)?;
        if !text.is_char_boundary(data) || !text.is_char_boundary(event) {
            return Err(SseError::Utf8);
        }
        let frame = Self { text, data, event };
        if too_long(&frame.text[data..event]) {
            return Err(SseError::EventTooLong);
        }
        if too_long(&frame.text[event..]) {
            return Err(SseError::IdTooLong);
        }
        Ok(frame)
    }
}

fn too_long(field: &str) -> bool {
    field.len() > MAX_FIELD_UNITS && field.encode_utf16().count() > MAX_FIELD_UNITS
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame")
            .field("event", &self.event())
            .field("id", &self.id())
            .field("data_bytes", &self.data)
            .finish()
    }
}

/// What makes a stream of events unreadable. The decoder stops at the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A frame is larger than the limit; its lines are counted with one byte for each line end, comments are not.
    #[error("a raw frame is larger than {limit} bytes")]
    FrameTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A field is not UTF-8.
    #[error("a frame is not UTF-8")]
    Utf8,
    /// The event type is too long.
    #[error("an event type is longer than {MAX_FIELD_UNITS} UTF-16 units")]
    EventTooLong,
    /// The id is too long.
    #[error("an event id is longer than {MAX_FIELD_UNITS} UTF-16 units")]
    IdTooLong,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the byte order mark, after so many of its bytes.
    Mark(usize),
    LineStart,
    /// In a line whose start is kept, because its field is not known yet or is `event` or `id`.
    Head,
    /// In the value of a `data` line.
    Data,
    /// In a line of another field.
    Other,
    /// In a comment.
    Comment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Other,
    Comment,
}

/// A push-style decoder: give it bytes in any cut, take frames.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    at: At,
    /// The last line ended with a CR, so that a LF belongs to it.
    skip_lf: bool,
    failed: bool,
    /// Bytes of the finished lines of the open frame, and of its unfinished line.
    frame_bytes: usize,
    line_bytes: usize,
    head: Vec<u8>,
    data: Option<Vec<u8>>,
    event: Vec<u8>,
    id: Vec<u8>,
    #[cfg(test)]
    scanned: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(MAX_FRAME_BYTES)
    }
}

impl Decoder {
    /// A decoder that refuses a raw frame above `limit` bytes; the limit is at most [`MAX_FRAME_BYTES`].
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.min(MAX_FRAME_BYTES),
            at: At::Mark(0),
            skip_lf: false,
            failed: false,
            frame_bytes: 0,
            line_bytes: 0,
            head: Vec::new(),
            data: None,
            event: Vec::new(),
            id: Vec::new(),
            #[cfg(test)]
            scanned: 0,
        }
    }

    /// Takes bytes off the front of `input` until a frame is complete. `None` means that `input` is used up.
    ///
    /// # Errors
    /// [`SseError`], once; after it the decoder swallows all input.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, SseError> {
        while !input.is_empty() && !self.failed {
            let step = if self.is_between_frames() {
                self.whole_frame(input)
            } else {
                self.next_line(input)
            };
            match step {
                Ok(None) => {}
                Ok(frame) => return Ok(frame),
                Err(error) => {
                    self.failed = true;
                    self.close();
                    return Err(error);
                }
            }
        }
        *input = &[];
        Ok(None)
    }

    /// Whether the input so far ends inside a frame. At the end of a body this means that the frame is lost.
    pub fn is_mid_frame(&self) -> bool {
        !self.failed && (self.frame_bytes > 0 || !matches!(self.at, At::LineStart | At::Mark(0)))
    }

    fn is_between_frames(&self) -> bool {
        self.at == At::LineStart && self.frame_bytes == 0 && !self.skip_lf
    }

    /// The quick way: a frame that lies in `input` as a whole is copied once, out of `input`.
    fn whole_frame(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, SseError> {
        let bytes = *input;
        let mut spans = Spans::default();
        let mut at = 0;
        while at < bytes.len() {
            if matches!(bytes[at], b'\n' | b'\r') {
                *input = self.after_line_end(&bytes[at..]);
                return spans.build(bytes);
            }
            let Some(length) = self.line_end(&bytes[at..]) else {
                self.keep(spans, bytes);
                *input = &[];
                self.piece(&bytes[at..])?;
                return Ok(None);
            };
            let rest = self.after_line_end(&bytes[at + length..]);
            if !spans.take(bytes, at..at + length) {
                self.keep(spans, bytes);
                *input = rest;
                self.end_line(&bytes[at..at + length])?;
                return Ok(None);
            }
            self.bound(spans.counted)?;
            at = bytes.len() - rest.len();
        }
        self.keep(spans, bytes);
        *input = &[];
        Ok(None)
    }

    /// Takes over what the quick way had found of a frame that it cannot finish.
    fn keep(&mut self, spans: Spans, bytes: &[u8]) {
        self.frame_bytes = spans.counted;
        self.data = spans.data.map(|data| bytes[data].to_vec());
        self.event.extend_from_slice(&bytes[spans.event]);
        self.id.extend_from_slice(&bytes[spans.id]);
    }

    /// The slow way: one line, or a piece of one, of a frame that is cut or has several data lines.
    fn next_line(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, SseError> {
        if std::mem::take(&mut self.skip_lf) && input.first() == Some(&b'\n') {
            *input = &input[1..];
        }
        if let At::Mark(seen) = self.at {
            self.mark(seen, input);
        }
        let Some(&first) = input.first() else {
            return Ok(None);
        };
        if self.at == At::LineStart && matches!(first, b'\n' | b'\r') {
            *input = self.after_line_end(input);
            return self.dispatch();
        }
        let bytes = *input;
        match self.line_end(bytes) {
            Some(length) => {
                *input = self.after_line_end(&bytes[length..]);
                self.end_line(&bytes[..length])?;
            }
            None => {
                *input = &[];
                self.piece(bytes)?;
            }
        }
        Ok(None)
    }

    /// Skips one byte order mark at the start of the body, whole or cut.
    fn mark(&mut self, mut seen: usize, input: &mut &[u8]) {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        while seen < MARK.len() {
            match input.first() {
                None => {
                    self.at = At::Mark(seen);
                    return;
                }
                Some(byte) if *byte == MARK[seen] => {
                    seen += 1;
                    *input = &input[1..];
                }
                Some(_) => {
                    self.head.extend_from_slice(&MARK[..seen]);
                    self.line_bytes = seen;
                    self.at = if seen > 0 { At::Head } else { At::LineStart };
                    return;
                }
            }
        }
        self.at = At::LineStart;
    }

    /// The rest of the open line is `bytes`, and it is complete.
    fn end_line(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        let length = std::mem::take(&mut self.line_bytes) + bytes.len() + 1;
        let at = std::mem::replace(&mut self.at, At::LineStart);
        let field = match at {
            At::Data => {
                self.bound(self.frame_bytes + length)?;
                self.data.get_or_insert_default().extend_from_slice(bytes);
                Field::Data
            }
            At::Head => {
                self.head.extend_from_slice(bytes);
                let line = std::mem::take(&mut self.head);
                let field = self.take_line(&line);
                self.head = line;
                self.head.clear();
                field
            }
            At::LineStart | At::Mark(_) => self.take_line(bytes),
            At::Other => Field::Other,
            At::Comment => Field::Comment,
        };
        if field != Field::Comment {
            self.frame_bytes += length;
            self.bound(self.frame_bytes)?;
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Field {
        let (field, value) = split(line);
        let value = &line[value..];
        match field {
            Field::Data => self.data_line().extend_from_slice(value),
            Field::Event => replace(&mut self.event, value),
            Field::Id if memchr::memchr(0, value).is_none() => replace(&mut self.id, value),
            Field::Id | Field::Other | Field::Comment => {}
        }
        field
    }

    /// The data so far, with the LF that joins a further line.
    fn data_line(&mut self) -> &mut Vec<u8> {
        if let Some(data) = &mut self.data {
            data.push(b'\n');
        }
        self.data.get_or_insert_default()
    }

    /// `bytes` is a piece of a line whose end has not come yet.
    fn piece(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.line_bytes += bytes.len();
        self.bound(self.frame_bytes + self.line_bytes)?;
        match self.at {
            At::Data => self.data.get_or_insert_default().extend_from_slice(bytes),
            At::Other | At::Comment => {}
            At::Head | At::LineStart | At::Mark(_) => {
                let mut head = std::mem::take(&mut self.head);
                let known = if head.is_empty() {
                    self.know_line(bytes)
                } else {
                    head.extend_from_slice(bytes);
                    self.know_line(&head)
                };
                match known {
                    At::Head if head.is_empty() => head.extend_from_slice(bytes),
                    At::Head => {}
                    _ => head.clear(),
                }
                self.at = known;
                self.head = head;
            }
        }
        Ok(())
    }

    /// Decides what an unfinished line is, as far as its start shows; the start of a data value is taken.
    fn know_line(&mut self, head: &[u8]) -> At {
        const LONGEST_NAME: usize = b"event:".len();
        if head.first() == Some(&b':') {
            return At::Comment;
        }
        if head.len() < LONGEST_NAME {
            return At::Head;
        }
        match split(head) {
            (Field::Data, value) => {
                self.data_line().extend_from_slice(&head[value..]);
                At::Data
            }
            (Field::Event | Field::Id, _) => At::Head,
            _ => At::Other,
        }
    }

    fn dispatch(&mut self) -> Result<Option<Frame>, SseError> {
        let Some(mut text) = self.data.take() else {
            self.close();
            return Ok(None);
        };
        let data = text.len();
        text.reserve_exact(self.event.len() + self.id.len());
        text.extend_from_slice(&self.event);
        let event = text.len();
        text.extend_from_slice(&self.id);
        self.close();
        Frame::new(text, data, event).map(Some)
    }

    /// Forgets the open frame; what a giant field took is given back.
    fn close(&mut self) {
        const KEPT: usize = 4096;
        self.at = At::LineStart;
        self.frame_bytes = 0;
        self.line_bytes = 0;
        self.data = None;
        for field in [&mut self.head, &mut self.event, &mut self.id] {
            field.clear();
            if field.capacity() > KEPT {
                *field = Vec::new();
            }
        }
    }

    fn bound(&self, bytes: usize) -> Result<(), SseError> {
        if bytes > self.limit {
            return Err(SseError::FrameTooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn line_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = memchr::memchr2(b'\n', b'\r', bytes);
        #[cfg(test)]
        {
            self.scanned += end.unwrap_or(bytes.len());
        }
        end
    }

    /// What follows the line end at the front of `bytes`.
    fn after_line_end<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        match bytes {
            [b'\r', b'\n', rest @ ..] => rest,
            [b'\r'] => {
                self.skip_lf = true;
                &[]
            }
            [_, rest @ ..] => rest,
            [] => &[],
        }
    }
}

/// Where the fields of a frame lie in the input.
#[derive(Default)]
struct Spans {
    data: Option<Range<usize>>,
    event: Range<usize>,
    id: Range<usize>,
    counted: usize,
}

impl Spans {
    /// Takes one line; refuses a further `data` line, which has to be joined.
    fn take(&mut self, bytes: &[u8], line: Range<usize>) -> bool {
        let (field, value) = split(&bytes[line.clone()]);
        let value = line.start + value..line.end;
        match field {
            Field::Data if self.data.is_some() => return false,
            Field::Data => self.data = Some(value),
            Field::Event => self.event = value,
            Field::Id if memchr::memchr(0, &bytes[value.clone()]).is_none() => self.id = value,
            Field::Id | Field::Other => {}
            Field::Comment => return true,
        }
        self.counted += line.len() + 1;
        true
    }

    fn build(self, bytes: &[u8]) -> Result<Option<Frame>, SseError> {
        let Some(data) = self.data else {
            return Ok(None);
        };
        let (data, event, id) = (&bytes[data], &bytes[self.event], &bytes[self.id]);
        let mut text = Vec::with_capacity(data.len() + event.len() + id.len());
        text.extend_from_slice(data);
        text.extend_from_slice(event);
        text.extend_from_slice(id);
        Frame::new(text, data.len(), data.len() + event.len()).map(Some)
    }
}

fn replace(field: &mut Vec<u8>, value: &[u8]) {
    field.clear();
    field.extend_from_slice(value);
}

/// The field of a line and where its value starts.
fn split(line: &[u8]) -> (Field, usize) {
    let (field, name) = match line.first() {
        Some(b'd') if line.starts_with(b"data") => (Field::Data, 4),
        Some(b'e') if line.starts_with(b"event") => (Field::Event, 5),
        Some(b'i') if line.starts_with(b"id") => (Field::Id, 2),
        Some(b':') => return (Field::Comment, line.len()),
        _ => return (Field::Other, line.len()),
    };
    match &line[name..] {
        [] => (field, name),
        [b':', b' ', ..] => (field, name + 2),
        [b':', ..] => (field, name + 1),
        _ => (Field::Other, line.len()),
    }
}

/// What ends a [`Frames`] stream early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The body failed.
    #[error("the body of the stream failed")]
    Body(#[source] E),
    /// The body is not a stream of events within the limits.
    #[error(transparent)]
    Frame(#[from] SseError),
}

/// The frames of a body. It ends after the first error; a partial frame at the end of the body is dropped.
#[derive(Debug)]
pub struct Frames<S> {
    body: S,
    decoder: Decoder,
    chunk: Bytes,
    ended: bool,
}

impl<S> Frames<S> {
    /// The frames of `body`, read by `decoder`.
    pub fn new(body: S, decoder: Decoder) -> Self {
        Self {
            body,
            decoder,
            chunk: Bytes::new(),
            ended: false,
        }
    }

    /// Whether the body ended (or stands) inside a frame.
    pub fn is_mid_frame(&self) -> bool {
        self.decoder.is_mid_frame()
    }
}

impl<S, E> Stream for Frames<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Frame, ReadError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while !this.ended {
            let mut input = &this.chunk[..];
            let frame = this.decoder.next(&mut input);
            let used = this.chunk.len() - input.len();
            this.chunk.advance(used);
            match frame {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => this.chunk = Bytes::new(),
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
            match ready!(Pin::new(&mut this.body).poll_next(context)) {
                Some(Ok(chunk)) => this.chunk = chunk,
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(ReadError::Body(error))));
                }
                None => this.ended = true,
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(event_bytes: usize, events: usize, chunk: usize) -> f64 {
        let frame = format!("data: {}\n\n", "y".repeat(event_bytes));
        let body = frame.repeat(events);
        let mut decoder = Decoder::default();
        let mut found = 0;
        for mut input in body.as_bytes().chunks(chunk) {
            while decoder.next(&mut input).unwrap().is_some() {
                found += 1;
            }
        }
        assert_eq!(found, events);
        decoder.scanned as f64 / body.len() as f64
    }

    #[test]
    fn every_byte_is_looked_at_once_however_large_the_event() {
        for (event_bytes, events) in [(240, 400), (2048, 100), (1 << 20, 2)] {
            for chunk in [7, 1400, 16384, 1 << 22] {
                let share = scanned(event_bytes, events, chunk);
                assert!(share <= 1.0, "{event_bytes} in {chunk}: {share}");
            }
        }
    }
}
