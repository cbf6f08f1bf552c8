//! The limits: constants and one table, from `x-limits`.

use std::fmt::Write as _;

use crate::bundle::Bundle;
use crate::error::SchemaError;

pub(crate) fn write(bundle: &Bundle) -> Result<String, SchemaError> {
    let Some((file, limits)) = &bundle.limits else {
        return Ok(String::new());
    };
    let (mut constants, mut rows) = (String::new(), String::new());
    for (name, limit) in limits {
        let no = |rule: &str| SchemaError::new(file, format!("/x-limits/{name}"), rule);
        let text = |key: &str| {
            limit[key]
                .as_str()
                .ok_or_else(|| no(&format!("`{key}` is missing")))
        };
        let value = limit["value"]
            .as_u64()
            .ok_or_else(|| no("`value` must be a whole number"))?;
        let (unit, doc, chapter) = (text("unit")?, text("doc")?, text("chapter")?);
        let _ = writeln!(
            constants,
            "/// {doc}\n///\n/// {value} {unit} ({chapter}).\npub const {name}: usize = {value};"
        );
        let _ = writeln!(
            rows,
            "    Limit {{ name: {name:?}, value: {value}, unit: {unit:?}, chapter: {chapter:?} }},"
        );
    }
    Ok(format!(
        "{constants}\n/// Every limit, sorted by name.\npub static TABLE: &[Limit] = &[\n{rows}];\n"
    ))
}
