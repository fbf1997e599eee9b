//! `ethnode prune`, and `--prune-before` of other commands: drops old states.

use crate::chain::open;
use crate::command::report;
use crate::error::CommandError;
use crate::options::{ExistingChain, OutputOptions};
use clap::Args;
use node_core::backend::StateBackend;
use node_store::Store;
use node_types::BlockNumber;
use serde_json::json;
use std::fmt;
use std::time::{Duration, Instant};

/// Options of `prune`.
#[derive(Args, Debug)]
pub(crate) struct PruneOptions {
    /// First block whose state is kept
    #[arg(long, value_name = "BLOCK")]
    pub(crate) before: BlockNumber,
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Drops the states of a folder before `--before`.
pub(crate) fn run(options: &PruneOptions) -> Result<(), CommandError> {
    let store = open::open_folder(&open::existing_folder(&options.chain, "prune")?, &options.chain)?;
    check_floor(&store, "--before", options.before)?;
    let pruned = prune(&store, options.before)?;
    let value = json!({
        "earliest_state": pruned.earliest, "rows_dropped": pruned.rows, "seconds": pruned.elapsed.as_secs_f64(),
        "head": report::block(store.view()?.head()),
    });
    report::result("prune", options.output.json, &pruned, value)
}

/// The result of pruning.
pub(crate) struct Pruned {
    earliest: BlockNumber,
    rows: u64,
    elapsed: Duration,
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { earliest, rows, elapsed } = self;
        write!(
            f,
            "dropped {rows} rows in {:.2} s; states are available from block {earliest} on",
            elapsed.as_secs_f64()
        )
    }
}

/// Refuses a `block` above the head. `option` is the option that specified it.
pub(crate) fn check_floor(store: &Store, option: &'static str, block: BlockNumber) -> Result<(), CommandError> {
    let head = store.view()?.head().number;
    if block > head { Err(CommandError::AboveHead { option, block, head }) } else { Ok(()) }
}

/// Drops the states of blocks before `floor`. Has no effect if these states were already dropped.
pub(crate) fn prune(store: &Store, floor: BlockNumber) -> Result<Pruned, CommandError> {
    let start = Instant::now();
    let rows = store.prune_before(floor)?;
    Ok(Pruned { earliest: store.view()?.earliest_state(), rows, elapsed: start.elapsed() })
}
