//! Names of environment variables that steer the host process (core contracts, 3.8).

const STARTS: [&str; 2] = ["DYLD_", "GIT_CONFIG_"];
const END: &str = "_PROXY";

/// Sorted.
const NAMES: [&str; 57] = [
    "ALL_PROXY",
    "BASH_ENV",
    "CDPATH",
    "COMSPEC",
    "CURL_CA_BUNDLE",
    "DBUS_SESSION_BUS_ADDRESS",
    "ENV",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_SSH_COMMAND",
    "GIT_SSL_NO_VERIFY",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NO_PROXY",
    "NVM_DIR",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PNPM_HOME",
    "PROMPT_COMMAND",
    "PWD",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "REQUESTS_CA_BUNDLE",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSLKEYLOGFILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USER",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Whether an environment variable of this name steers the process that reads it: how it finds programs and libraries,
/// whom it trusts, whom it talks to. The case of the name does not matter.
///
/// Ask where values of a caller are merged into a bridge, a sidecar or a harness, and refuse such a name. An environment
/// that wholly replaces that of the caller's own process needs no such check.
///
/// ```
/// use tangle_sandbox::contract::profile::steers_host_process;
///
/// assert!(steers_host_process("Path"));
/// assert!(steers_host_process("dyld_insert_libraries"));
/// assert!(!steers_host_process("PATH_PREFIX"));
/// ```
pub fn steers_host_process(name: &str) -> bool {
    let name = name.to_uppercase();
    STARTS.iter().any(|start| name.starts_with(start))
        || name.ends_with(END)
        || NAMES.binary_search(&name.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_3_8_names_that_steer_the_host_process_are_known() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            assert!(steers_host_process(name) && steers_host_process(&name.to_lowercase()));
        }
        for name in ["DYLD_", "git_config_count", "MY_PROXY", "_proxy"] {
            assert!(steers_host_process(name), "{name}");
        }
        for name in [
            "",
            "DYLD",
            "PROXY",
            "GIT_CONFIG",
            "MYPATH",
            "NODE",
            "X_ENV",
            " PATH",
        ] {
            assert!(!steers_host_process(name), "{name}");
        }
    }
}
