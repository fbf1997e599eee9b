//! Where a transaction is.

use super::{History, optional, raw};
use crate::contents::Kind;
use crate::error::{Needed, storage};
use node_core::backend::BackendError;
use node_core::block::TransactionPosition;
use node_types::wire::{Data, HashData, Quantity64};
use node_types::{Bytes, H256};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an endpoint says about a transaction. Block and index are `None` if no block contains it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    hash: HashData,
    block_hash: Option<HashData>,
    transaction_index: Option<Quantity64>,
}

/// The position of a transaction, or why it could not be checked.
type Position = Result<Option<TransactionPosition>, BackendError>;

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
        let position = self.base.ask(
            1,
            || Needed::Transaction(hash),
            |upstream, context| {
                let read = |result: &RawValue| self.claimed_position(hash, result);
                optional(upstream.forward_checked(context, "eth_getTransactionByHash", &params, read))
            },
        )?;
        let position = position.transpose()?.flatten();
        if position.is_none() {
            self.absent.insert(hash);
        }
        Ok(position)
    }

    /// Reads what an endpoint says about a transaction, and checks it. Returns `None` if it does not have the transaction in a
    /// block.
    fn claimed_position(&self, hash: H256, result: &RawValue) -> Result<Option<Position>, String> {
        let claim: Option<Claim> = serde_json::from_str(result.get()).map_err(|error| error.to_string())?;
        let Some(claim) = claim else { return Ok(None) };
        if *claim.hash != hash {
            return Err(format!("transaction {:#x}", *claim.hash));
        }
        let (block, index) = match (claim.block_hash, claim.transaction_index) {
            (None, None) => return Ok(None),
            (Some(block), Some(index)) => (*block, *index),
            _ => return Err("the block or the index is missing".to_owned()),
        };
        let position = match self.plain_header(block) {
            // A block that this fork does not have.
            Ok(Some(header)) if header.header().number >= self.end() => return Ok(Some(Ok(None))),
            Ok(_) => self.checked(hash, block, index),
            Err(error) => Err(error),
        };
        if let Ok(None) = position {
            return Err(format!("it is not in block {block:#x} at {index}, or that is not a block of this chain"));
        }
        if let Ok(Some(_)) = position {
            self.base.contents().add(vec![(Kind::Position, hash, encode(block, index))]);
        }
        Ok(Some(position))
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
