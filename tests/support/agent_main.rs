//! A `main` for tests that use the scripted agent: the embedded deployment starts the test's own executable again as the
//! agent, which libtest's `main` would not become.
//!
//! A test file takes part with `harness = false` in `Cargo.toml` and
//!
//! ```text
//! mod support {
//!     #[macro_use]
//!     pub mod agent_main;
//! }
//!
//! agent_main_tests! { the_first_rule, another_rule }
//!
//! fn the_first_rule() {
//!     agent_main::block_on(async { /* … */ });
//! }
//! ```
//!
//! Each test is a function without arguments that panics when it fails. The options of libtest that cargo and editors
//! use are understood: names to run, `--exact`, `--skip NAME`, `--list`, `--test-threads N`. Output is not captured.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// A name and what it runs.
pub type Test = (&'static str, fn());

/// Makes the `main` of a test file out of the names of its test functions.
#[macro_export]
macro_rules! agent_main_tests {
    ($($test:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::support::agent_main::run(&[$((stringify!($test), $test as fn())),+])
        }
    };
}

/// Becomes the scripted agent when this process was started as one; else runs the tests that the arguments name.
pub fn run(tests: &[Test]) -> ExitCode {
    tangle_sandbox_local::agent_main();
    let wanted = Wanted::read(std::env::args().skip(1));
    let chosen: Vec<Test> = tests
        .iter()
        .copied()
        .filter(|(name, _)| wanted.takes(name))
        .collect();
    if wanted.list {
        for (name, _) in &chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let failed = run_all(&chosen, wanted.threads);
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    println!(
        "\ntest result: {verdict}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out\n",
        chosen.len() - failed.len(),
        failed.len(),
        tests.len() - chosen.len(),
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// Runs a future on a runtime of its own, with every driver.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The names of those that failed.
fn run_all(tests: &[Test], threads: usize) -> Vec<&'static str> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, test)) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A thread of its own, so that a panic names the test.
            let thread = Builder::new().name((*name).to_owned()).spawn(*test);
            let passed = thread.unwrap().join().is_ok();
            println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
            if !passed {
                failed.lock().unwrap().push(*name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, tests.len().max(1)) {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap()
}

/// What the arguments ask for.
struct Wanted {
    names: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    /// Only ignored tests are asked for, and there are none.
    ignored: bool,
    threads: usize,
}

impl Wanted {
    fn read(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut wanted = Self {
            names: Vec::new(),
            skipped: Vec::new(),
            exact: false,
            list: false,
            ignored: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        };
        while let Some(argument) = arguments.next() {
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            match option {
                "--exact" => wanted.exact = true,
                "--list" => wanted.list = true,
                "--ignored" => wanted.ignored = true,
                "--skip" => wanted.skipped.extend(value.or_else(|| arguments.next())),
                "--test-threads" => {
                    let count = value.or_else(|| arguments.next());
                    wanted.threads = count.and_then(|count| count.parse().ok()).unwrap_or(1);
                }
                "--format" | "--color" | "-Z" if value.is_none() => drop(arguments.next()),
                _ if option.starts_with('-') => {}
                _ => wanted.names.push(argument),
            }
        }
        wanted
    }

    fn takes(&self, name: &str) -> bool {
        let fits = |given: &String| match self.exact {
            true => given == name,
            false => name.contains(given.as_str()),
        };
        !self.ignored
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skipped.iter().any(fits)
    }
}
