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

/// What only the holder of control can do needs `control`.
pub fn interactive_agent_control(agent: &Value) -> Result<(), Refused> {
    let driven = ["attach", "sendPrompt", "input", "resize", "stop"];
    require(
        agent["control"] == true || driven.iter().all(|flag| agent[*flag] != true),
        "/control",
        "`attach`, `sendPrompt`, `input`, `resize` and `stop` need it",
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
