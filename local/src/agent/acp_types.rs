//! The messages of the Agent Client Protocol that are read or written, as in `schemas/acp.json`.

use serde::{Deserialize, Serialize};

/// Names one side of the connection.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct Implementation {
    /// The program's name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Which ways of asking the client serves.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ElicitationCapability {
    /// Present when forms are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<serde_json::Value>,
}

/// File methods that the client serves.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct FileSystemCapability {
    /// `fs/read_text_file` is served.
    #[serde(
        rename = "readTextFile",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub read_text_file: Option<bool>,
    /// `fs/write_text_file` is served.
    #[serde(
        rename = "writeTextFile",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub write_text_file: Option<bool>,
}

/// What the client offers to the agent.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ClientCapabilities {
    /// Questions to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Present when plan updates are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<serde_json::Value>,
    /// File methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FileSystemCapability>,
    /// Terminal methods are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
}

/// Parameters of `initialize`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct InitializeRequest {
    /// The newest protocol version that the client speaks.
    #[serde(rename = "protocolVersion")]
    pub protocol_version: i64,
    /// What the client offers.
    #[serde(
        rename = "clientCapabilities",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub client_capabilities: Option<ClientCapabilities>,
    /// The client's name and version.
    #[serde(
        rename = "clientInfo",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub client_info: Option<Implementation>,
}

/// Session methods beside `session/new` that the agent serves.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct SessionCapabilities {
    /// Present when `session/resume` is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<serde_json::Value>,
    /// Present when `session/list` is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<serde_json::Value>,
    /// Present when `session/fork` is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<serde_json::Value>,
    /// Present when `session/close` is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close: Option<serde_json::Value>,
}

/// What the agent offers to the client.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct AgentCapabilities {
    /// `session/load` is served.
    #[serde(
        rename = "loadSession",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub load_session: Option<bool>,
    /// Other session methods.
    #[serde(
        rename = "sessionCapabilities",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub session_capabilities: Option<SessionCapabilities>,
}

/// Result of `initialize`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct InitializeResponse {
    /// The protocol version of this connection.
    #[serde(rename = "protocolVersion")]
    pub protocol_version: i64,
    /// What the agent offers.
    #[serde(
        rename = "agentCapabilities",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub agent_capabilities: Option<AgentCapabilities>,
    /// The agent's name and version.
    #[serde(rename = "agentInfo", default, skip_serializing_if = "Option::is_none")]
    pub agent_info: Option<Implementation>,
}

/// Parameters of `session/new`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct NewSessionRequest {
    /// The absolute working directory.
    pub cwd: String,
    /// Tool servers for the session.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<serde_json::Value>,
}

/// Result of `session/new`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct NewSessionResponse {
    /// The agent's id of the new session.
    #[serde(rename = "sessionId")]
    pub session_id: String,
}

/// Parameters of `session/load` and `session/resume`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ReopenSessionRequest {
    /// The agent's id of the session.
    #[serde(rename = "sessionId")]
    pub session_id: String,
    /// The absolute working directory.
    pub cwd: String,
    /// Tool servers, given again.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<serde_json::Value>,
}

/// Result of `session/load` and `session/resume`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ReopenSessionResponse {
    /// The session's options, not read here.
    #[serde(
        rename = "configOptions",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub config_options: Option<serde_json::Value>,
}

/// A piece of content; only text is read.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ContentBlock {
    /// The kind, for example `text`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The text of a `text` block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Parameters of `session/prompt`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PromptRequest {
    /// The agent's id of the session.
    #[serde(rename = "sessionId")]
    pub session_id: String,
    /// The user's message.
    pub prompt: Vec<ContentBlock>,
}

/// Tokens that the agent reports with a turn's result.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PromptUsage {
    /// Input tokens.
    #[serde(
        rename = "inputTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub input_tokens: Option<i64>,
    /// Output tokens.
    #[serde(
        rename = "outputTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub output_tokens: Option<i64>,
    /// The agent's sum.
    #[serde(
        rename = "totalTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub total_tokens: Option<i64>,
    /// Tokens of reasoning.
    #[serde(
        rename = "thoughtTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub thought_tokens: Option<i64>,
    /// Input tokens read from a cache.
    #[serde(
        rename = "cachedReadTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cached_read_tokens: Option<i64>,
    /// Input tokens written to a cache.
    #[serde(
        rename = "cachedWriteTokens",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cached_write_tokens: Option<i64>,
}

/// Result of `session/prompt`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PromptResponse {
    /// Why the turn ended.
    #[serde(rename = "stopReason")]
    pub stop_reason: String,
    /// Tokens, when the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<PromptUsage>,
}

/// Parameters of `session/cancel`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct CancelNotification {
    /// The agent's id of the session.
    #[serde(rename = "sessionId")]
    pub session_id: String,
}

/// Parameters of `session/update`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct SessionNotification {
    /// The agent's id of the session.
    #[serde(rename = "sessionId")]
    pub session_id: String,
    /// The update, read by its kind.
    pub update: serde_json::Value,
}

/// One possible answer to a permission request.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PermissionOption {
    /// The id to answer with.
    #[serde(rename = "optionId")]
    pub option_id: String,
    /// A label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The tool call that asks for permission.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PermissionToolCall {
    /// The id of the call.
    #[serde(
        rename = "toolCallId",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_call_id: Option<String>,
    /// What it is about to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The kind of tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the tool is called with.
    #[serde(rename = "rawInput", default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<serde_json::Value>,
}

/// Parameters of `session/request_permission`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct RequestPermissionRequest {
    /// The agent's id of the session.
    #[serde(rename = "sessionId", default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The call that asks.
    #[serde(rename = "toolCall")]
    pub tool_call: PermissionToolCall,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
}

/// The decision on a permission request.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct PermissionOutcome {
    /// `selected` or `cancelled`.
    pub outcome: String,
    /// The chosen option of `selected`.
    #[serde(rename = "optionId", default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}

/// Result of `session/request_permission`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct RequestPermissionResponse {
    /// The decision.
    pub outcome: PermissionOutcome,
}

/// Parameters of `elicitation/create`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ElicitationRequest {
    /// The agent's id of the session.
    #[serde(rename = "sessionId", default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `form` or `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The form's fields.
    #[serde(
        rename = "requestedSchema",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub requested_schema: Option<serde_json::Value>,
}

/// Result of `elicitation/create`.
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
pub struct ElicitationResponse {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// The answers of `accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<serde_json::Value>,
}
