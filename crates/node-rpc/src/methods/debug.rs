//! Encoded blocks, transactions and receipts.

use super::transactions::raw_transaction;
use crate::error::RpcError;
use crate::method::{Method, write};
use crate::scope::Scope;
use crate::wire::{Block32, BlockParam};
use node_core::cost::Cost;
use node_core::node::{FoundBlock, NodeError};
use node_types::consensus::Receipt;
use node_types::wire::{BytesData, Data};
use node_types::{BlockId, H256};

/// Bytes of a hash, the key of a trie node.
const HASH: usize = H256::len_bytes();

/// Bytes of the key of code.
const KEY: usize = 1 + HASH;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("debug_getRawHeader", &["block"], "A header as RLP.", |scope, (id,): (BlockParam,)| {
            encoded(found(scope, id)?.header.header.encode())
        }),
        Method::new("debug_getRawBlock", &["block"], "A block as RLP.", |scope, (id,): (BlockParam,)| {
            encoded(found(scope, id)?.encode())
        })
        .costing(|_, _| Cost::BLOCK),
        Method::new(
            "debug_getRawReceipts",
            &["block"],
            "The encoded receipts of a canonical block (EIP-2718).",
            |scope, (id,): (BlockParam,)| {
                let found = scope.node.get_receipts(scope.context, id.0).map_err(|error| match error {
                    NodeError::BlockNotFound { .. } => unknown(id),
                    error => error.into(),
                })?;
                Ok(found
                    .receipts
                    .iter()
                    .map(Receipt::encode)
                    .map(|bytes| Data(bytes.into()))
                    .collect::<Vec<BytesData>>())
            },
        )
        .costing(|_, _| Cost::BLOCK),
        Method::new(
            "debug_codeByHash",
            &["hash", "block?"],
            "Code by its Keccak-256; null if no account has had it.",
            |scope, (hash, block): (Block32, Option<BlockParam>)| {
                let block = block.map_or_else(BlockId::latest, |block| block.0);
                Ok(scope.node.get_code_by_hash(scope.context, hash.0, block)?.map(Data))
            },
        ),
        Method::writing(
            "debug_dbGet",
            &["key"],
            "Code by geth's database key: 0x63 and the code's Keccak-256. On development chains, a bare Keccak-256 returns a trie node.",
            |scope, (key,): (BytesData,), out| {
                let found = match (key.strip_prefix(b"c"), key.len()) {
                    (Some(hash), KEY) => {
                        scope.node.get_code_by_hash(scope.context, H256::from_slice(hash), BlockId::latest())?
                    }
                    (_, HASH) => {
                        let grant = |bytes| out.set_aside(bytes);
                        let node = scope.control()?.trie_node(scope.context, H256::from_slice(&key), grant)?;
                        out.return_aside();
                        node
                    }
                    _ => return Err(RpcError::argument(0, "expected a hash, or 0x63 and a hash")),
                };
                write(out, &found.map(Data).ok_or_else(|| RpcError::server("not found"))?)
            },
        )
        .long(),
        Method::new(
            "debug_getRawTransaction",
            &["hash"],
            "The encoded transaction, mined or in the pool; empty if it is unknown.",
            raw_transaction,
        ),
    ]
}

fn encoded(bytes: Vec<u8>) -> Result<BytesData, RpcError> {
    Ok(Data(bytes.into()))
}

fn found(scope: Scope<'_>, id: BlockParam) -> Result<FoundBlock, RpcError> {
    scope.node.get_block(scope.context, id.0)?.ok_or_else(|| unknown(id))
}

fn unknown(id: BlockParam) -> RpcError {
    RpcError::server(format!("block {} not found", id.0))
}
