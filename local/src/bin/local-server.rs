//! The bare server as a program, for tests that kill it. People use `tangle-sandbox serve`.
//!
//! `local-server DATA_DIR [GRACE_MS [KEEP_ALIVE_MS]]` prints its base URL and serves until its input ends.

use std::io::Read as _;
use std::time::Duration;

use tangle_sandbox_local::{Local, agent_main};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    agent_main();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let data_dir = arguments.next().ok_or("the data directory is missing")?;
    let mut builder = Local::builder().data_dir(data_dir);
    if let Some(grace) = arguments.next() {
        builder = builder.reader_grace(Duration::from_millis(grace.parse()?));
    }
    if let Some(silence) = arguments.next() {
        builder = builder.keep_alive(Duration::from_millis(silence.parse()?));
    }
    let local = builder.start().await?;
    println!("{}", local.base_url());
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
    local.stop().await;
    Ok(())
}
