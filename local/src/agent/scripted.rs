//! The scripted agent: a coding agent without a model, that does what the lines of the prompt say. It does real work in
//! the session's directory and speaks the same protocol as every other agent, so programs can be tested offline.
//!
//! It always runs as another process. A program becomes it through the first line of its `main`:
//!
//! ```
//! // Returns at once, unless this process was started to be the agent.
//! tangle_sandbox_local::agent::scripted::agent_main();
//! ```
//!
//! Each line of the prompt is one step; empty lines are skipped:
//!
//! | line | what happens |
//! |---|---|
//! | `say TEXT` | assistant text, without a line end |
//! | `think TEXT` | a thought |
//! | `run COMMAND` | a shell command, as a tool call `run` with its output and exit code |
//! | `write PATH TEXT` | a file (its folders are made), as a tool call `write` with a diff; `\n` in the text is a line end |
//! | `ask TITLE` | a permission request; the decision is said |
//! | `question TEXT\|A\|B` | a question with those choices; the answer is said |
//! | `plan A\|B\|C` | a to-do list with those entries |
//! | `sleep MS` | a wait, which a cancel ends |
//! | `flood N` | N chunks of text, `0 `, `1 `, … |
//! | `fail MESSAGE` | the turn fails with that message |
//! | `crash` | the process ends at once |
//! | `hang` | nothing more, not even after a cancel |
//! | `banner TEXT` | a line on stdout that is no message |
//! | `giant N` | a message of N bytes and a few more |
//! | `future` | an update of a kind that does not exist yet |
//! | `escaped` | a chunk whose method and text are written with escapes |
//!
//! Any other line is said back. Turns are numbered in their session, and a session can be loaded by another process
//! with the same `HOME`, where its prompts are kept.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::scripted_server;

/// The variable that makes a process the scripted agent.
pub const SWITCH: &str = "TANGLE_SCRIPTED_AGENT";

/// True once `agent_main` has returned in this process: started again, it would become the agent.
static CAN_BECOME_AGENT: AtomicBool = AtomicBool::new(false);

/// Becomes the scripted agent, on stdin and stdout, when `TANGLE_SCRIPTED_AGENT` is `1`, and then never returns.
/// Otherwise returns at once; the embedded deployment may then start this program again as its scripted agent.
///
/// Call it first in `main`, before anything is printed to stdout. It works inside and outside of a tokio runtime.
pub fn agent_main() {
    if std::env::var_os(SWITCH).is_none_or(|value| value != "1") {
        CAN_BECOME_AGENT.store(true, Ordering::Relaxed);
        return;
    }
    // An own thread, since a runtime cannot be started inside of another one.
    let served = std::thread::spawn(|| -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(scripted_server::serve(
            tokio::io::stdin(),
            tokio::io::stdout(),
        ));
        runtime.shutdown_background(); // the thread that reads stdin cannot be woken
        Ok(())
    });
    std::process::exit(i32::from(!matches!(served.join(), Ok(Ok(())))));
}

/// This program, when it would become the agent if it were started again.
pub(super) fn own_executable() -> Option<PathBuf> {
    CAN_BECOME_AGENT
        .load(Ordering::Relaxed)
        .then(std::env::current_exe)?
        .ok()
}
