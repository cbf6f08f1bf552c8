//! Memory for hostile input is linear in its size. A test of its own, since it reads the peak of the whole process.

use tangle_sandbox::contract::{bounds, canonical, strict};

/// The most bytes that this process has held in memory so far; none where the system does not tell.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[test]
fn memory_grows_with_the_size() {
    // A container costs most: two bytes of text, a list with room for four values.
    const MOST: usize = 200;
    let nested = |size: usize| {
        let one = "[".repeat(500) + &"]".repeat(500);
        format!("[{}]", vec![one; size / 1001].join(","))
    };
    let open = |size: usize| "[".repeat(size);
    let objects = |size: usize| format!("[{}{{}}]", "{\"k\":{}},".repeat(size / 9));
    let inputs: [(&str, String); 6] = [
        ("open", open(1 << 20)),
        ("open", open(10 << 20)),
        ("nested", nested(1 << 20)),
        ("nested", nested(10 << 20)),
        ("objects", objects(1 << 20)),
        ("objects", objects(4 << 20)),
    ];
    for (what, text) in inputs {
        let size = text.len();
        let Some(before) = peak() else {
            return;
        };
        if let Ok(value) = strict::parse(text.as_bytes()) {
            let _ = bounds::json("value", &value);
            let _ = canonical::digest(&value);
        }
        let more = peak().unwrap_or(before) - before;
        println!("{what}: {size} bytes of text, {more} bytes more at the peak");
        assert!(
            more < MOST * size,
            "{what}: {more} bytes for {size} bytes of text"
        );
    }
}
