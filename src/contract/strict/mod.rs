//! Strict JSON: bytes to a value, refusing what two readers could understand differently.
//!
//! Refused: bytes that are not UTF-8, repeated keys (however they are escaped), lone surrogates, numbers
//! beyond a double, more than 512 levels, anything after the value. Numbers are read as every other party
//! reads them: the nearest double, and an integer where that double is a safe integer (`1.0` is `1`, `-0` is
//! `0`). Integers of 64 bits keep their digits, so that a typed field can refuse an unsafe one.
//!
//! The parser keeps its own stack of open containers, so nesting costs memory and never the thread's stack.

mod build;
mod number;
mod scan;

use serde_json::Value;

use super::check::Refused;
use super::document::Document;
use super::limits::MAX_STRICT_DEPTH;
pub(crate) use number::{MAX_SAFE_INTEGER, safe_integer};

use build::{Build, Open, path_of};
use scan::{Fault, Scanner};

/// Reads one JSON document.
///
/// # Errors
/// [`Refused`] with the path of the place and the rule, never a value.
///
/// ```
/// use tangle_sandbox::contract::strict;
///
/// let refused = strict::parse(br#"{"a":{"b":1,"\u0062":2}}"#).unwrap_err();
/// assert_eq!(refused.to_string(), "/a/b: key is repeated");
/// ```
pub fn parse(bytes: &[u8]) -> Result<Value, Refused> {
    Parser::read(bytes)
}

/// Reads one JSON document by the rules of [`parse`] and keeps the order of its members.
///
/// # Errors
/// As [`parse`].
pub fn parse_document(bytes: &[u8]) -> Result<Document, Refused> {
    Parser::read(bytes)
}

struct Parser<'a, T: Build> {
    scanner: Scanner<'a>,
    open: Vec<Open<T>>,
}

/// What to do after a token: read the next value, or hand a finished one to its container.
enum Step<T> {
    Next,
    Done(T),
}

impl<T: Build> Parser<'_, T> {
    fn read(bytes: &[u8]) -> Result<T, Refused> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(Refused::new("", "must be UTF-8"));
        };
        let mut parser = Parser {
            scanner: Scanner::new(text),
            open: Vec::new(),
        };
        parser
            .document()
            .map_err(|fault| fault.at(path_of(&parser.open)))
    }

    fn document(&mut self) -> Result<T, Fault> {
        loop {
            let mut step = self.value()?;
            while let Step::Done(value) = step {
                let Some(container) = self.open.pop() else {
                    self.scanner.end()?;
                    return Ok(value);
                };
                step = self.attach(container, value)?;
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container.
    fn value(&mut self) -> Result<Step<T>, Fault> {
        self.scanner.skip_white_space();
        match self.scanner.peek() {
            Some(b'{') => {
                self.enter()?;
                if self.scanner.take_after_white_space(b'}') {
                    return Ok(Step::Done(T::object(T::Members::default())));
                }
                self.scanner.skip_white_space();
                let key = self.key()?;
                self.open.push(Open::Object(T::Members::default(), key));
                Ok(Step::Next)
            }
            Some(b'[') => {
                self.enter()?;
                if self.scanner.take_after_white_space(b']') {
                    return Ok(Step::Done(T::array(Vec::new())));
                }
                self.open.push(Open::Array(Vec::new()));
                Ok(Step::Next)
            }
            Some(b'"') => Ok(Step::Done(T::string(self.scanner.string()?))),
            Some(b'-' | b'0'..=b'9') => Ok(Step::Done(T::number(self.scanner.number()?))),
            _ => Ok(Step::Done(T::word(self.scanner.word()?))),
        }
    }

    fn enter(&mut self) -> Result<(), Fault> {
        if self.open.len() >= MAX_STRICT_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.scanner.advance();
        Ok(())
    }

    fn key(&mut self) -> Result<String, Fault> {
        let key = self.scanner.string()?;
        self.scanner.skip_white_space();
        self.scanner.expect(b':')?;
        Ok(key)
    }

    /// Puts a finished value into its container and reads the comma or the end behind it.
    fn attach(&mut self, container: Open<T>, value: T) -> Result<Step<T>, Fault> {
        match container {
            Open::Array(mut items) => {
                items.push(value);
                if self.scanner.take_after_white_space(b',') {
                    self.open.push(Open::Array(items));
                    return Ok(Step::Next);
                }
                self.close(b']', Open::Array(items))
            }
            Open::Object(mut members, key) => {
                if let Err(key) = T::insert(&mut members, key, value) {
                    self.open.push(Open::Object(members, key));
                    return Err(Fault::RepeatedKey);
                }
                if self.scanner.take_after_white_space(b',') {
                    self.scanner.skip_white_space();
                    let key = self.key()?;
                    self.open.push(Open::Object(members, key));
                    return Ok(Step::Next);
                }
                self.close(b'}', Open::Object(members, String::new()))
            }
        }
    }

    fn close(&mut self, end: u8, container: Open<T>) -> Result<Step<T>, Fault> {
        self.scanner.expect(end)?;
        Ok(Step::Done(match container {
            Open::Array(items) => T::array(items),
            Open::Object(members, _) => T::object(members),
        }))
    }
}

#[cfg(test)]
mod tests;
