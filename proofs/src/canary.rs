//! Markers that must not be seen, and the forms in which they would be.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// One marker passes for a name, the other has what encodings change.
pub const MARKERS: [&str; 2] = ["cnry7Qm4Zt9Wx2Kd", "cnry/7Q+m4 Zt%9é😀Wx"];

/// What a leak of `marker` would look like in small letters: raw or a good part of it, percent-encoded, base64 at any offset, hexadecimal,
/// escaped.
pub fn forms(marker: &str) -> Vec<String> {
    let half = marker.floor_char_boundary(9);
    let mut forms = vec![
        marker.to_owned(),
        marker[..half].to_owned(),
        marker[half..].to_owned(),
        marker.escape_debug().to_string(),
        marker.escape_unicode().to_string(),
        escaped_json(marker),
        hex(marker, ""),
        hex(marker, "%"),
        percent(marker),
        percent(marker).replace("%20", "+"),
    ];
    for before in ["", "x", "xx"] {
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(format!("{before}{marker}"));
            // The first and last groups depend on what stands beside the marker.
            let inner =
                &text[if before.is_empty() { 0 } else { 4 }..text.len() - text.len() % 4 - 4];
            forms.push(inner.to_owned());
        }
    }
    for form in &mut forms {
        *form = form.to_lowercase();
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The first form of a marker that `text` shows, in letters of any case.
pub fn leak<'f>(forms: &'f [String], text: &str) -> Option<&'f str> {
    let text = text.to_lowercase();
    forms
        .iter()
        .map(String::as_str)
        .find(|form| text.contains(form))
}

fn hex(text: &str, before: &str) -> String {
    text.bytes()
        .map(|byte| format!("{before}{byte:02x}"))
        .collect()
}

fn percent(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn escaped_json(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}
