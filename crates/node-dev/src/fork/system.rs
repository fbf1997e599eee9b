//! What every block reads of the system contracts.

use node_core::backend::{BackendError, BaseRead, BaseState};
use node_evm::{
    BEACON_ROOTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS, HISTORY_STORAGE_ADDRESS, WITHDRAWAL_REQUESTS_ADDRESS,
};
use node_fork::Base;
use node_types::{Address, H256};

/// A contract that queues requests (EIP-7002, EIP-7251).
struct Queue {
    address: Address,
    /// The number of slots of a request.
    slots: u64,
}

const QUEUES: [Queue; 2] = [
    Queue { address: WITHDRAWAL_REQUESTS_ADDRESS, slots: 3 },
    Queue { address: CONSOLIDATION_REQUESTS_ADDRESS, slots: 4 },
];

/// The slots with the indexes of the first request in the queue, and of the one after the last.
const HEAD: u64 = 2;
const TAIL: u64 = 3;

/// The first slot of the first request. Those before it are the excess, the count, and the indexes.
const FIRST: u64 = 4;

/// Maximum number of requests in a queue that are fetched in advance.
const MAX_REQUESTS: u64 = 256;

/// Fetches `reads`, and what every block reads of the system contracts whatever its number and time, so that an offline
/// fork can make blocks.
pub(super) fn fetch_with(base: &Base, mut reads: Vec<BaseRead>) -> Result<(), BackendError> {
    let read =
        |address, slots: Vec<u64>| BaseRead { address, slots: slots.into_iter().map(H256::from_low_u64_be).collect() };
    reads.extend([BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS].map(|address| read(address, Vec::new())));
    reads.extend(QUEUES.map(|queue| read(queue.address, (0..FIRST).collect())));
    base.fetch(&reads)?;
    let mut waiting = Vec::new();
    for Queue { address, slots } in QUEUES {
        let [head, tail] = [HEAD, TAIL].map(|slot| base.storage(address, H256::from_low_u64_be(slot)));
        let (head, tail) = (head?.low_u64(), tail?.low_u64());
        if head < tail {
            let end = tail.min(head.saturating_add(MAX_REQUESTS));
            let slot = |index: u64| index.saturating_mul(slots).saturating_add(FIRST);
            waiting.push(read(address, (slot(head)..slot(end)).collect()));
        }
    }
    if waiting.is_empty() { Ok(()) } else { base.fetch(&waiting) }
}
