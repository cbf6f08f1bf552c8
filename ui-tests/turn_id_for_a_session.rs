//! Each identity has its own type.
use tangle_sandbox::contract::types::TurnId;
use tangle_sandbox::sandbox::Prompt;

fn mixed_up(turn: TurnId) -> Prompt {
    Prompt::new("go").session(turn)
}

fn main() {}
//~ E0308 6 mismatched types
