//! Runs block tests of Ethereum: `blocktest PATH…`, each path a file or a folder.

use clap::Parser;
use node_tests::blocktest::{self, Keep};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs tests in Ethereum's BlockchainTests format.
///
/// Prints each failing test with the reason, and last how many passed and failed. Fails if any did, or none ran.
#[derive(Parser)]
struct Arguments {
    /// Files, and folders with files, in JSON.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Keep each chain in a temporary folder instead of memory.
    #[arg(long)]
    store: bool,
}

fn main() -> ExitCode {
    let Arguments { paths, store } = Arguments::parse();
    let summary = match blocktest::run(&paths, if store { Keep::InFolders } else { Keep::InMemory }) {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for (name, reason) in &summary.failures {
        println!("{name}: {reason}");
    }
    println!("{} passed, {} failed", summary.passed, summary.failures.len());
    if summary.passed > 0 && summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
