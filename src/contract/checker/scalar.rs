//! The rules of a text and of a number.

use serde_json::Value;

use super::walk::Fault;
use super::{Json, Kind, Node, Rule, Time, Units, time};
use crate::contract::strict::MAX_SAFE_INTEGER;
use crate::contract::{bounds, text};

/// What `kind` refuses in `value`.
pub(super) fn kind(kind: Kind, value: &Value) -> Result<(), Fault> {
    let fits = match kind {
        Kind::Any => true,
        Kind::Null => value.is_null(),
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::String => value.is_string(),
        Kind::Boolean => value.is_boolean(),
        Kind::Number => value.is_number(),
        Kind::Integer => is_safe_integer(value),
    };
    if fits {
        return Ok(());
    }
    if kind == Kind::Integer
        && let Some(double) = value.as_f64()
        && double.abs() > MAX_SAFE_INTEGER as f64
    {
        return Err(match double > 0.0 {
            true => Fault::new("maximum", format!("must be at most {MAX_SAFE_INTEGER}")),
            false => Fault::new("minimum", format!("must be at least -{MAX_SAFE_INTEGER}")),
        });
    }
    Err(Fault::new("type", format!("must be {}", kind.word())))
}

/// A whole number that every party reads alike: at most 2^53 - 1 either way.
fn is_safe_integer(value: &Value) -> bool {
    value
        .as_i64()
        .is_some_and(|value| value.unsigned_abs() <= MAX_SAFE_INTEGER)
}

/// What `node` refuses in a text.
pub(super) fn text(node: &Node, value: &str) -> Result<(), Fault> {
    if let Some(also) = node.also {
        text(also, value)?;
    }
    if !node.one_of.is_empty() && !node.one_of.contains(&value) {
        return Err(Fault::new(
            "enum",
            format!("must be one of {}", node.one_of.join(", ")),
        ));
    }
    length(node, value)?;
    if let Json::Content = node.json {
        bounds::content_text("text", value).map_err(|error| Fault::bound(&error))?;
    }
    if node.trim && text::has_outer_white_space(value) {
        return Err(Fault::new(
            "x-trim",
            "must not begin or end with white space",
        ));
    }
    if let Some(pattern) = node.pattern
        && !pattern.matches(value)
    {
        return Err(Fault::new(
            "pattern",
            format!("must match {}", pattern.source),
        ));
    }
    time(node.time, value)?;
    match node.rule {
        Rule::Text(rule) => rule(value).map_err(|rule| Fault::new("x-rule", rule)),
        _ => Ok(()),
    }
}

fn length(node: &Node, value: &str) -> Result<(), Fault> {
    if node.min_length == 0 && node.max_length >= value.len() {
        // No measure of a text is larger than its bytes.
        return Ok(());
    }
    let (length, unit) = match node.units {
        Units::Characters => (value.chars().count(), "characters"),
        Units::Utf16 => (text::utf16_len(value), "UTF-16 units"),
        Units::Utf8 => (value.len(), "bytes"),
    };
    // Beyond what the standard keyword counts, the unit is what refuses.
    let keyword = |standard: &'static str, refuses: bool| match refuses {
        true => standard,
        false => "x-units",
    };
    if length < node.min_length {
        let rule = match node.min_length {
            1 => "must not be empty".to_owned(),
            least => format!("must have at least {least} {unit}"),
        };
        return Err(Fault::new("minLength", rule));
    }
    if length > node.max_length {
        let standard = value.chars().count() > node.max_length;
        return Err(Fault::new(
            keyword("maxLength", standard),
            format!("must have at most {} {unit}", node.max_length),
        ));
    }
    Ok(())
}

fn time(kind: Time, value: &str) -> Result<(), Fault> {
    let (fits, rule) = match kind {
        Time::Any => return Ok(()),
        Time::Utc => (
            time::is_utc(value),
            "must be an RFC 3339 time in UTC with Z",
        ),
        Time::Offset => (
            time::has_zone(value),
            "must be an RFC 3339 time with Z or an offset",
        ),
    };
    if fits {
        return Ok(());
    }
    Err(Fault::new("x-format", rule))
}

/// What `node` refuses in a number.
pub(super) fn number(node: &Node, value: f64) -> Result<(), Fault> {
    if let Some(also) = node.also {
        number(also, value)?;
    }
    if !value.is_finite() {
        return Err(Fault::new("type", "must be a finite number"));
    }
    if value < node.minimum {
        return Err(Fault::new(
            "minimum",
            format!("must be at least {}", node.minimum),
        ));
    }
    if value > node.maximum {
        return Err(Fault::new(
            "maximum",
            format!("must be at most {}", node.maximum),
        ));
    }
    if value <= node.above {
        return Err(Fault::new(
            "exclusiveMinimum",
            format!("must be more than {}", node.above),
        ));
    }
    Ok(())
}
