//! The push-style decoder: a state machine over lines that may be cut anywhere.

use std::ops::Range;

use super::{Frame, MAX_FRAME_BYTES, SseError};

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
            if bytes[at] == b':' {
                self.bound(length + 1)?;
            } else if !spans.take(bytes, at..at + length) {
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
        if field == Field::Comment {
            return self.bound(length);
        }
        self.frame_bytes += length;
        self.bound(self.frame_bytes)
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
        if self.at == At::LineStart && bytes.first() == Some(&b':') {
            self.at = At::Comment;
        }
        match self.at {
            At::Comment => self.bound(self.line_bytes)?,
            _ => self.bound(self.frame_bytes + self.line_bytes)?,
        }
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
    /// Takes one line that is no comment; refuses a further `data` line, which has to be joined.
    fn take(&mut self, bytes: &[u8], line: Range<usize>) -> bool {
        let (field, value) = split(&bytes[line.clone()]);
        let value = line.start + value..line.end;
        match field {
            Field::Data if self.data.is_some() => return false,
            Field::Data => self.data = Some(value),
            Field::Event => self.event = value,
            Field::Id if memchr::memchr(0, &bytes[value.clone()]).is_none() => self.id = value,
            Field::Id | Field::Other | Field::Comment => {}
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
