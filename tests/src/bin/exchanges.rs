//! Replays recorded JSON-RPC exchanges against a server, and prints each difference.
//!
//! `exchanges http://127.0.0.1:8545 FOLDER` prints `N passed, N failed` at the end. It fails if none ran, or if any
//! failed that is not listed in `--expected-failures`.

use clap::Parser;
use node_tests::exchanges;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Replays recorded JSON-RPC exchanges and compares the responses")]
struct Options {
    /// URL of the server
    url: String,
    /// Folder of folders of exchanges
    folder: PathBuf,
    /// File that lists exchanges that are expected to fail, one per line; `#` starts a comment
    #[arg(long)]
    expected_failures: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let options = Options::parse();
    let expected: BTreeSet<String> = match &options.expected_failures {
        Some(path) => {
            let text = std::fs::read_to_string(path)?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
        }
        None => BTreeSet::new(),
    };
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let send = |request: &str| -> Result<Value, ureq::Error> {
        let sent = agent.post(&options.url).content_type("application/json").send(request)?;
        sent.into_body().with_config().limit(1 << 30).read_json()
    };
    let (mut passed, mut failed) = (0, BTreeSet::new());
    for exchange in exchanges::read_all(&options.folder)? {
        let differences = exchange.replay(send);
        if differences.is_empty() {
            passed += 1;
            continue;
        }
        println!("FAIL {}", exchange.name);
        let shown = differences.iter().take(8);
        shown.for_each(|difference| println!("    {difference}"));
        failed.insert(exchange.name);
    }
    println!("{passed} passed, {} failed", failed.len());
    for name in failed.symmetric_difference(&expected) {
        let fails = if failed.contains(name) { "fails" } else { "was expected to fail and does not" };
        println!("{name} {fails}");
    }
    let good = passed > 0 && failed == expected;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
