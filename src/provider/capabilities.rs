//! Reading the capability document of a deployment (wire protocol, 6).

use serde_json::Value;

use crate::contract::routes;
use crate::contract::types::DeploymentDocument;
use crate::contract::{from_value, strict};
use crate::sandbox::{Error, Inner};
use crate::transport;
use crate::transport::envelope::payload;

/// The document as it came, and as a type.
pub(crate) struct Document {
    pub value: Value,
    pub typed: DeploymentDocument,
}

/// Reads the document; `None` when the deployment predates it or writes a newer one.
pub(crate) async fn read(inner: &Inner) -> Result<Option<Document>, Error> {
    let call = inner.call(&routes::CAPABILITIES);
    let body = match inner.transport.bytes(call).await {
        Ok(body) => body,
        Err(transport::Error::NotFound { .. } | transport::Error::NotSupported { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    parse(payload(&body, routes::CAPABILITIES.answer))
}

/// A document of schema 1 has every group, and a flag is a boolean or absent; a newer one cannot be read, and anything
/// else is malformed.
fn parse(body: &[u8]) -> Result<Option<Document>, Error> {
    let malformed = |rule: String| Error::protocol("capabilities", rule);
    let value = strict::parse(body).map_err(|refused| malformed(refused.to_string()))?;
    if value
        .get("schema")
        .and_then(Value::as_f64)
        .is_some_and(|schema| schema > 1.0 && schema.fract() == 0.0)
    {
        return Ok(None);
    }
    let typed: DeploymentDocument =
        from_value(value.clone()).map_err(|refused| malformed(refused.to_string()))?;
    Ok(Some(Document { value, typed }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "schema": 1, "agentInterface": "1", "sidecarVersion": "1", "image": "i@sha256:0",
            "dispatch": { "runControlRef": true, "executionIdOnAdmission": true },
            "cancel": { "canonicalRunCancellation": true, "digestBound": true, "idempotent": true },
            "runs": { "executionScopedStatus": true, "eventReplay": true },
            "interactions": {},
        })
    }

    fn read(value: &Value) -> &'static str {
        match parse(value.to_string().as_bytes()) {
            Ok(Some(_)) => "read",
            Ok(None) => "none",
            Err(_) => "malformed",
        }
    }

    #[test]
    fn wire_6_1_a_newer_schema_is_none_and_a_partial_document_is_malformed() {
        assert_eq!(read(&whole()), "read");
        for (change, verdict) in [
            (json!({ "schema": 2 }), "none"),
            (json!({ "schema": u64::MAX }), "none"),
            (json!({ "schema": "1" }), "malformed"),
            (json!({ "schema": 0 }), "malformed"),
            (json!({ "schema": 1.5 }), "malformed"),
            (json!({ "cancel": null }), "malformed"),
        ] {
            let mut document = whole();
            for (key, value) in change.as_object().unwrap() {
                document[key] = value.clone();
            }
            assert_eq!(read(&document), verdict, "{change}");
        }
        for group in [
            "schema",
            "cancel",
            "dispatch",
            "runs",
            "interactions",
            "image",
        ] {
            let mut document = whole();
            document.as_object_mut().unwrap().remove(group);
            assert_eq!(read(&document), "malformed", "without {group}");
        }
    }

    #[test]
    fn wire_6_2_an_absent_flag_is_not_set_and_the_document_stays_whole() {
        for (group, flag) in [
            ("dispatch", "runControlRef"),
            ("cancel", "digestBound"),
            ("runs", "eventReplay"),
        ] {
            let mut document = whole();
            document[group].as_object_mut().unwrap().remove(flag);
            let read = parse(document.to_string().as_bytes()).unwrap().unwrap();
            assert_eq!(read.value, document);
            let typed = serde_json::to_value(&read.typed).unwrap();
            assert_eq!(typed, document);
        }
        let mut document = whole();
        document["cancel"]["digestBound"] = Value::Null;
        assert_eq!(read(&document), "malformed");
    }

    #[test]
    fn wire_6_3_a_flag_that_is_no_boolean_is_malformed() {
        let mut document = whole();
        document["interactions"]["responseDedupe"] = json!("true");
        assert_eq!(read(&document), "malformed");
    }

    #[test]
    fn unknown_groups_and_flags_are_kept() {
        let mut document = whole();
        document["novelty"] = json!({ "x": 1 });
        document["runs"]["novelty"] = json!(true);
        let read = parse(document.to_string().as_bytes()).unwrap().unwrap();
        assert_eq!(read.typed.extra["novelty"], json!({ "x": 1 }));
        assert_eq!(read.value, document);
    }
}
