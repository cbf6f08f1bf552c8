//! One tool call, merged from its updates by the rule "absent means unchanged".

use serde_json::{Map, Value, json};

use super::size::{fit, held_bytes, text_bytes};
use super::turn::ToolInvocation;

/// Bytes of output that are kept of one call, as JSON.
const OUTPUT_LIMIT: usize = 512 << 10;
/// Bytes of a call's input, and of its metadata, that are passed on.
const JSON_LIMIT: usize = 128 << 10;
/// Bytes of output, and of input, in the result's list of tools, as JSON.
const RESULT_LIMIT: usize = 16 << 10;
/// Bytes of a tool's name or title, as JSON.
const NAME_LIMIT: usize = 1024;

/// What an update changed.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// Nothing: the agent repeated itself.
    None,
    /// Something: the part's identity with what is new.
    Some { part: Value, delta: Option<String> },
    /// The call has ended; its last frame is the whole part.
    Last { delta: Option<String> },
}

#[derive(Debug)]
pub(super) struct ToolPart {
    id: String,
    call_id: String,
    name: Option<String>,
    first_title: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    status: &'static str,
    input: Option<Value>,
    output: String,
    metadata: Map<String, Value>,
    begun: bool,
    /// True when the turn's calls held too much together: input, output and metadata are no longer kept. Increments are
    /// passed on, and the last frame has the output if the last update brings it.
    cut: bool,
}

impl ToolPart {
    pub(super) fn new(id: String, call_id: String) -> Self {
        Self {
            id,
            call_id,
            name: None,
            first_title: None,
            title: None,
            kind: None,
            status: "pending",
            input: None,
            output: String::new(),
            metadata: Map::new(),
            begun: false,
            cut: false,
        }
    }

    pub(super) fn merge(&mut self, update: &Map<String, Value>) -> Change {
        let (tool, status) = (self.tool().to_owned(), self.status);
        self.take_names(update);
        let titled = replace(&mut self.title, text(update, "title"));
        let called = self.take_input(update);
        let described = self.take_metadata(update);
        let delta = self.take_output(update);
        if let Some(status) = update.get("status").and_then(Value::as_str) {
            self.status = run_stream_status(status);
        }
        if self.ended() {
            return Change::Last { delta };
        }
        let fresh = !std::mem::replace(&mut self.begun, true);
        let renamed = tool != self.tool();
        if !(fresh
            || titled
            || called
            || described
            || renamed
            || status != self.status
            || delta.is_some())
        {
            return Change::None;
        }
        let mut state = Map::from_iter([("status".to_owned(), Value::from(self.status))]);
        if titled && let Some(title) = &self.title {
            state.insert("title".to_owned(), title.clone().into());
        }
        if called && let Some(input) = &self.input {
            state.insert("input".to_owned(), input.clone());
        }
        Change::Some {
            part: self.identity(state),
            delta,
        }
    }

    /// The call ends because its turn does.
    pub(super) fn interrupt(&mut self) {
        self.status = "error";
        if self.output.is_empty() {
            "the turn ended before the tool did".clone_into(&mut self.output);
        }
    }

    /// Bytes that the part holds in memory beside its ids.
    pub(super) fn held(&self) -> usize {
        let names = [&self.name, &self.first_title, &self.title, &self.kind];
        let names: usize = names.into_iter().flatten().map(String::len).sum();
        let metadata = self.metadata.iter();
        let metadata: usize = metadata
            .map(|(name, value)| name.len() + held_bytes(value))
            .sum();
        names + self.output.len() + self.input.as_ref().map_or(0, held_bytes) + metadata
    }

