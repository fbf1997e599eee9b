//! Runs Ethereum's block tests: `blocktest PATH…`, each path a file or a folder.

use clap::Parser;
use node_tests::blocktest::{self, Storage};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs tests in Ethereum's BlockchainTests format.
///
/// Prints each failing test with the reason, and the numbers of passed and failed tests. Fails if any failed, or if
/// none ran.
#[derive(Parser)]
struct Arguments {
    /// JSON files, and folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Store each chain in a temporary folder instead of memory.
    #[arg(long)]
    store: bool,
}

fn main() -> ExitCode {
    let Arguments { paths, store } = Arguments::parse();
    let summary = match blocktest::run(&paths, if store { Storage::Folders } else { Storage::Memory }) {
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
