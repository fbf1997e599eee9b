//! Runs geth's tracer vectors: `tracertest [--expected-failures FILE] FOLDER`.

use clap::Parser;
use node_tests::tracertest;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

/// Runs geth's tracer vectors.
///
/// Prints each vector whose trace differs, with the first differences, and the numbers of equal and different traces. Fails
/// if other vectors differ than expected, or if none is equal.
#[derive(Parser)]
struct Arguments {
    /// The folder with a folder for each tracer.
    folder: PathBuf,
    /// A file with the names of the vectors that are expected to differ, one on a line.
    #[arg(long)]
    expected_failures: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<bool> {
    let expected = arguments.expected_failures.as_ref().map(fs::read_to_string).transpose()?.unwrap_or_default();
    let lines = expected.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let expected: BTreeSet<_> = lines.collect();
    let summary = tracertest::run(&arguments.folder)?;
    for (name, reason) in &summary.failures {
        println!("{name}: {reason}");
    }
    println!("{} equal, {} different", summary.passed, summary.failures.len());
    let failed: BTreeSet<_> = summary.failures.iter().map(|(name, _)| name.as_str()).collect();
    Ok(summary.passed > 0 && failed == expected)
}
