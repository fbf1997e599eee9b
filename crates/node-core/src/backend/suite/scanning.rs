//! Logs and fees over ranges of blocks.

use super::reading::filled;
use super::{Content, Open, Random, Succeeds, TestChain, TestTransaction};
use crate::backend::{BackendError, LogFilter};
use crate::block::LogPosition;
use crate::context::{Context, Interrupted};
use node_types::U256;
use node_types::consensus::Log;
use std::time::Duration;

/// Returns all logs of `chain` with their positions, in order.
fn all_logs(chain: &TestChain) -> Vec<(LogPosition, &Log)> {
    let of_block = |block: &'_ crate::block::ExecutedBlock| block.header.header.number;
    let logs = chain.blocks().iter().flat_map(|block| {
        let logs = block.receipts.iter().flat_map(|receipt| &receipt.logs);
        (0..).zip(logs).map(move |(log_index, log)| (LogPosition { block: of_block(block), log_index }, log))
    });
    logs.collect()
}

/// Whether `log` matches `filter`, by the documentation of [`LogFilter`].
fn asks_for(filter: &LogFilter, log: &Log) -> bool {
    let address = filter.addresses.is_empty() || filter.addresses.contains(&log.address);
    let topic = |(position, words): (usize, &Vec<_>)| match log.topics.get(position) {
        Some(topic) => words.is_empty() || words.contains(topic),
        None => false,
    };
    address && filter.topics.iter().enumerate().all(topic)
}

pub(super) fn log_candidates_are_complete(open: Open<'_>) {
    let mut random = Random(100);
    let chain = random.chain(60);
    let view = filled(open, &chain).view().succeeds();
    check_candidates(random, &chain, &|filter, from, to, limit| {
        view.log_candidates(&Context::unbounded(), filter, from, to, limit).succeeds()
    });
}

/// Returns candidates for a filter, from a position up to a block, with a limit.
type Candidates<'a> = &'a dyn Fn(&LogFilter, LogPosition, u64, usize) -> Vec<LogPosition>;

fn check_candidates(mut random: Random, chain: &TestChain, candidates: Candidates<'_>) {
    let logs = all_logs(chain);
    let mut matches = 0;
    for _ in 0..500 {
        let filter = LogFilter {
            addresses: (0..random.below(3)).map(|_| random.address()).collect(),
            topics: (0..random.below(5)).map(|_| (0..random.below(3)).map(|_| random.topic()).collect()).collect(),
        };
        let from = LogPosition { block: random.below(61), log_index: random.below(4) };
        let (to, limit) = (random.below(61), random.below(12) as usize);
        let got = candidates(&filter, from, to, limit);
        let case = format!("{filter:?} from {from:?} to {to}, at most {limit}: {got:?}");
        let within = |position: &LogPosition| *position >= from && position.block <= to;
        assert!(got.len() <= limit, "there are more positions than the limit, {case}");
        assert!(got.is_sorted_by(|a, b| a < b), "the positions are not ascending, {case}");
        for position in &got {
            let exists = logs.iter().any(|(other, _)| other == position);
            assert!(within(position) && exists, "{position:?} is not the position of a log in the range, {case}");
        }
        let scanned = |position: &LogPosition| got.len() < limit || got.last().is_some_and(|last| position <= last);
        for (position, log) in &logs {
            if within(position) && asks_for(&filter, log) {
                // Counted whatever the backend returns, which may be every position up to the limit.
                matches += 1;
                assert!(!scanned(position) || got.contains(position), "the log at {position:?} is missing, {case}");
            }
        }
    }
    assert!(matches > 400, "the suite generated filters that match only {matches} logs; this is a defect of the suite");
}

pub(super) fn log_scans_can_be_interrupted(open: Open<'_>) {
    let chain = Random(101).chain(10);
    let view = filled(open, &chain).view().succeeds();
    let context = Context::unbounded().with_timeout(Duration::ZERO);
    let from = LogPosition { block: 0, log_index: 0 };
    let answer = view.log_candidates(&context, &LogFilter::default(), from, 10, 100);
    assert!(matches!(answer, Err(BackendError::Interrupted(Interrupted::DeadlineExceeded))), "{answer:?}");
}

pub(super) fn fee_rows(open: Open<'_>) {
    let transaction = |tip_cap, fee_cap, gas_used| TestTransaction { tip_cap, fee_cap, gas_used, logs: Vec::new() };
    let transactions = vec![
        transaction(5, 100, 21_000),
        transaction(3, 12, 50_000),
        transaction(5, 100, 30_000),
        transaction(9, 11, 1),
    ];
    let blocks = [
        (None, [(3, 50_000), (5, 21_000), (5, 30_000), (9, 1)]),
        (Some(10), [(1, 1), (2, 50_000), (5, 21_000), (5, 30_000)]),
        (Some(11), [(0, 1), (1, 50_000), (5, 21_000), (5, 30_000)]),
    ];
    let mut chain = TestChain::new(Content::default());
    for (base_fee, _) in blocks {
        chain.push(Content { base_fee, transactions: transactions.clone(), ..Content::default() });
    }
    let view = filled(open, &chain).view().succeeds();
    for (first, last) in [(0, 3), (1, 3), (2, 2), (0, 0)] {
        let rows = view.fee_rows(first..=last).succeeds();
        assert_eq!(rows.len() as u64, last - first + 1);
        for (number, row) in (first..).zip(rows) {
            assert_eq!(row.header, chain.blocks()[number as usize].header);
            let expected = number.checked_sub(1).map(|index| blocks[index as usize].1);
            let expected: Vec<_> =
                expected.iter().flatten().map(|(tip, gas): &(u64, u64)| (U256::from(*tip), *gas)).collect();
            assert_eq!(*row.tips, expected, "block {number}");
        }
    }
    #[allow(clippy::reversed_empty_ranges, reason = "an empty range is the case")]
    let none = view.fee_rows(2..=1).succeeds();
    assert_eq!(none, []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_without_an_index_may_return_every_position() {
        let mut random = Random(100);
        let chain = random.chain(60);
        let all: Vec<_> = all_logs(&chain).into_iter().map(|(position, _)| position).collect();
        let within = |from: LogPosition, to: u64, limit: usize| {
            all.iter().copied().filter(|at| *at >= from && at.block <= to).take(limit).collect::<Vec<_>>()
        };
        check_candidates(random, &chain, &|_, from, to, limit| within(from, to, limit));
    }

    #[test]
    #[should_panic(expected = "is missing")]
    fn a_backend_must_not_leave_out_a_match() {
        let mut random = Random(100);
        let chain = random.chain(60);
        check_candidates(random, &chain, &|_, _, _, _| Vec::new());
    }
}
