//! The parts of a turn as one text (core contracts, 8.1).

use crate::contract::types::{BoundedText, TurnPart};

/// The parts as one text, for where nothing else is taken: the texts with a blank line between them, then a list of what is
/// attached.
///
/// ```
/// use tangle_sandbox::contract::turn;
///
/// let input = turn::read(serde_json::json!({ "parts": [
///     { "type": "text", "text": "look" },
///     { "type": "image", "path": "a.png" },
///     { "type": "file" },
/// ] }))?;
/// let text = turn::text_of(input.parts.as_deref().unwrap_or_default());
/// assert_eq!(text, "look\n\nAttached files:\n[Image: a.png]\n[File: file attachment]");
/// # Ok::<(), turn::Refusal>(())
/// ```
pub fn text_of(parts: &[TurnPart]) -> String {
    let mut blocks = Vec::new();
    let mut attached = Vec::new();
    for part in parts {
        match part {
            TurnPart::Text { text } => blocks.push(text.to_string()),
            TurnPart::Image {
                filename,
                path,
                url,
                ..
            } => attached.push(format!(
                "[Image: {}]",
                label([path, filename, url], "image attachment")
            )),
            TurnPart::File {
                filename,
                path,
                url,
                ..
            } => attached.push(format!(
                "[File: {}]",
                label([path, filename, url], "file attachment")
            )),
        }
    }
    if !attached.is_empty() {
        blocks.push(format!("Attached files:\n{}", attached.join("\n")));
    }
    blocks.join("\n\n")
}

/// The first name that is there and says something.
fn label<'a>(names: [&'a Option<BoundedText>; 3], otherwise: &'a str) -> &'a str {
    names
        .into_iter()
        .flatten()
        .map(BoundedText::as_str)
        .find(|name| !name.is_empty())
        .unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(parts: serde_json::Value) -> String {
        let turn = crate::contract::turn::read(json!({ "parts": parts })).unwrap();
        text_of(&turn.parts.unwrap())
    }

    #[test]
    fn core_8_1_texts_stand_apart_and_attachments_are_listed_behind_them() {
        assert_eq!(text(json!([])), "");
        assert_eq!(
            text(json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }])),
            "a\n\nb"
        );
        let mixed = json!([
            { "type": "file", "filename": "f", "path": "p", "url": "u" },
            { "type": "text", "text": "a" },
            { "type": "image", "filename": "i", "url": "u" },
            { "type": "image", "url": "u" },
            { "type": "image" },
        ]);
        assert_eq!(
            text(mixed),
            "a\n\nAttached files:\n[File: p]\n[Image: i]\n[Image: u]\n[Image: image attachment]"
        );
    }
}