    /// Lets go of everything that is not needed to tell the call from others, and says so in the metadata.
    pub(super) fn let_go(&mut self) {
        self.cut = true;
        self.name = Some(self.tool().to_owned());
        (self.first_title, self.title) = (None, None);
        let held = [
            ("truncated", !self.metadata.is_empty()),
            ("inputTruncated", self.input.take().is_some()),
            (
                "outputTruncated",
                !std::mem::take(&mut self.output).is_empty(),
            ),
        ];
        let marks = held.into_iter().filter(|(_, held)| *held);
        self.metadata = marks
            .map(|(mark, _)| (mark.to_owned(), true.into()))
            .collect();
    }

    /// The part's identity while it goes on.
    pub(super) fn running(&self) -> Value {
        self.identity(Map::from_iter([("status".to_owned(), "running".into())]))
    }

    /// The part with everything that is known.
    pub(super) fn whole(&self) -> Value {
        let mut state = Map::new();
        state.insert("status".to_owned(), self.status.into());
        state.insert(
            "input".to_owned(),
            self.input.clone().unwrap_or_else(|| json!({})),
        );
        state.insert("output".to_owned(), self.output.clone().into());
        if self.status == "error" {
            state.insert("error".to_owned(), fit(&self.output, RESULT_LIMIT).into());
        }
        if let Some(title) = &self.title {
            state.insert("title".to_owned(), title.clone().into());
        }
        state.insert("metadata".to_owned(), Value::Object(self.metadata.clone()));
        self.identity(state)
    }

    pub(super) fn invocation(&self) -> ToolInvocation {
        let input = self.input.as_ref();
        let small = input.filter(|input| text_bytes(input) <= RESULT_LIMIT);
        let result = fit(&self.output, RESULT_LIMIT);
        let marks = ["inputTruncated", "outputTruncated"];
        ToolInvocation {
            tool_name: self.tool().to_owned(),
            call_id: self.call_id.clone(),
            status: self.status.to_owned(),
            input: small.cloned(),
            result: (!result.is_empty()).then(|| result.to_owned()),
            truncated: input.is_some() != small.is_some()
                || result.len() < self.output.len()
                || marks.iter().any(|mark| self.metadata.contains_key(*mark)),
        }
    }

    fn identity(&self, state: Map<String, Value>) -> Value {
        json!({ "id": self.id, "type": "tool", "tool": self.tool(), "callID": self.call_id, "state": state })
    }

