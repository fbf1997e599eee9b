//! Where a transaction is.

use super::{History, optional, raw};
use crate::contents::Kind;
use crate::error::{Needed, storage};
use node_core::backend::BackendError;
use node_core::block::TransactionPosition;
use node_types::wire::{Data, HashData, Quantity64};
use node_types::{Bytes, H256};
use serde::Deserialize;

/// What an endpoint says about a transaction. Both are `None` if no block contains it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    block_hash: Option<HashData>,
    transaction_index: Option<Quantity64>,
}

impl History {
    /// Returns the position of a transaction in an ancestor, or `None` if the upstream does not have it there. The block
    /// is verified to contain it.
    pub(crate) fn position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        if let Some(known) = self.base.contents().get(Kind::Position, hash).map_err(storage)?
            && let Some((block, index)) = decode(&known)
            && let Some(position) = self.checked(hash, block, index)?
        {
            return Ok(Some(position));
        }
        if self.absent.contains(hash) {
            return Ok(None);
        }
        let params = raw(format!("[\"{}\"]", Data(hash)))?;
        let claim = self.base.ask(
            1,
            || Needed::Transaction(hash),
            |upstream, context| optional(upstream.forward(context, "eth_getTransactionByHash", &params)),
        )?;
        let claim = claim.and_then(|claim| serde_json::from_str::<Option<Claim>>(claim.get()).ok().flatten());
        let position = match claim {
            Some(Claim { block_hash: Some(block), transaction_index: Some(index) }) => {
                let position = self.checked(hash, *block, *index)?;
                if position.is_some() {
                    self.base.contents().add(vec![(Kind::Position, hash, encode(*block, *index))]);
                }
                position
            }
            _ => None,
        };
        if position.is_none() {
            self.absent.insert(hash);
        }
        Ok(position)
    }

    /// Returns the position if the block is an ancestor and has the transaction there.
    fn checked(&self, hash: H256, block: H256, index: u64) -> Result<Option<TransactionPosition>, BackendError> {
        let Some(header) = self.block_before(block)? else { return Ok(None) };
        let number = header.header().number;
        let Ok(index) = usize::try_from(index) else { return Ok(None) };
        if self.hash(number)? != block {
            return Ok(None);
        }
        let body = self.sized_body(&header)?.value;
        let found = body.transactions.get(index).is_some_and(|transaction| transaction.hash == hash);
        Ok(found.then_some(TransactionPosition { block: number, index }))
    }
}

fn encode(block: H256, index: u64) -> Bytes {
    [&block.0[..], &index.to_be_bytes()].concat().into()
}

fn decode(bytes: &[u8]) -> Option<(H256, u64)> {
    let (block, index) = bytes.split_first_chunk()?;
    Some((H256(*block), u64::from_be_bytes(index.try_into().ok()?)))
}
