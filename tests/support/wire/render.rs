//! One message as a snapshot: its exact bytes, then its readable form.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::message::Message;
use super::forms::Forms;

/// Both forms under their titles; `title` goes before them when a snapshot holds two messages.
pub fn message(message: &Message, title: &str, forms: &Forms) -> String {
    let bytes = visible(&(head(message, forms) + &body(message, forms, false)));
    format!(
        "--- {title}bytes\n{bytes}\n--- {title}readable\n{}",
        readable(message, forms)
    )
}

/// One event of a stream.
pub fn event(frame: &str, forms: &Forms) -> String {
    let bytes = visible(&forms.apply(frame, false));
    let json = data(frame).map_or_else(String::new, |data| pretty(&forms.apply(data, true)));
    format!("--- bytes\n{bytes}\n--- readable\n{json}")
}

/// The frames of a stream; each ends with an empty line.
pub fn frames(body: &str) -> Vec<&str> {
    body.split_inclusive("\n\n").collect()
}

/// The value of a field of a frame that has it once.
pub fn field<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    frame
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The data of a frame.
pub fn data(frame: &str) -> Option<&str> {
    field(frame, "data")
}

/// True for a comment, which the server sends when nothing else was sent for a while.
pub fn is_comment(frame: &str) -> bool {
    frame.starts_with(':')
}

/// The head with the values of this run replaced.
fn head(message: &Message, forms: &Forms) -> String {
    let mut head = format!("{}\r\n", forms.apply(message.line(), false));
    for (name, value) in message.headers() {
        let value = match name {
            "authorization" => forms.bearer(value).to_owned(),
            "content-length" => content_length(message, value, forms),
            "date" => date(value),
            "x-request-id" => request_id(value),
            _ => forms.apply(value, false),
        };
        let _ = write!(head, "{name}: {value}\r\n"); // a String takes everything
    }
    head + "\r\n"
}

/// The length that is true, and that differs from run to run only with a body that does.
fn content_length(message: &Message, value: &str, forms: &Forms) -> String {
    assert!(message.whole, "the body is not whole: {}", message.line());
    assert_eq!(
        value,
        message.body.len().to_string(),
        "the length is the body's"
    );
    match body(message, forms, false) == message.text() {
        true => value.to_owned(),
        false => "[length]".to_owned(),
    }
}

fn date(value: &str) -> String {
    let form =
        "^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \\d\\d [A-Z][a-z]{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT$";
    let form = regress::Regex::new(form).unwrap();
    assert!(form.find(value).is_some(), "another form of date: {value}");
    "[date]".to_owned()
}

fn request_id(value: &str) -> String {
    let form = regress::Regex::new("^req_[a-z2-7]{26}$").unwrap();
    assert!(
        form.find(value).is_some(),
        "another form of request id: {value}"
    );
    "[request]".to_owned()
}

/// The body with the values of this run replaced. Comments of a stream come when they come, and are left out.
fn body(message: &Message, forms: &Forms, quoted: bool) -> String {
    let text = message.text();
    let text: String = match message.is_stream() {
        true => frames(text)
            .into_iter()
            .filter(|frame| !is_comment(frame))
            .collect(),
        false => text.to_owned(),
    };
    forms.apply(&text, quoted)
}

fn readable(message: &Message, forms: &Forms) -> String {
    let line = forms.apply(message.line(), false);
    let line = line
        .trim_start_matches("HTTP/1.1 ")
        .trim_end_matches(" HTTP/1.1");
    let body = body(message, forms, true);
    match (body.as_str(), message.is_stream()) {
        ("", _) => line.to_owned(),
        (stream, true) => format!("{line}\n{}", lines(stream)),
        (json, false) => format!("{line}\n{}", pretty(json)),
    }
}

/// A line a frame: its id, its type, its data.
fn lines(stream: &str) -> String {
    let line = |frame: &&str| {
        let part = |name| field(frame, name).unwrap_or("-");
        format!("{:>3} {:<21} {}", part("id"), part("event"), part("data"))
    };
    frames(stream)
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn pretty(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    format!("{value:#}")
}

/// Line ends stay line ends; every character that cannot be seen, and the backslash, is written out.
fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '\n' => seen.push_str("\\n\n"),
            '\r' => seen.push_str("\\r"),
            '\\' => seen.push_str("\\\\"),
            _ if character.is_control() => seen.extend(character.escape_default()),
            _ => seen.push(character),
        }
    }
    seen
}
