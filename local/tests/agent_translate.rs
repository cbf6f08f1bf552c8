//! What recorded updates of real agents become on the run stream (wire protocol, 7.4).

use serde_json::{Value, json};
use tangle_sandbox_local::agent::AgentEvent;
use tangle_sandbox_local::agent::translate::Translator;

/// Updates as OpenCode 1.18, Claude Code, Codex and Gemini CLI sent them, ids and paths made neutral.
fn recorded(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("fixtures/acp-updates.json")).unwrap();
    all[name].clone()
}

fn chunk(kind: &str, message: Option<&str>, text: &str) -> Value {
    let mut update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
    if let Some(message) = message {
        update["messageId"] = message.into();
    }
    update
}

fn text(message: Option<&str>, text: &str) -> Value {
    chunk("agent_message_chunk", message, text)
}

/// Translates updates and the end of the turn.
fn play(updates: impl IntoIterator<Item = Value>) -> (Vec<AgentEvent>, Translator) {
    let mut translator = Translator::new("t");
    let mut events = Vec::new();
    for update in updates {
        events.extend(translator.update(update));
    }
    events.extend(translator.finish("stop", None));
    (events, translator)
}

fn data(events: &[AgentEvent]) -> Vec<Value> {
    events
        .iter()
        .map(|event| Value::Object(event.data.clone()))
        .collect()
}

#[test]
fn chunks_of_one_message_are_one_part_and_its_whole_text_comes_once() {
    let (events, translator) = play([text(Some("msg_1"), "Hel"), text(Some("msg_1"), "lo")]);
    assert_eq!(
        data(&events)[..3],
        [
            json!({ "part": { "id": "msg_1", "type": "text" }, "delta": "Hel" }),
            json!({ "part": { "id": "msg_1", "type": "text" }, "delta": "lo" }),
            json!({ "part": { "id": "msg_1", "type": "text", "text": "Hello" } }),
        ]
    );
    assert_eq!(translator.summary().final_text.as_deref(), Some("Hello"));
}

#[test]
fn a_message_goes_on_across_a_tool_call_and_a_run_without_an_id_does_not() {
    let tool = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "status": "completed" });
    let ids = |updates: [Value; 3]| -> Vec<String> {
        let (events, _) = play(updates);
        let deltas = events
            .iter()
            .filter(|event| event.data.contains_key("delta"));
        deltas
            .map(|event| event.data["part"]["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        ids([text(Some("m"), "a"), tool.clone(), text(Some("m"), "b")]),
        ["m", "m"]
    );
    assert_eq!(
        ids([text(None, "a"), tool, text(None, "b")]),
        ["prt_t_1", "prt_t_2"]
    );
}

#[test]
fn the_final_text_is_the_last_message() {
    let updates = [
        text(Some("one"), "I will work"),
        text(Some("two"), "do"),
        text(Some("two"), "ne"),
    ];
    assert_eq!(
        play(updates).1.summary().final_text.as_deref(),
        Some("done")
    );
    assert_eq!(play([]).1.summary().final_text, None);
}

#[test]
fn a_thought_and_a_text_with_one_id_are_two_parts() {
    let (events, translator) = play([
        chunk("agent_thought_chunk", Some("m"), "hm"),
        text(Some("m"), "so"),
    ]);
    let parts: Vec<_> = data(&events)
        .iter()
        .map(|data| data["part"]["id"].clone())
        .collect();
    assert_eq!(parts[..2], ["m", "m-text"]);
    assert_eq!(translator.summary().final_text.as_deref(), Some("so"));
}

#[test]
fn open_code_turns_its_shell_call_into_one_part_with_increments() {
    let names = [
        "tool_call (shell)",
        "tool_call_update in progress with output",
        "tool_call_update completed (shell)",
    ];
    let shell = names.map(|name| recorded(&format!("opencode: {name}")));
    let [call, running, done] = shell;
    let (events, translator) = play([call, running.clone(), running, done.clone(), done]);
    let data = data(&events);
    assert_eq!(data.len(), 4, "repeated updates say nothing: {data:#?}");
    assert_eq!(
        data[0],
        json!({ "part": { "id": "call_3", "type": "tool", "tool": "bash", "callID": "call_3",
            "state": { "status": "pending", "title": "bash", "input": { "cwd": "/workspace" } } } })
    );
    assert_eq!(data[1]["delta"], "hello\n/workspace\n19\n");
    assert_eq!(data[1]["part"]["state"]["status"], "running");
    assert!(data[1]["part"]["state"].get("output").is_none());
    assert_eq!(data[2]["delta"], "0\n");
    let state = &data[2]["part"]["state"];
    assert_eq!(
        (&state["status"], &state["output"]),
        (&json!("completed"), &json!("hello\n/workspace\n19\n0\n"))
    );
    assert_eq!(state["input"]["description"], "make a file");
    assert_eq!(
        (&state["metadata"]["exitCode"], &state["metadata"]["kind"]),
        (&json!(0), &json!("execute"))
    );
    let tools = translator.summary().tool_invocations;
    assert_eq!(
        (&*tools[0].tool_name, &*tools[0].status),
        ("bash", "completed")
    );
}

#[test]
fn a_diff_and_an_error_keep_their_place() {
    let (events, _) = play([recorded("opencode: tool_call_update completed with a diff")]);
    let part = &data(&events)[0]["part"];
    assert_eq!(part["state"]["metadata"]["diffs"][0]["newText"], "three");
    let (events, translator) = play([recorded("opencode: tool_call_update failed")]);
    let part = &data(&events)[0]["part"];
    assert_eq!(
        (&part["state"]["status"], &part["tool"]),
        (&json!("error"), &json!("search"))
    );
    assert_eq!(part["state"]["error"], "ripgrep execution failed");
    assert_eq!(translator.summary().tool_invocations[0].status, "error");
}

#[test]
fn other_agents_name_their_tools_in_other_places() {
    let tool = |updates: Vec<Value>| play(updates).1.summary().tool_invocations.remove(0);
    assert_eq!(
        tool(vec![recorded("claude: tool_call with a tool name")]).tool_name,
        "Bash"
    );
    assert_eq!(
        tool(vec![recorded(
            "gemini: tool_call_update without a tool_call before"
        )])
        .tool_name,
        "execute"
    );
    let codex = [
        "codex: tool_call with a terminal",
        "codex: tool_call_update with terminal output",
    ];
    let codex = tool(codex.map(recorded).into());
    assert_eq!(
        (&*codex.tool_name, codex.result.as_deref()),
        ("exec_command", Some("hi\n"))
    );
}

#[test]
fn what_has_no_event_of_its_own_is_passed_on_raw() {
    let (events, translator) = play([
        recorded("opencode: usage_update"),
        recorded("claude: plan"),
        json!({ "sessionUpdate": "hologram", "depth": 3 }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "image", "data": "aGk=" } }),
        json!({ "sessionUpdate": "tool_call", "title": "no id" }),
        json!(7),
    ]);
    let kinds: Vec<_> = events.iter().map(|event| &*event.kind).collect();
    assert_eq!(
        kinds,
        [
            "raw",
            "raw",
            "raw",
            "raw",
            "raw",
            "raw",
            "message.part.updated"
        ]
    );
    assert_eq!(
        (&events[0].data["used"], &events[1].data["kind"]),
        (&json!(100), &json!("todo"))
    );
    assert_eq!(
        translator.summary().session_cost_usd,
        Some(0.001_203_300_000_000_000_2)
    );
}

