//! Programs that must not compile, with the compiler's whole message.
//!
//! Whole messages change with the compiler, so that they are compared on the pinned toolchain only; `headers` compares
//! the code, the line and the first line of each message everywhere. `TRYBUILD=overwrite cargo test -p tangle-sandbox-ui-tests --test ui` writes the
//! messages again.

#[test]
fn refused_programs_show_the_pinned_message() {
    let pinned = include_str!("../../rust-toolchain.toml")
        .lines()
        .find_map(|line| line.strip_prefix("channel = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .expect("the pinned toolchain");
    let version = std::process::Command::new(std::env::var("RUSTC").unwrap_or("rustc".into()))
        .arg("-V")
        .output()
        .expect("the compiler's version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(&format!("rustc {pinned} ")) {
        let why = format!("skipped: whole messages are pinned for {pinned}, this is {version}");
        assert!(std::env::var_os("TANGLE_REQUIRE_ALL").is_none(), "{why}");
        println!("{why}");
        return;
    }
    trybuild::TestCases::new().compile_fail("*.rs");
}
