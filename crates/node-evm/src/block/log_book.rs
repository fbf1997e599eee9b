//! The indices of the logs in a simulated block.
//!
//! Logs are numbered as in geth: a reverted log also uses up an index, which no other log in the block gets.

/// Numbers the logs of a simulated block.
#[derive(Debug)]
pub(crate) struct LogBook {
    /// Whether transfers of ether are logged.
    pub(crate) trace_transfers: bool,
    /// Number of logs in the block so far, including reverted ones.
    count: u64,
    /// One entry for each log of the current transaction, possibly followed by entries of reverted logs.
    entries: Vec<LogEntry>,
}

/// The metadata of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) index: u64,
    /// Whether the log represents a transfer of ether and was not emitted by code.
    pub(crate) is_transfer: bool,
}

impl LogBook {
    /// Creates the log book of a block without logs.
    pub(crate) fn new(trace_transfers: bool) -> Self {
        Self { trace_transfers, count: 0, entries: Vec::new() }
    }

    /// Starts the next transaction of the block.
    pub(crate) fn begin_transaction(&mut self) {
        self.entries.clear();
    }

    /// Returns the entries of a transaction that ended with `count` logs.
    pub(crate) fn entries(&self, count: usize) -> &[LogEntry] {
        &self.entries[..count.min(self.entries.len())]
    }

    /// Adds an entry for the last of the transaction's current `logs` logs. Existing entries from there on belong to
    /// reverted logs and are removed.
    pub(crate) fn add(&mut self, logs: usize, is_transfer: bool) {
        self.entries.truncate(logs.saturating_sub(1));
        self.entries.push(LogEntry { index: self.count, is_transfer });
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverted_logs_keep_their_numbers() {
        let mut book = LogBook::new(true);
        book.add(1, true);
        book.add(2, false);
        // The second log was reverted and another one takes its place.
        book.add(2, false);
        let entry = |index, is_transfer| LogEntry { index, is_transfer };
        assert_eq!(book.entries(2), [entry(0, true), entry(2, false)]);
        assert_eq!(book.entries(1), [entry(0, true)]);
        assert_eq!(book.entries(0), []);
        book.begin_transaction();
        book.add(1, false);
        assert_eq!(book.entries(1), [entry(3, false)]);
    }
}
