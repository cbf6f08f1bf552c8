//! `tangle-sandbox check`: one document against a contract, or the list of contracts.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tangle_sandbox::contract::registry::{self, CONTRACTS};

/// The most bytes that are read: the largest body of the protocol.
const MOST: u64 = 128 << 20;

/// Check a document against a contract and print the verdict as one JSON object.
///
/// The exit code is 0 when the document is accepted, 1 when it is refused, 2 when it cannot be read.
#[derive(clap::Args)]
pub struct Check {
    /// The contract, for example `profile`; `--list` names them all.
    #[arg(required_unless_present = "list")]
    contract: Option<String>,
    /// The document; standard input when absent or `-`.
    file: Option<PathBuf>,
    /// Name the contracts, one a line, with what each is and the chapter that tells it.
    #[arg(long, conflicts_with_all = ["contract", "file"])]
    list: bool,
}

impl Check {
    /// Prints the verdict or the list.
    pub fn execute(self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        let Some(name) = self.contract.filter(|_| !self.list) else {
            for contract in CONTRACTS {
                println!(
                    "{:<26} {} ({})",
                    contract.name, contract.about, contract.chapter
                );
            }
            return Ok(ExitCode::SUCCESS);
        };
        let contract = registry::find(&name).ok_or_else(|| {
            format!("there is no contract {name:?}; `tangle-sandbox check --list` names them")
        })?;
        let bytes = document(self.file)?;
        let (verdict, code) = match contract.check(&bytes) {
            Ok(accepted) => {
                let mut verdict = json!({
                    "contract": contract.name, "accepted": true, "document": accepted.document,
                });
                if let Some(digest) = accepted.digest {
                    verdict["digest"] = json!(digest);
                }
                (verdict, ExitCode::SUCCESS)
            }
            Err(refusal) => {
                let verdict = json!({
                    "contract": contract.name, "accepted": false,
                    "path": refusal.path, "rule": refusal.rule, "code": refusal.code,
                });
                (verdict, ExitCode::FAILURE)
            }
        };
        println!("{verdict}");
        Ok(code)
    }
}

fn document(file: Option<PathBuf>) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let source: Box<dyn std::io::Read> = match file {
        Some(path) if path.as_os_str() != "-" => Box::new(
            std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?,
        ),
        _ => Box::new(std::io::stdin().lock()),
    };
    let mut bytes = Vec::new();
    source.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(format!("the document has more than {MOST} bytes").into());
    }
    Ok(bytes)
}
