//! Documents through the generated types: from JSON to a type and back.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tangle_sandbox::contract::secret;

include!(concat!(env!("OUT_DIR"), "/trips.rs"));

/// Takes a document that its check has accepted through its type.
pub type Trip = fn(&Value) -> Result<Taken, String>;

/// What became of a document.
#[derive(Debug)]
pub struct Taken {
    /// The type as JSON, secrets as they are: what goes into a request body.
    pub body: Value,
    /// The type as JSON anywhere else.
    pub elsewhere: Value,
    /// What `{:?}` and `{:#?}` print.
    pub debug: String,
}

/// The trip through the generated type `name`; none where the schema has a type by hand instead.
pub fn of(name: &str) -> Option<Trip> {
    ALL.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, trip)| *trip)
}

fn trip<T: DeserializeOwned + Serialize + Debug>(document: &Value) -> Result<Taken, String> {
    let typed: T = serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
    let write = || serde_json::to_value(&typed).map_err(|error| error.to_string());
    Ok(Taken {
        body: secret::in_body(write)?,
        elsewhere: write()?,
        debug: format!("{typed:?}\n{typed:#?}"),
    })
}
