//! `ethnode verify`: checks every row of a folder.

use crate::error::CommandError;
use crate::open;
use crate::options::InspectOptions;
use crate::report::{self, Report};
use node_core::backend::{BackendError, StateBackend};
use node_core::context::Context;
use node_core::edits::count_pending_edits;
use node_evm::Secp256k1Recovery;
use node_http::Shutdown;
use node_store::{Difference, RowFault, Store, Verified};
use serde_json::{Value, json};

/// The result of a verification.
pub(crate) struct Outcome {
    pub(crate) verified: Verified,
    /// Number of blocks.
    pub(crate) blocks: u64,
    pub(crate) seconds: f64,
}

/// Checks all rows of `store` up to the first difference, for `command`.
pub(crate) fn check(
    store: &mut Store,
    command: &'static str,
    json: bool,
    context: &Context,
) -> Result<Outcome, CommandError> {
    let blocks = store.view()?.head().number + 1;
    let mut report = Report::start(command, json, "verifying".to_owned(), blocks);
    let verified = store.verify(context, &Secp256k1Recovery, |block| {
        report.bar().set_position(block + 1);
        report.progress(|| format!("block {block} of {}", blocks - 1), || json!({"block": block}));
    });
    report.finish();
    match verified {
        Err(BackendError::Interrupted(_)) => Err(CommandError::Interrupted),
        verified => Ok(Outcome { verified: verified?, blocks, seconds: report.elapsed().as_secs_f64() }),
    }
}

/// Reports the first difference, or that there is none.
pub(crate) fn run(options: &InspectOptions) -> Result<(), CommandError> {
    let json = options.output.json;
    let shutdown = Shutdown::on_signals()?;
    let mut store = open::open_snapshot(&options.chain, "verify")?;
    let Outcome { verified, blocks, seconds } = check(&mut store, "verify", json, shutdown.context())?;
    let Verified { head, earliest_state, edited, difference } = verified;
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
        let noun = if blocks == 1 { "block" } else { "blocks" };
        let text = format!(
            "verified {blocks} {noun} in {seconds:.2} s: all rows are correct; states from block {earliest_state} on; head {head}{by_hand}{waiting_text}"
        );
        let value = json!({
            "ok": difference.is_none(), "difference": difference.as_ref().map(difference_value), "blocks": blocks,
            "head": report::block(head), "earliest_state": earliest_state, "edited": edited, "waiting_edits": waiting, "seconds": seconds,
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