    /// The name where the agent gives one, else the title that it began with, else the kind.
    fn tool(&self) -> &str {
        let known = self
            .name
            .as_deref()
            .or(self.first_title.as_deref())
            .or(self.kind.as_deref());
        known.unwrap_or("tool")
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self.status, "completed" | "error")
    }

    fn take_names(&mut self, update: &Map<String, Value>) {
        replace(&mut self.name, text(update, "name"));
        replace(&mut self.kind, text(update, "kind"));
        // Only a `tool_call` begins with the tool's name; the title of an update is already about this one call.
        if update.get("sessionUpdate").and_then(Value::as_str) == Some("tool_call")
            && self.first_title.is_none()
        {
            self.first_title = text(update, "title");
        }
    }

    fn take_input(&mut self, update: &Map<String, Value>) -> bool {
        let Some(input) = update.get("rawInput").filter(|input| !input.is_null()) else {
            return false;
        };
        if self.cut || text_bytes(input) > JSON_LIMIT {
            self.metadata
                .insert("inputTruncated".to_owned(), true.into());
            return false;
        }
        replace(&mut self.input, Some(input.clone()))
    }

    fn take_metadata(&mut self, update: &Map<String, Value>) -> bool {
        if self.cut {
            return false;
        }
        let before = self.metadata.clone();
        for name in ["kind", "locations", "_meta"] {
            if let Some(value) = update.get(name).filter(|value| !value.is_null()) {
                self.metadata.insert(name.to_owned(), value.clone());
            }
        }
        let raw_output = update.get("rawOutput");
        let native = raw_output.and_then(|output| output.get("metadata"));
        let exit = native
            .and_then(|native| native.get("exit"))
            .or(raw_output.and_then(|output| output.get("exitCode")));
        if let Some(exit) = exit {
            self.metadata.insert("exitCode".to_owned(), exit.clone());
        }
        let diffs: Vec<Value> = contents(update, "diff").map(diff).collect();
        if !diffs.is_empty() {
            self.metadata.insert("diffs".to_owned(), diffs.into());
        }
        if text_bytes(&self.metadata) > JSON_LIMIT {
            self.metadata = Map::from_iter([("truncated".to_owned(), true.into())]);
        }
        before != self.metadata
    }

    /// Takes the output over and returns its increment, when it only grew.
    fn take_output(&mut self, update: &Map<String, Value>) -> Option<String> {
        let streamed = update
            .get("_meta")
            .and_then(|meta| meta.get("terminal_output_delta"))
            .and_then(|delta| delta.get("data"))
            .and_then(Value::as_str);
        let whole = output_of(update);
        let mut output = match (whole, streamed) {
            (whole, streamed) if self.cut => {
                return self.take_last_output(update, whole, streamed);
            }
            (Some(output), _) => output,
            (None, Some(data)) => format!("{}{data}", self.output),
            (None, None) => return None,
        };
        self.shorten(&mut output);
        let grown = output.strip_prefix(&*self.output);
        let delta = grown.filter(|new| !new.is_empty()).map(str::to_owned);
        self.output = output;
        delta
    }

    /// The same once outputs are no longer kept.
    fn take_last_output(
        &mut self,
        update: &Map<String, Value>,
        whole: Option<String>,
        streamed: Option<&str>,
    ) -> Option<String> {
        let status = update.get("status").and_then(Value::as_str);
        let Some(mut output) = whole else {
            self.metadata
                .insert("outputTruncated".to_owned(), true.into());
            return streamed.map(str::to_owned);
        };
        if matches!(status, Some("completed" | "failed")) {
            self.metadata.remove("outputTruncated");
            self.shorten(&mut output);
            self.output = output;
        }
        None
    }

    fn shorten(&mut self, output: &mut String) {
        let kept = fit(output, OUTPUT_LIMIT).len();
        if kept < output.len() {
            output.truncate(kept);
            self.metadata
                .insert("outputTruncated".to_owned(), true.into());
        }
    }
}

fn run_stream_status(status: &str) -> &'static str {
    match status {
        "in_progress" => "running",
        "completed" => "completed",
        "failed" => "error",
        _ => "pending",
    }
}

/// The texts of `content`, else `rawOutput`.
fn output_of(update: &Map<String, Value>) -> Option<String> {
    let texts: Vec<&str> = contents(update, "content")
        .filter_map(|block| block.get("content"))
        .filter_map(|content| content.get("text").and_then(Value::as_str))
        .collect();
    if !texts.is_empty() {
        return Some(texts.join("\n"));
    }
    match update.get("rawOutput")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(output) => {
            let text = ["output", "error"]
                .iter()
                .find_map(|name| output.get(*name).and_then(Value::as_str));
            text.map(str::to_owned)
                .or_else(|| serde_json::to_string(output).ok())
        }
        other => Some(other.to_string()),
    }
}

fn contents<'a>(update: &'a Map<String, Value>, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let blocks = update
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    blocks.filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
}

fn diff(block: &Value) -> Value {
    let mut diff = Map::new();
    for name in ["path", "oldText", "newText"] {
        if let Some(value) = block.get(name) {
            diff.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(diff)
}

fn text(update: &Map<String, Value>, name: &str) -> Option<String> {
    let text = update.get(name)?.as_str().filter(|text| !text.is_empty())?;
    Some(fit(text, NAME_LIMIT).to_owned())
}

/// Takes a value over when there is one; true when that changed something.
fn replace<T: PartialEq>(held: &mut Option<T>, new: Option<T>) -> bool {
    let changed = new.is_some() && *held != new;
    if changed {
        *held = new;
    }
    changed
}

/// At most `limit` bytes of the text, cut between characters.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
