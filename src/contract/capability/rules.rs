//! The rules between flags that no keyword says (core contracts, 9.2). Called by the generated check.

use serde_json::{Map, Value};

use crate::contract::check::Refused;

/// A block that is all or nothing: every flag is true, or the block is absent. `admissionControl` is free.
pub fn whole_block(block: &Value) -> Result<(), Refused> {
    let flags = block.as_object().into_iter().flatten();
    let whole = flags
        .filter(|(name, _)| *name != "admissionControl")
        .all(|(_, flag)| flag == true);
    require(
        whole,
        "",
        "every flag must be true; a document that cannot say so leaves the block out",
    )
}

/// Secrets can be answered exactly when a type of answer says so.
pub fn secret_answers(interactions: &Value) -> Result<(), Refused> {
    let types = interactions["answerFieldTypes"].as_array();
    let typed = types.is_some_and(|types| types.iter().any(|name| name == "secret"));
    require(
        (interactions["secretAnswers"] == true) == typed,
        "/secretAnswers",
        "must be true exactly when `answerFieldTypes` holds `secret`",
    )
}

/// Everything needs `start`, most needs `control` as well, and what works on an attached terminal needs `attach`.
pub fn interactive_agent_flags(agent: &Value) -> Result<(), Refused> {
    let any = |flags: &[&str]| flags.iter().any(|flag| agent[*flag] == true);
    let started = [
        "status",
        "attach",
        "reattach",
        "sendPrompt",
        "input",
        "resize",
        "stop",
    ];
    require(
        agent["start"] == true || !any(&started),
        "",
        "every flag but `control` needs `start`",
    )?;
    require(
        agent["control"] == true || !any(&["attach", "sendPrompt", "input", "resize", "stop"]),
        "/control",
        "`attach`, `sendPrompt`, `input`, `resize` and `stop` need `control`",
    )?;
    require(
        agent["attach"] == true || !any(&["reattach", "input", "resize"]),
        "",
        "`reattach`, `input` and `resize` need `attach`",
    )
}

/// What a block needs of the other blocks.
pub fn capability_blocks(document: &Value) -> Result<(), Refused> {
    let Some(blocks) = document.as_object() else {
        return Ok(());
    };
    let has = |block: &str| blocks.contains_key(block);
    let on = |block: &str, flag: &str| is_on(blocks, block, flag);
    let continues = on("sessions", "continue");
    let streams = ["replay", "detach", "turnIdempotency"]
        .iter()
        .all(|flag| on("streaming", flag));
    require(
        !has("retainedControl") || (streams && continues),
        "/retainedControl",
        "needs `streaming.replay`, `streaming.detach`, `streaming.turnIdempotency` and `sessions.continue`",
    )?;
    require(
        !has("nativeContinuation") || continues,
        "/nativeContinuation",
        "needs `sessions.continue`",
    )?;
    require(
        has("retainedControl") || !on("nativeContinuation", "admissionControl"),
        "/nativeContinuation/admissionControl",
        "needs `retainedControl`",
    )
}

fn is_on(blocks: &Map<String, Value>, block: &str, flag: &str) -> bool {
    blocks.get(block).is_some_and(|block| block[flag] == true)
}

fn require(holds: bool, path: &str, rule: &'static str) -> Result<(), Refused> {
    if holds {
        Ok(())
    } else {
        Err(Refused::new(path, rule))
    }
}
