//! `ethnode verify`: checks every row of a folder.

use crate::chain::open;
use crate::command::report::{self, Report};
use crate::error::CommandError;
use crate::options::InspectOptions;
use node_core::backend::{BackendError, StateBackend};
use node_core::edits::count_pending_edits;
use node_evm::Secp256k1Recovery;
use node_http::Shutdown;
use node_store::{Difference, RowFault, Verified};
use serde_json::{Value, json};

/// Checks all rows up to the first difference, and reports that, or that there is none.
pub(crate) fn run(options: &InspectOptions) -> Result<(), CommandError> {
    let json = options.output.json;
    let shutdown = Shutdown::on_signals()?;
    let mut store = open::open_snapshot(&options.chain, "verify")?;
    let blocks = store.view()?.head().number + 1;
    let mut report = Report::start("verify", json, "verifying".to_owned(), blocks);
    let verified = store.verify(shutdown.context(), &Secp256k1Recovery, |block| {
        report.bar().set_position(block + 1);
        report.progress(|| format!("block {block} of {}", blocks - 1), || json!({"block": block}));
    });
    report.finish();
    let Verified { head, earliest_state, edited, difference } = match verified {
        Err(BackendError::Interrupted(_)) => return Err(CommandError::Interrupted),
        verified => verified?,
    };
    let seconds = report.elapsed().as_secs_f64();
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
