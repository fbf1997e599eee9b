//! `ethnode stats`: shows how much a folder stores.

use crate::chain::open;
use crate::command::report;
use crate::error::CommandError;
use crate::options::InspectOptions;
use node_core::edits::earliest_known_state;
use node_fork::ContentsStats;
use node_store::{Stats, TableStats};
use serde_json::{Value, json};
use std::fmt;

/// Counts the rows and bytes of each table.
pub(crate) fn run(options: &InspectOptions) -> Result<(), CommandError> {
    let store = open::open_snapshot_of_files(&options.chain, "stats")?;
    let files = store.stats()?;
    // Moves the rows of the log to runs, so that they are counted.
    store.flush()?;
    let earliest_state = earliest_known_state(&store)?;
    let stats = Stats { tables: store.stats()?.tables, earliest_state, ..files };
    let fetched = open::fetched(&options.chain, "stats")?;
    let mut value = value(&stats);
    value["fetched"] = json!(fetched.map(|fetched| json!({"entries": fetched.entries, "bytes": fetched.bytes})));
    report::result("stats", options.output.json, Text(&stats, fetched), value)
}

fn sum(stats: &Stats, of: impl Fn(&TableStats) -> u64) -> u64 {
    stats.tables.iter().map(of).sum()
}

fn value(stats: &Stats) -> Value {
    let table = |table: &TableStats| {
        json!({
            "name": table.name, "rows": table.rows, "bytes": table.stored_bytes, "disk_bytes": table.disk_bytes,
        })
    };
    json!({
        "head": report::block(stats.head), "earliest_state": stats.earliest_state,
        "tables": stats.tables.iter().map(table).collect::<Vec<_>>(),
        "rows": sum(stats, |table| table.rows),
        "bytes": sum(stats, |table| table.stored_bytes),
        "bytes_per_block": stats.bytes_per_block(),
        "changed_leaves": stats.changed_leaves(), "trie_bytes_per_leaf": stats.trie_bytes_per_leaf(),
        "runs": stats.runs, "run_bytes": stats.run_bytes, "next_merge_bytes": stats.next_merge_bytes,
        "log_file_bytes": stats.log_file_bytes,
    })
}

/// The statistics as text.
struct Text<'a>(&'a Stats, Option<ContentsStats>);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(stats, fetched) = self;
        writeln!(f, "{:<14} {:>12} {:>15} {:>15}", "table", "rows", "bytes", "bytes on disk")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, rows, bytes, on_disk| {
            writeln!(f, "{name:<14} {rows:>12} {bytes:>15} {on_disk:>15}")
        };
        for table in &stats.tables {
            line(f, &table.name, table.rows, table.stored_bytes, table.disk_bytes)?;
        }
        let [rows, bytes] = [sum(stats, |table| table.rows), sum(stats, |table| table.stored_bytes)];
        line(f, "total", rows, bytes, sum(stats, |table| table.disk_bytes))?;
        writeln!(f)?;
        writeln!(f, "head {}, states from block {} on", stats.head, stats.earliest_state)?;
        writeln!(f, "{:.0} bytes on disk per block", stats.bytes_per_block())?;
        let (leaves, bytes) = (stats.changed_leaves(), stats.trie_bytes_per_leaf());
        writeln!(f, "{bytes:.1} bytes of tries on disk for each of {leaves} changed leaves")?;
        let Stats { runs, run_bytes, next_merge_bytes, log_file_bytes, .. } = stats;
        write!(
            f,
            "files: {runs} runs with {run_bytes} bytes (next merge: {next_merge_bytes}), log {log_file_bytes} bytes"
        )?;
        match fetched {
            Some(fetched) => {
                write!(f, "\nread of the other chain: {} entries, {} bytes", fetched.entries, fetched.bytes)
            }
            None => Ok(()),
        }
    }
}
