//! Logs and fees over ranges of blocks.

use super::reading::filled;
use super::sentence::{Succeeds, equals, fails, returns};
use super::{Content, Open, Random, TestChain, TestTransaction};
use crate::backend::{BackendError, LogFilter, LogSearch};
use crate::block::LogPosition;
use crate::context::{Context, Interrupted};
use node_types::U256;
use node_types::consensus::Log;
use std::fmt;
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

/// Returns whether `log` matches `filter`, according to the documentation of [`LogFilter`].
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
    check_candidates(random, &chain, &|search| view.log_candidates(&Context::unbounded(), search).succeeds());
}

type Candidates<'a> = &'a dyn Fn(LogSearch<'_>) -> Vec<LogPosition>;

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
        let search = LogSearch { filter: &filter, from, to, limit };
        let (got, case) = (candidates(search), Case(search));
        let within = |position: &LogPosition| *position >= from && position.block <= to;
        assert!(got.len() <= limit, "{case}: the backend returned {} positions", got.len());
        if let Some(pair) = got.windows(2).find(|pair| pair[0] >= pair[1]) {
            panic!("{case}: expected ascending positions, the backend returned {} before {}", At(pair[0]), At(pair[1]));
        }
        for position in &got {
            let exists = logs.iter().any(|(other, _)| other == position);
            let what = if exists { "outside of the range" } else { "where there is no log" };
            assert!(within(position) && exists, "{case}: the backend returned {}, {what}", At(*position));
        }
        let scanned = |position: &LogPosition| got.len() < limit || got.last().is_some_and(|last| position <= last);
        for (position, log) in &logs {
            if within(position) && asks_for(&filter, log) {
                // Matches are counted regardless of the candidates, which may include every position up to the limit.
                matches += 1;
                let is_complete = !scanned(position) || got.contains(position);
                assert!(is_complete, "{case}: the matching log at {} is missing", At(*position));
            }
        }
    }
    assert!(matches > 400, "the suite generated filters that match only {matches} logs; this is a defect of the suite");
}

/// A search; displayed in words.
struct Case<'a>(LogSearch<'a>);

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogSearch { filter: LogFilter { addresses, topics }, from, to, limit } = self.0;
        let (addresses, topics) = (addresses.len(), topics.len());
        write!(f, "at most {limit} log candidates from {} up to block {to}, of ", At(from))?;
        write!(f, "{addresses} addresses (0: any) with {topics} topics")
    }
}

/// A position; displayed in words.
struct At(LogPosition);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log {} of block {}", self.0.log_index, self.0.block)
    }
}

pub(super) fn log_scans_can_be_interrupted(open: Open<'_>) {
    let chain = Random(101).chain(10);
    let view = filled(open, &chain).view().succeeds();
    let context = Context::unbounded().with_timeout(Duration::ZERO);
    let from = LogPosition { block: 0, log_index: 0 };
    let candidates =
        view.log_candidates(&context, LogSearch { filter: &LogFilter::default(), from, to: 10, limit: 100 });
    fails("log candidates after the deadline", candidates, "Interrupted(DeadlineExceeded)", |error| {
        matches!(error, BackendError::Interrupted(Interrupted::DeadlineExceeded))
    });
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
        equals(format_args!("the number of fee rows of blocks {first} to {last}"), rows.len() as u64, last - first + 1);
        for (number, row) in (first..).zip(rows) {
            let header = chain.blocks()[number as usize].header.clone();
            equals(format_args!("the header in the fee row of block {number}"), row.header, header);
            let expected = number.checked_sub(1).map(|index| blocks[index as usize].1);
            let expected: Vec<_> =
                expected.iter().flatten().map(|(tip, gas): &(u64, u64)| (U256::from(*tip), *gas)).collect();
            equals(format_args!("the tips in the fee row of block {number}"), &*row.tips, &expected);
        }
    }
    #[allow(clippy::reversed_empty_ranges, reason = "an empty range is the case")]
    let none = view.fee_rows(2..=1);
    returns("the fee rows of an empty range", none, Vec::new());
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
        check_candidates(random, &chain, &|search| within(search.from, search.to, search.limit));
    }

    #[test]
    #[should_panic(expected = "is missing")]
    fn a_backend_must_not_leave_out_a_match() {
        let mut random = Random(100);
        let chain = random.chain(60);
        check_candidates(random, &chain, &|_| Vec::new());
    }
}
