//! Development chains in a test or a tool: several run independently at the same time, with reproducible results.
//!
//! `cargo run -p node-dev --example embedded`

use node_core::context::Context;
use node_dev::DevNode;
use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
use node_types::{Address, BlockId, Bytes, H256};
use std::error::Error;
use std::thread;

/// Creation code of a contract that increments its first slot with each call: `sstore(0, add(sload(0), 1))`.
const COUNTER: [u8; 20] =
    [0x60, 8, 0x60, 12, 0x60, 0, 0x39, 0x60, 8, 0x60, 0, 0xf3, 0x5f, 0x54, 0x60, 1, 0x01, 0x5f, 0x55, 0x00];

fn main() -> Result<(), Box<dyn Error>> {
    let chains: Vec<_> =
        (0..4).map(|calls| thread::spawn(move || count(calls).map_err(|error| error.to_string()))).collect();
    for (calls, chain) in chains.into_iter().enumerate() {
        let (head, counted) = chain.join().map_err(|_| "a chain panicked")??;
        println!("{calls} calls counted {counted}; head {head:#x}");
        assert_eq!(counted, calls as u64);
    }
    Ok(())
}

/// Runs a chain with `calls` calls of the counter. Returns the hash of its head and the count.
fn count(calls: u64) -> Result<(H256, u64), Box<dyn Error>> {
    let chain = DevNode::spawn()?;
    let context = Context::unbounded();
    let alice = &chain.accounts()[0];
    let mut nonce = 0;
    let mut send = |to: Option<Address>, input: Bytes| {
        let body = DynamicFeeTransaction {
            chain_id: chain.spec().chain_id,
            nonce,
            max_fee_per_gas: 2_000_000_000.into(),
            max_priority_fee_per_gas: 1.into(),
            gas_limit: 100_000,
            to,
            input,
            ..Default::default()
        };
        nonce += 1;
        chain.send_transaction(&context, alice.sign(TransactionBody::DynamicFee(body)))
    };

    // Each transaction is mined by the time `send` returns.
    let deployment = send(None, Bytes::from(COUNTER.to_vec()))?;
    let deployed = chain.get_transaction(&context, deployment)?.ok_or("not mined")?;
    let counter = deployed.recovered().created_address();
    let before = chain.control(&context)?.snapshot()?;
    for _ in 0..calls {
        send(Some(counter), Bytes::new())?;
    }
    // The clock only advances on request.
    if let Some(clock) = chain.clock() {
        clock.advance(3_600_000);
    }
    let head = chain.mine(&context, 1, None, Vec::new())?.hash;

    let slot = |block| chain.get_storage_at(&context, counter, H256::zero(), block).map(|value| value.low_u64());
    let counted = slot(BlockId::latest())?;
    // Every state since genesis can be read and proven.
    assert_eq!(slot(BlockId::number(1))?, 0);
    let proof = chain.get_proof(&context, counter, &[H256::zero()], BlockId::latest())?;
    assert_eq!(proof.storage[0].value.low_u64(), counted);

    chain.revert(&context, before)?;
    assert_eq!(slot(BlockId::latest())?, 0);
    Ok((head, counted))
}
