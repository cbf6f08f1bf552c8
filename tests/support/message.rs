//! One HTTP/1.1 message out of recorded bytes, without a library that would forgive what is wrong.

/// A request or an answer.
#[derive(Clone, Debug)]
pub struct Message {
    /// The first line and the headers, up to and with the empty line.
    pub head: String,
    /// The body, put together from its chunks when it came in chunks.
    pub body: Vec<u8>,
    /// False when the connection ended, or the record was read, before the whole body was there.
    pub whole: bool,
}

impl Message {
    /// The message at the beginning of `bytes` and its length; `None` when not even its head is whole. An answer is read
    /// with the method of its request.
    ///
    /// Panics at bytes that are no message.
    pub fn read(bytes: &[u8], asked: Option<&str>) -> Option<(Self, usize)> {
        let end = find(bytes, b"\r\n\r\n")? + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
        let message = Self {
            head,
            body: Vec::new(),
            whole: true,
        };
        message.check_head(asked.is_some());
        let (body, length, whole) = message.body_of(&bytes[end..], asked);
        let message = Self {
            body,
            whole,
            ..message
        };
        Some((message, end + length))
    }

    /// The first line without its end.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.line().split(' ').next().unwrap()
    }

    /// The path of a request, without its query.
    pub fn path(&self) -> &str {
        let target = self.line().split(' ').nth(1).unwrap();
        target.split('?').next().unwrap()
    }

    /// The status of an answer.
    pub fn status(&self) -> u16 {
        self.line().split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers()
            .find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The headers in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head
            .split("\r\n")
            .skip(1)
            .filter(|line| !line.is_empty())
            .map(|line| {
                line.split_once(": ")
                    .expect("a header has a name and a value")
            })
    }

    /// True when the body is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body is UTF-8")
    }

    fn check_head(&self, answer: bool) {
        let line = self.line();
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let good = match words[..] {
            ["HTTP/1.1", status, _] if answer => status.len() == 3,
            [_, target, "HTTP/1.1"] if !answer => target.starts_with('/'),
            _ => false,
        };
        assert!(good, "no first line of HTTP/1.1: {line:?}");
    }

    /// The body, its length on the wire, whether it is whole.
    fn body_of(&self, rest: &[u8], asked: Option<&str>) -> (Vec<u8>, usize, bool) {
        let empty = (Vec::new(), 0, true);
        if asked == Some("HEAD") || (asked.is_some() && matches!(self.status(), 204 | 304)) {
            return empty;
        }
        if self.header("transfer-encoding") == Some("chunked") {
            assert!(self.header("content-length").is_none(), "two lengths");
            return chunks(rest);
        }
        let Some(length) = self.header("content-length") else {
            assert!(asked.is_none(), "an answer has a length: {}", self.head);
            return empty;
        };
        let length: usize = length.parse().expect("a length is a number");
        let there = rest.len().min(length);
        (rest[..there].to_vec(), there, there == length)
    }
}

/// Puts chunks together. Each is its length in hexadecimal digits, CRLF, the bytes, CRLF; the last has the length 0.
fn chunks(bytes: &[u8]) -> (Vec<u8>, usize, bool) {
    let (mut body, mut from) = (Vec::new(), 0);
    loop {
        let Some(end) = find(&bytes[from..], b"\r\n") else {
            return (body, bytes.len(), false);
        };
        let digits =
            std::str::from_utf8(&bytes[from..from + end]).expect("a chunk's length is text");
        let length = usize::from_str_radix(digits, 16).expect("a chunk's length is hexadecimal");
        let start = from + end + 2;
        let Some(chunk) = bytes.get(start..start + length + 2) else {
            let there = bytes.len().min(start + length);
            body.extend_from_slice(bytes.get(start..there).unwrap_or_default());
            return (body, bytes.len(), false);
        };
        assert_eq!(&chunk[length..], b"\r\n", "a chunk ends with CRLF");
        body.extend_from_slice(&chunk[..length]);
        from = start + length + 2;
        if length == 0 {
            return (body, from, true);
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
