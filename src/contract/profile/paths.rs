//! Programs and paths that a profile may name (core contracts, 3.5).

/// Shells: whoever may name one may run anything.
const SHELLS: [&str; 8] = [
    "sh",
    "bash",
    "zsh",
    "fish",
    "cmd",
    "cmd.exe",
    "powershell",
    "pwsh",
];

/// The names that the workspace keeps for itself.
const RESERVED: [&str; 2] = [".git", ".sidecar"];

/// Whether `text` is a program that a profile may start: a name or a path of plain segments, and no shell.
///
/// ```
/// use tangle_sandbox::contract::profile::is_safe_executable;
///
/// assert!(is_safe_executable("node"));
/// assert!(is_safe_executable("/opt/bin/tool"));
/// assert!(!is_safe_executable("/bin/sh"));
/// assert!(!is_safe_executable("node server.js"));
/// ```
pub fn is_safe_executable(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+/-".contains(&byte);
    let path = text.strip_prefix('/').unwrap_or(text);
    let last = path.rsplit('/').next().unwrap_or_default();
    text.bytes().all(plain)
        && path.split('/').all(is_real_segment)
        && !SHELLS.iter().any(|shell| last.eq_ignore_ascii_case(shell))
}

/// Whether `path` stays below the folder that it starts from, on every system: relative, no drive, no backslash, no
/// controls, no empty segment, no `.` or `..`.
pub fn is_safe_relative_path(path: &str) -> bool {
    // A path that begins with `/` has an empty first segment.
    !path.chars().any(is_control)
        && !path.contains('\\')
        && !has_drive(path)
        && path.split('/').all(is_real_segment)
}

/// Whether a segment of `path` is kept for the workspace itself: `.git` or `.sidecar`.
pub fn has_reserved_segment(path: &str) -> bool {
    path.split('/').any(|segment| RESERVED.contains(&segment))
}

/// U+0000 to U+001F, and U+007F.
pub(super) fn is_control(c: char) -> bool {
    c.is_ascii_control()
}

fn is_real_segment(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..")
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_3_5_a_command_is_a_program_and_no_shell() {
        for taken in [
            "node",
            "bash2",
            "sh.bin",
            "bin/tool",
            "/usr/bin/a.b-c_d+e",
            "sh/tool",
            "...",
            "-x",
        ] {
            assert!(is_safe_executable(taken), "{taken}");
        }
        for refused in [
            "", " ", "/", "//a", "a/", "a//b", "./a", "a/..", "Bash", "/bin/ZSH", "CMD.exe", "a b",
            "a\\b", "C:a", "é", "a;b", "a\n", "~/a", "$a",
        ] {
            assert!(!is_safe_executable(refused), "{refused:?}");
        }
    }

    #[test]
    fn core_3_5_a_relative_path_cannot_leave() {
        for taken in [
            "a",
            "a/b",
            "..a",
            "a..",
            "...",
            ".gitignore",
            ".git",
            "é/π",
            "a b",
            " ",
            "1:a",
            "\u{85}",
        ] {
            assert!(is_safe_relative_path(taken), "{taken}");
        }
        for refused in [
            "", ".", "..", "/a", "a/", "a//b", "./a", "a/./b", "a/../b", "C:/x", "c:x", "z:",
            "\\x", "a\\b", "a\u{7}", "a\u{7F}", "\u{0}",
        ] {
            assert!(!is_safe_relative_path(refused), "{refused:?}");
        }
        assert!(has_reserved_segment("a/.git/b") && has_reserved_segment(".sidecar"));
        assert!(!has_reserved_segment(".gitignore") && !has_reserved_segment(".GIT"));
    }
}
