//! The tokens of strict JSON: white space, punctuation, words, strings.

use super::super::check::Refused;
use super::super::limits::MAX_STRICT_DEPTH;
use super::super::text::plain_prefix;
use super::build::Word;
use super::number;
use serde_json::Number;

/// Why a document is refused. The byte offset of a syntax error is that of the text.
pub(super) enum Fault {
    Syntax(usize),
    Trailing(usize),
    LoneSurrogate,
    NotFinite,
    TooDeep,
    RepeatedKey,
}

impl Fault {
    pub(super) fn at(self, path: String) -> Refused {
        match self {
            Self::Syntax(byte) => Refused::new(path, format!("must be JSON (byte {byte})")),
            Self::Trailing(byte) => {
                Refused::new(path, format!("must end after one JSON value (byte {byte})"))
            }
            Self::LoneSurrogate => Refused::new(path, "text holds an unpaired surrogate"),
            Self::NotFinite => Refused::new(path, "number is too large for a double"),
            Self::TooDeep => Refused::new(
                path,
                format!("is nested more than {MAX_STRICT_DEPTH} levels deep"),
            ),
            Self::RepeatedKey => Refused::new(path, "key is repeated"),
        }
    }
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next after white space.
    pub(super) fn take_after_white_space(&mut self, byte: u8) -> bool {
        self.skip_white_space();
        let next = self.peek() == Some(byte);
        if next {
            self.at += 1;
        }
        next
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.skip_white_space();
        if self.at < self.text.len() {
            return Err(Fault::Trailing(self.at));
        }
        Ok(())
    }

    pub(super) fn word(&mut self) -> Result<Word, Fault> {
        for (text, word) in [
            ("null", Word::Null),
            ("true", Word::True),
            ("false", Word::False),
        ] {
            if self.text.as_bytes()[self.at..].starts_with(text.as_bytes()) {
                self.at += text.len();
                return Ok(word);
            }
        }
        Err(self.syntax())
    }

    pub(super) fn number(&mut self) -> Result<Number, Fault> {
        let rest = &self.text[self.at..];
        let length = number::literal(rest.as_bytes()).map_err(|at| Fault::Syntax(self.at + at))?;
        self.at += length;
        number::read(&rest[..length]).ok_or(Fault::NotFinite)
    }

    /// Reads a string from its opening quote.
    pub(super) fn string(&mut self) -> Result<String, Fault> {
        self.expect(b'"')?;
        let plain = self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(plain.to_owned());
        }
        let mut out = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                // A control character, or the end of the text.
                _ => return Err(self.syntax()),
            }
            out.push_str(self.plain());
        }
    }

    /// The characters up to a quote, an escape or a control character.
    fn plain(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let plain = &rest[..plain_prefix(rest.as_bytes())];
        self.at += plain.len();
        plain
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let Some(kind) = self.peek() else {
            return Err(self.syntax());
        };
        let plain = match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.syntax()),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Reads `uXXXX`, and the second half of a surrogate pair behind a first one.
    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.unit()?;
        if let Some(plain) = char::from_u32(first) {
            return Ok(plain);
        }
        let paired = first < 0xDC00 && self.text.as_bytes()[self.at..].starts_with(b"\\u");
        if !paired {
            return Err(Fault::LoneSurrogate);
        }
        self.at += 1;
        let second = self.unit()?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(Fault::LoneSurrogate);
        }
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        char::from_u32(code).ok_or(Fault::LoneSurrogate)
    }

    /// Reads `uXXXX` as one UTF-16 code unit.
    fn unit(&mut self) -> Result<u32, Fault> {
        self.expect(b'u')?;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.syntax());
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn syntax(&self) -> Fault {
        Fault::Syntax(self.at)
    }
}
