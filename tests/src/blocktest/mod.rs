//! The runner of Ethereum's block tests: chains of valid and invalid blocks with the expected state.

mod case;
mod exceptions;
mod format;
mod hex;
mod network;

use format::BlockTest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, panic, thread};

/// Where to store the chains of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory.
    Memory,
    /// In a temporary folder for each test.
    Folders,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Tests that passed.
    pub passed: usize,
    /// Names of failed tests, and of files that cannot be read, with the reasons, ascending.
    pub failures: Vec<(String, String)>,
}

/// Why no test was run.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}", path = path.display())]
pub struct PathError {
    path: PathBuf,
    source: io::Error,
}

/// Runs all tests in `paths`, files and folders, on all cores.
pub fn run(paths: &[PathBuf], storage: Storage) -> Result<Summary, PathError> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    files.sort();
    let next = AtomicUsize::new(0);
    let summary = Mutex::new(Summary::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let results = run_file(file, storage);
                    let mut summary = summary.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    for (name, result) in results {
                        match result {
                            Ok(()) => summary.passed += 1,
                            Err(reason) => summary.failures.push((name, reason)),
                        }
                    }
                }
            });
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    summary.failures.sort();
    Ok(summary)
}

/// Collects the JSON files at or below `path`. If `path` is a file, any name is accepted.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), PathError> {
    let failed = |source| PathError { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Test collections store indexes in hidden folders.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let entry = entry.path();
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "json") {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

/// Runs each test of a file. A file that cannot be read counts as one failing test.
fn run_file(path: &Path, storage: Storage) -> Vec<(String, Result<(), String>)> {
    let unreadable = |reason: String| vec![(path.display().to_string(), Err(reason))];
    let json = match fs::read(path) {
        Ok(json) => json,
        Err(error) => return unreadable(error.to_string()),
    };
    let tests: BTreeMap<String, serde_json::Value> = match serde_json::from_slice(&json) {
        Ok(tests) => tests,
        Err(error) => return unreadable(error.to_string()),
    };
    let run = |test: serde_json::Value| {
        let test: BlockTest = serde_json::from_value(test).map_err(|error| error.to_string())?;
        // A panic is a defect of the node, and the other tests must still run.
        panic::catch_unwind(|| case::run(&test, storage)).unwrap_or_else(|_| Err("panicked".to_owned()))
    };
    tests.into_iter().map(|(name, test)| (name, run(test))).collect()
}
