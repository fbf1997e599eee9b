//! Queries of a damaged store: each returns the right result or an error.

use node_core::backend::suite::Random;
use node_core::backend::{BackendError, LogFilter, View};
use node_core::block::{BlockHashOrNumber, LogPosition};
use node_core::context::Context;
use node_core::logs::{self, PageSize};
use node_types::BlockNumber;
use std::fmt::{Debug, Display};

/// Counts of the results of queries.
#[derive(Debug)]
pub(super) struct Tally {
    /// The earliest state that the store must have.
    earliest: BlockNumber,
    pub(super) right: u64,
    pub(super) refused: u64,
}

impl Tally {
    /// Compares a result with that of the reference.
    fn take<T: Debug + PartialEq>(
        &mut self,
        [got, expected]: [Result<T, BackendError>; 2],
        question: impl Fn() -> String,
    ) {
        match got {
            Ok(got) => {
                assert_eq!(got, expected.unwrap(), "{}", question());
                self.right += 1;
            }
            Err(BackendError::Storage(_)) => self.refused += 1,
            Err(BackendError::StatePruned { block, earliest }) if block < earliest => {
                assert_eq!(earliest, self.earliest, "{}", question());
            }
            Err(error) => panic!("{}: {error:?}", question()),
        }
    }
}

/// Queries `view` and `reference`, which must have the same head, for everything as of every `step`th block. Queries of
/// states before `earliest` must fail as pruned.
pub(super) fn ask(view: &dyn View, reference: &dyn View, earliest: BlockNumber, step: usize) -> Tally {
    assert_eq!((view.head(), view.earliest_state()), (reference.head(), earliest));
    let head = reference.head().number;
    let (mut tally, views) = (Tally { earliest, right: 0, refused: 0 }, [view, reference]);
    let about = |what: &'static str, of: &dyn Display| format!("{what} {of}");
    for at in (0..=head).step_by(step) {
        let id = BlockHashOrNumber::Number(at);
        tally.take(views.map(|view| view.header(id)), || about("header", &at));
        tally.take(views.map(|view| view.body(id)), || about("body", &at));
        tally.take(views.map(|view| view.receipts(id)), || about("receipts", &at));
        tally.take(views.map(|view| view.canonical_hash(at)), || about("hash", &at));
        let transactions = reference.body(id).unwrap().unwrap().transactions.clone();
        for hash in transactions.iter().map(|transaction| transaction.hash) {
            tally.take(views.map(|view| view.transaction_position(hash)), || about("transaction", &hash));
        }
        for address in Random::addresses() {
            let question = |what| move || format!("{what} of {address:#x} as of {at}");
            tally.take(views.map(|view| view.state(at).and_then(|state| state.account(address))), question("account"));
            tally.take(
                views.map(|view| view.state(at).and_then(|state| state.has_storage(address))),
                question("storage"),
            );
            for slot in Random::slots() {
                let values = views.map(|view| view.state(at).and_then(|state| state.storage(address, slot)));
                tally.take(values, question("slot"));
            }
            let proofs = views.map(|view| view.state(at).and_then(|state| state.proof(address, &Random::slots())));
            tally.take(proofs, question("proof"));
            if let Ok(Some(account)) = reference.state(at).and_then(|state| state.account(address)) {
                let codes = views.map(|view| view.state(at).and_then(|state| state.code(account.code_hash)));
                tally.take(codes, question("code"));
            }
            let filter = LogFilter { addresses: vec![address], topics: Vec::new() };
            tally.take(views.map(|view| scan(view, &filter, at, head)), question("logs"));
        }
    }
    for topic in (0..8).map(|seed| Random(seed).topic()) {
        let filter = LogFilter { addresses: Vec::new(), topics: vec![vec![topic]] };
        tally.take(views.map(|view| scan(view, &filter, 0, head)), || about("logs", &topic));
    }
    tally.take(views.map(|view| view.fee_rows(0..=head)), || about("fees up to", &head));
    tally
}

fn scan(view: &dyn View, filter: &LogFilter, block: BlockNumber, to: BlockNumber) -> Result<String, BackendError> {
    let from = LogPosition { block, log_index: 0 };
    logs::scan(view, &Context::unbounded(), filter, from, to, PageSize::of_entries(100)).map(|scan| format!("{scan:?}"))
}
