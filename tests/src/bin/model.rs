//! Compares the node with a model over random steps: `model --steps 100000 --seed 1 --store`.

use clap::Parser;
use node_tests::model::{Options, run};
use std::time::Instant;

/// Makes random steps: transactions of all types, blocks, polls, reorganizations, edits, snapshots, restarts. After each,
/// states, logs, filters and pool are compared with a model. A failure prints the seed and the step.
#[derive(Parser)]
struct Arguments {
    /// Steps.
    #[arg(long, default_value_t = 100_000)]
    steps: u64,

    /// Chooses the steps; without it another one each time.
    #[arg(long)]
    seed: Option<u64>,

    /// Keeps the chain in a temporary folder, not in memory.
    #[arg(long)]
    store: bool,

    /// Without edits of the state, chosen base fees and impersonated senders, so that the chain can be imported again.
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
