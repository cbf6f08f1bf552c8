//! What a turn passes on and keeps is bounded in bytes and in depth, and says what is missing.

use std::collections::HashMap;

use serde_json::{Value, json};
use tangle_sandbox_local::agent::translate::Translator;
use tangle_sandbox_local::agent::{AgentEvent, ToolInvocation};

fn text(message: &str, text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "messageId": message, "content": { "type": "text", "text": text } })
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

fn bytes(event: &AgentEvent) -> usize {
    Value::Object(event.data.clone()).to_string().len()
}

fn tool(id: &str, status: &str, input: Value, output: &str) -> Value {
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "rawInput": input,
        "content": [{ "type": "content", "content": { "type": "text", "text": output } }] })
}

#[test]
fn acp_12_2_a_long_delta_comes_in_several_events_and_nothing_is_lost() {
    for text in ["ab€".repeat(300 << 10), "\u{1}".repeat(300 << 10)] {
        let (events, _) = play([self::text("m", &text)]);
        let deltas = events
            .iter()
            .filter_map(|event| event.data.get("delta")?.as_str());
        assert!(deltas.collect::<String>() == text);
        let longest = events.iter().map(bytes).max().unwrap();
        assert!(longest <= (2 << 20) + (1 << 10), "{longest}");
        let longest = events
            .iter()
            .filter(|event| event.data.contains_key("delta"))
            .map(bytes);
        assert!(longest.max().unwrap() <= (256 << 10) + (1 << 10));
    }
}

#[test]
fn acp_12_1_no_event_is_much_larger_than_2_mib_whatever_the_agent_sends() {
    for giant in [
        "x".repeat(3 << 20),
        "\u{1}".repeat(1 << 20),
        "€\"".repeat(1 << 20),
    ] {
        let (events, _) = play([
            text("m", &giant),
            tool(&giant, "pending", json!(giant), &giant),
            tool(
                "c",
                "pending",
                json!({ "a": giant }),
                &giant[..giant.len() / 4],
            ),
            tool("c", "in_progress", json!({ "a": 1 }), &giant),
            tool("c", "failed", json!({ "a": 2 }), &giant),
            tool("d", "completed", json!({ "a": 2 }), &giant),
            json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "title": giant, "kind": giant, "name": giant,
                "locations": giant, "_meta": { "terminal_output_delta": { "data": giant } }, "rawOutput": { "exitCode": giant } }),
            json!({ "sessionUpdate": "available_commands_update", "x": giant }),
            json!({ "sessionUpdate": giant }),
            json!(giant),
        ]);
        let longest = events.iter().map(bytes).max().unwrap();
        assert!(longest <= (2 << 20) + (64 << 10), "{longest}");
    }
}

/// The whole parts with which a turn ends, by the call's id.
fn last_parts(events: &[AgentEvent]) -> HashMap<String, Value> {
    let parts = events.iter().filter_map(|event| {
        let part = event.data.get("part")?;
        part["state"].get("output")?;
        Some((part["callID"].as_str()?.to_owned(), part.clone()))
    });
    parts.collect()
}

#[test]
fn acp_12_2_open_tools_are_bounded_together_and_the_oldest_are_cut_and_marked() {
    let output = "o".repeat(400 << 10);
    let open = (0..100).map(|n| tool(&format!("c{n}"), "in_progress", json!({ "n": n }), &output));
    let end_of_a_cut_one = tool("c1", "completed", json!({ "n": 1 }), &output);
    let (events, translator) = play(open.chain([end_of_a_cut_one]));
    let parts = last_parts(&events);
    assert_eq!(parts.len(), 100);
    let at_the_end = parts.iter().filter(|(id, _)| *id != "c1");
    let kept: usize = at_the_end
        .map(|(_, part)| part["state"]["output"].as_str().unwrap().len())
        .sum();
    assert!(kept <= 16 << 20 && kept > 15 << 20, "{kept}");
    let oldest = &parts["c0"]["state"];
    assert_eq!(oldest["input"], json!({}));
    assert_eq!(oldest["metadata"]["outputTruncated"], true);
    assert_eq!(oldest["metadata"]["inputTruncated"], true);
    let newest = &parts["c99"]["state"];
    assert!(newest["output"] == *output && newest["metadata"] == json!({}));
    let ended = &parts["c1"]["state"];
    assert!(
        ended["output"] == *output,
        "its last update brought the output"
    );
    assert_eq!(ended["metadata"], json!({ "inputTruncated": true }));
    let listed = translator.summary().tool_invocations;
    assert!(listed[0].truncated && listed[0].call_id == "c0");
}

#[test]
fn a_tool_that_was_cut_still_streams_its_increments() {
    let output = "o".repeat(500 << 10);
    let terminal = |data: &str| {
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c0", "status": "in_progress",
        "_meta": { "terminal_output_delta": { "data": data } } })
    };
    let others = (1..50).map(|n| tool(&format!("c{n}"), "in_progress", json!({}), &output));
    let updates = [terminal("a")]
        .into_iter()
        .chain(others)
        .chain([terminal("b"), terminal("c")]);
    let (events, _) = play(updates);
    let deltas = events.iter().filter(|event| {
        event
            .data
            .get("part")
            .is_some_and(|part| part["callID"] == "c0")
    });
    let deltas: String = deltas
        .filter_map(|event| event.data.get("delta")?.as_str())
        .collect();
    assert_eq!(deltas, "abc");
}

#[test]
fn the_list_of_tools_fits_a_result_and_later_calls_keep_their_name_id_and_status() {
    let text = "\u{1}".repeat(2700);
    let updates =
        (0..1100).map(|n| tool(&format!("c{n}"), "completed", json!({ "a": text }), &text));
    let (_, translator) = play(updates);
    let list = translator.summary().tool_invocations;
    assert_eq!(list.len(), 1000);
    let contents: usize = list
        .iter()
        .map(|tool| json!([tool.input, tool.result]).to_string().len())
        .sum();
    assert!(contents > 3 << 20, "{contents}");
    let all = Value::from_iter(list.iter().map(ToolInvocation::to_json));
    let bytes = all.to_string().len();
    assert!(bytes <= (4 << 20) + 1000 * 100, "{bytes}");
    assert!(!list[0].truncated && list[0].input.is_some() && list[0].result.is_some());
    assert_eq!(
        all[999],
        json!({ "toolName": "tool", "toolCallId": "c999", "status": "completed", "truncated": true })
    );
}

/// Containers within containers.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn a_value_too_deep_for_a_reader_of_frames_becomes_a_text_that_says_so() {
    let nest = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let (events, _) = play([
        tool("c", "in_progress", nest(125), ""),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "locations": nest(125) }),
        json!({ "sessionUpdate": "hologram", "x": nest(125) }),
        json!({ "sessionUpdate": "session_info_update", "x": nest(125) }),
        nest(126),
    ]);
    let mut marked = 0;
    for event in events {
        let event = Value::Object(event.data);
        let frame = json!({ "type": "event", "data": event }).to_string();
        assert!(serde_json::from_str::<Value>(&frame).is_ok(), "{frame}");
        assert!(levels(&event) <= 70, "{frame}");
        marked += usize::from(frame.contains("[nested deeper than 64 levels] {\\\"a\\\":"));
    }
    assert_eq!(marked, 5);
}
