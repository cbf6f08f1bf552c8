//! The scripted agent as a program of its own, for tests that need its path.

fn main() {
    tangle_sandbox_local::agent::agent_main();
    eprintln!(
        "scripted-agent: set TANGLE_SCRIPTED_AGENT=1; a client starts it and speaks to it over stdin and stdout"
    );
    std::process::exit(2);
}
