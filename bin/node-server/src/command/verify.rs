//! `ethnode verify`: checks every row of a folder.

use crate::chain::open;
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::options::InspectOptions;
use clap::Args;
use indicatif::HumanDuration;
use node_core::backend::{BackendError, StateBackend};
use node_core::edits::{count_pending_edits, earliest_known_state};
use node_evm::Secp256k1Recovery;
use node_fork::Checked;
use node_http::Shutdown;
use node_store::{Difference, RowFault, Verified, VerifyOptions, VerifyProgress};
use node_types::BlockNumber;
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::time::Duration;

/// Options of `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyCommandOptions {
    #[command(flatten)]
    inspect: InspectOptions,
    /// First block to check; those before it, and rows that belong to no block, are not checked
    #[arg(long, value_name = "BLOCK", default_value_t = 0)]
    from: BlockNumber,
    /// Number of blocks to check, which are chosen at random [default: all]
    #[arg(long, value_name = "BLOCKS")]
    sample: Option<NonZeroU64>,
}

impl VerifyCommandOptions {
    pub(crate) fn json(&self) -> bool {
        self.inspect.output.json
    }
}

/// Checks rows up to the first difference, and reports that, or that there is none.
pub(crate) fn run(options: &VerifyCommandOptions) -> Result<(), CommandError> {
    let json = options.json();
    let shutdown = Shutdown::on_signals()?;
    open::check_runs(&options.inspect.chain, shutdown.context())?;
    let fetched = open::check_fetched(&options.inspect.chain, "verify")?;
    let mut store = open::open_snapshot(&options.inspect.chain, "verify", shutdown.context())?;
    let head = store.view()?.head().number;
    if options.from > head {
        return Err(CommandError::AboveHead { option: "--from", block: options.from, head });
    }
    let part = VerifyOptions { from: options.from, sample: options.sample };
    let first = options.from.max(store.view()?.first());
    let mut report = Report::start("verify", json, "verifying".to_owned(), head - first + 1);
    let verified = store.verify(part, shutdown.context(), &Secp256k1Recovery, |VerifyProgress { blocks, of }| {
        report.bar().set_length(of);
        report.bar().set_position(blocks);
        let left = (blocks > 0).then(|| report.elapsed().as_secs_f64() * (of - blocks) as f64 / blocks as f64);
        let text = || {
            let left = left.map(|left| format!(", {} left", HumanDuration(Duration::from_secs(left as u64))));
            if blocks == of {
                "searching for rows that belong to no block".to_owned()
            } else {
                format!("{blocks} of {of} blocks{}", left.unwrap_or_default())
            }
        };
        report.progress(text, || json!({"blocks": blocks, "of": of, "seconds_left": left}));
    });
    report.finish();
    let Verified { head, edited, first_without_state_root, blocks, difference, .. } = match verified {
        Err(BackendError::Interrupted(_)) => return Err(CommandError::Interrupted),
        verified => verified?,
    };
    let seconds = report.elapsed().as_secs_f64();
    let earliest_state = earliest_known_state(&store)?;
    let mut written = Ok(());
    if difference.is_none() || json {
        let by_hand = match &*edited {
            [] => String::new(),
            [only] => format!("; block {only} was edited by hand"),
            [first, ..] => format!("; {} blocks were edited by hand, the first one is {first}", edited.len()),
        };
        let waiting = count_pending_edits(&store)?;
        let waiting_text = match waiting {
            0 => String::new(),
            1 => "; an edit is pending for the next block".to_owned(),
            count => format!("; {count} edits are pending for the next block"),
        };
        let unproven = match first_without_state_root {
            None => String::new(),
            Some(first) if first == head.number => format!("; block {first} has no state root"),
            Some(first) => format!("; {} blocks have no state root, the first one is {first}", head.number - first + 1),
        };
        let read = fetched.map_or_else(String::new, |Checked { entries, bytes, .. }| {
            format!("; what was read of the other chain is correct, {entries} entries of {bytes} bytes")
        });
        let noun = if blocks == 1 { "block" } else { "blocks" };
        let correct = if blocks > head.number - store.view()?.first() {
            "all rows are correct"
        } else {
            "their rows are correct; other blocks, and rows that belong to no block, were not checked"
        };
        let text = format!(
            "verified {blocks} {noun} in {seconds:.2} s: {correct}; states from block {earliest_state} on; head {head}{by_hand}{unproven}{waiting_text}{read}"
        );
        let value = json!({
            "ok": difference.is_none(), "difference": difference.as_ref().map(difference_value), "blocks": blocks,
            "head": report::block(head), "earliest_state": earliest_state, "edited": edited, "first_without_state_root": first_without_state_root,
            "waiting_edits": waiting, "seconds": seconds,
            "fetched": fetched.map(|Checked { entries, bytes, .. }| json!({"entries": entries, "bytes": bytes})),
        });
        written = report::result("verify", json, text, value);
    }
    // A difference is more important than a result that cannot be written.
    difference.map_or(written, |difference| Err(CommandError::Difference(Box::new(difference))))
}

fn difference_value(difference: &Difference) -> Value {
    let hex = |bytes: &[u8]| const_hex::encode_prefixed(bytes);
    let mut value = json!({
        "block": difference.block, "table": difference.table, "key": hex(&difference.key),
        "message": difference.fault.to_string(), "expected": null, "found": null,
    });
    match &difference.fault {
        RowFault::Missing | RowFault::Malformed { .. } => {}
        RowFault::Surplus { found } => value["found"] = hex(found).into(),
        RowFault::Differs { expected, found, .. } => {
            value["expected"] = hex(expected).into();
            value["found"] = hex(found).into();
        }
    }
    value
}