#[test]
fn session_records_are_informational_and_replay_is_dropped() {
    let updates = [
        "opencode: available_commands_update",
        "opencode: user_message_chunk (replay)",
    ]
    .map(recorded);
    let (events, _) = play(updates);
    assert_eq!(events[0].kind, "session.updated");
    assert_eq!(events.len(), 2);
}

#[test]
fn a_huge_unknown_update_is_cut_and_says_so() {
    let (events, _) = play([json!({ "sessionUpdate": "hologram", "data": "x".repeat(300 << 10) })]);
    assert_eq!(events[0].data["truncated"], true);
    assert_eq!(events[0].data["sessionUpdate"], "hologram");
}

#[test]
fn a_text_over_the_limit_still_streams_but_is_not_kept() {
    let piece = "x".repeat(64 << 10);
    let (events, translator) = play((0..40).map(|_| text(None, &piece)));
    let streamed: usize = events
        .iter()
        .filter_map(|event| Some(event.data.get("delta")?.as_str()?.len()))
        .sum();
    assert_eq!(streamed, 40 * piece.len());
    assert_eq!(
        data(&events)[40],
        json!({ "part": { "id": "prt_t_1", "type": "text", "truncated": true } })
    );
    assert_eq!(translator.summary().final_text, None);
}

#[test]
fn a_tool_that_its_turn_interrupts_ends_as_an_error() {
    let (events, _) = play([recorded(
        "opencode: tool_call_update in progress with output",
    )]);
    let part = &data(&events)[1]["part"];
    assert_eq!(
        (&part["state"]["status"], &part["state"]["output"]),
        (&json!("error"), &json!("hello\n/workspace\n19\n"))
    );
    assert_eq!(
        data(&events)[2],
        json!({ "part": { "id": "prt_t_1", "type": "step-finish", "reason": "stop" } })
    );
}

/// One turn of 20 000 deltas of 64 bytes (wire protocol, "Must hold – 7", 13): the frame's data leaves room for its framing.
#[test]
fn wire_7_13_a_delta_costs_at_most_300_bytes() {
    let piece = "0123456789abcdef".repeat(4);
    let (events, _) =
        play((0..20_000).map(|_| text(Some("msg_0123456789abcdef0123456789"), &piece)));
    let longest = events[..20_000]
        .iter()
        .map(|event| Value::Object(event.data.clone()).to_string().len())
        .max();
    assert!(longest.unwrap() < 220, "{longest:?}");
    let assembled: String = events
        .iter()
        .filter_map(|event| event.data.get("delta")?.as_str())
        .collect();
    assert!(events[20_000].data["part"]["text"] == *assembled);
}
