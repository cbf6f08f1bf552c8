//! What a terminal frame and a result record keep of themselves (provider runtime, 9.4).

use serde_json::{Map, Value};

use crate::contract::check::Refused;
use crate::contract::types::Identifier;

use super::Refusal;

const HISTORY: &str = "toolInvocations";
const APPROVAL: &str = "approval";
const TOOL: &str = "toolName";

/// Whether a frame of this type ends a run: it is published as a summary, and has no canonical form.
pub fn is_terminal(kind: &str) -> bool {
    matches!(kind, "result" | "done")
}

/// The summary of a terminal record: all of it without the tool history, which may be of any size and stays with the
/// service. The approval that the record waits for is kept as `approval` where only the history names it.
///
/// Inferred, since no source tells the shape: an approval is stated by the record's member `approval`, and by that of a
/// call in the history that has no result yet. Each is an object with an `id` and perhaps a `toolName`.
///
/// # Errors
///
/// `frame-shape` for an approval that is no object, `identifier` for an id or a name that is none, `alias-conflict` where
/// two of them differ.
pub fn project_terminal(mut record: Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let told = Approval::read(record.get(APPROVAL), "", None)?;
    let history = record.remove(HISTORY);
    let mut waited: Option<Approval> = told.clone();
    let calls = history.as_ref().and_then(Value::as_array);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        if call.get("result").is_some() {
            continue;
        }
        let path = format!("/{HISTORY}/{index}");
        let Some(approval) = Approval::read(call.get(APPROVAL), &path, call.get(TOOL))? else {
            continue;
        };
        waited = match waited {
            None => Some(approval),
            Some(waited) => Some(waited.with(approval).ok_or_else(|| {
                let path = format!("{path}/{APPROVAL}");
                Refusal::AliasConflict { path }
            })?),
        };
    }
    if let (None, Some(waited)) = (told, waited) {
        record.insert(APPROVAL.to_owned(), waited.into_value());
    }
    Ok(record)
}

/// Which approval a record waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Approval {
    id: Identifier,
    tool: Option<Identifier>,
}

impl Approval {
    /// Reads what the member `approval` of the object at `path` states; `tool` is the name of the call around it.
    fn read(
        stated: Option<&Value>,
        path: &str,
        tool: Option<&Value>,
    ) -> Result<Option<Self>, Refusal> {
        let stated = match stated {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(stated)) => stated,
            Some(_) => {
                let path = format!("{path}/{APPROVAL}");
                return Err(Refusal::FrameShape(Refused::new(path, "must be an object")));
            }
        };
        let invalid = |key| Refusal::Identifier {
            path: format!("{path}/{APPROVAL}/{key}"),
        };
        let id = identifier(stated.get("id")).ok_or_else(|| invalid("id"))?;
        let tool = match stated.get(TOOL) {
            None | Some(Value::Null) => identifier(tool),
            named => Some(identifier(named).ok_or_else(|| invalid(TOOL))?),
        };
        Ok(Some(Self { id, tool }))
    }

    /// Both as one, unless they differ. Either may leave the tool to the other.
    fn with(self, other: Self) -> Option<Self> {
        let agrees = match (&self.tool, &other.tool) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        };
        (agrees && self.id == other.id).then(|| Self {
            tool: self.tool.or(other.tool),
            ..other
        })
    }

    fn into_value(self) -> Value {
        let mut approval = Map::new();
        approval.insert("id".to_owned(), self.id.as_str().into());
        if let Some(tool) = self.tool {
            approval.insert(TOOL.to_owned(), tool.as_str().into());
        }
        approval.into()
    }
}

fn identifier(value: Option<&Value>) -> Option<Identifier> {
    Identifier::new(value?.as_str()?).ok()
}
