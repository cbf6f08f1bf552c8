//! A turn as a person reads it: the agent's text on standard output, everything else on standard error.

use std::collections::HashMap;
use std::io::Write as _;

use tangle_sandbox::contract::types::FramePart;
use tangle_sandbox::sandbox::{Event, EventKind};

/// Prints the agent's text as it comes, and a line for everything else that matters.
#[derive(Default)]
pub struct Printer {
    mid_line: bool,
    /// The newest printed state of each tool call.
    tools: HashMap<String, String>,
}

impl Printer {
    /// Prints one event.
    pub fn print(&mut self, event: &Event) -> std::io::Result<()> {
        if let Some(text) = event.text_delta() {
            print!("{text}");
            self.mid_line = !text.ends_with('\n');
            return std::io::stdout().flush();
        }
        let line = match &event.kind {
            EventKind::PartUpdated(update) if update.part.type_ == "tool" => {
                self.tool(&update.part)
            }
            EventKind::Warning(warning) => Some(format!("! {}", warning.message)),
            _ => None,
        };
        if let Some(line) = line {
            self.finish()?;
            eprintln!("{line}");
        }
        Ok(())
    }

    /// Ends a line that was begun.
    pub fn finish(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            println!();
        }
        std::io::stdout().flush()
    }

    /// A line when the state of a tool call has changed.
    fn tool(&mut self, part: &FramePart) -> Option<String> {
        let state = part.state.as_ref()?;
        let id = part.call_id.as_ref().or(part.id.as_ref())?;
        let before = self.tools.insert(id.clone(), state.status.clone());
        if before.as_ref() == Some(&state.status) || state.status == "pending" {
            return None;
        }
        let tool = part.tool.as_deref().unwrap_or("tool");
        let title = state.title.as_deref().filter(|title| *title != tool);
        let title = title.and_then(|title| title.lines().next());
        let title = title.map_or_else(String::new, |title| format!(" ({title})"));
        Some(format!("· {tool}{title}: {}", state.status))
    }
}
