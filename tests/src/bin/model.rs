//! Compares the node with a model over random steps: `model --steps 100000 --seed 1 --store`.

use clap::Parser;
use node_tests::model::{Options, run};
use std::time::Instant;

/// Performs random steps: transactions of all types, blocks, polls, reorganizations, edits, snapshots, restarts. After
/// each, compares states, logs, filters and pool with a model. A failure prints the seed and the step.
#[derive(Parser)]
struct Arguments {
    /// Number of steps.
    #[arg(long, default_value_t = 100_000)]
    steps: u64,

    /// Seed of the steps [default: random].
    #[arg(long)]
    seed: Option<u64>,

    /// Store the chain in a temporary folder instead of memory.
    #[arg(long)]
    store: bool,

    /// Leave out edits, chosen base fees and impersonated senders, so that the chain can be imported again.
    #[arg(long)]
    without_edits: bool,
}

fn main() {
    let Arguments { steps, seed, store, without_edits } = Arguments::parse();
    let seed = seed.unwrap_or_else(|| {
        u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
    });
    println!("seed {seed}");
    let begun = Instant::now();
    let summary = run(Options { steps, seed, in_folder: store, edits: !without_edits }, |step| {
        if step > 0 && step % 10_000 == 0 {
            println!("{step} steps, {:.1} s", begun.elapsed().as_secs_f64());
        }
    });
    println!("{steps} steps, {:.1} s: {summary}", begun.elapsed().as_secs_f64());
}
