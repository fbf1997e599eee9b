//! Accounts, storage and proofs.

use super::operation::Operation;
use crate::convert::output;
use crate::problem::page::ProblemPage::{
    self, BlockNotFound, ExecutionFailed, LimitExceeded, NoStateRoot, StatePruned,
};
use node_core::cost::Cost;
use node_core::node::Node;
use node_types::wire::{
    AccountInput, Data, GetAccountInput, GetBalanceOutput, GetCodeOutput, GetProofInput, GetStorageAtInput,
    GetStorageAtOutput, Quantity, TransactionCountOutput, Word,
};

/// Problems of operations that read a state, including that of the pending block.
const STATE: &[ProblemPage] = &[BlockNotFound, StatePruned, ExecutionFailed, LimitExceeded];

/// Problems of operations that prove what they read.
const PROOF: &[ProblemPage] = &[BlockNotFound, StatePruned, NoStateRoot, ExecutionFailed, LimitExceeded];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/getStorageAt/",
            "Read a storage slot",
            "Returns the value of a storage slot of an account as of a block; zero if nothing was written to it.",
        )
        .problems(STATE)
        .body(
            |_, input: &GetStorageAtInput| Cost::of_reading(input.block_number),
            |node, context, GetStorageAtInput { address, block_number, position }| {
                let value = node.get_storage_at(context, address.0, position.0, block_number)?;
                Ok(GetStorageAtOutput { value: Word(value) })
            },
        ),
        Operation::post(
            "/getProof/",
            "Read an account with Merkle proofs",
            "Returns an account and storage slots as of a block, with the trie nodes that prove them against the block's state root \
             (EIP-1186). For an account or slot that does not exist, the proof is an exclusion proof. There are no proofs at `pending`, nor \
             for an account that was edited after the block.",
        )
        .limits("1,024 storage keys (`max-storage-keys`).")
        .problems(PROOF)
        .body(
            |node, input: &GetProofInput| Cost::of_proof(node.proves_quickly(), input.storage_keys.len()),
            |node, context, GetProofInput { address, block_number, storage_keys }| {
                let slots: Vec<_> = storage_keys.iter().map(|key| key.0).collect();
                let proof = node.get_proof(context, address.0, &slots, block_number)?;
                Ok(output::proof(address.0, proof))
            },
        ),
        Operation::get(
            "/getAccount/{Address}/{BlockNumber}/",
            "Read an account",
            "Returns balance, nonce, code hash and storage root of an account as of a block. Not available at `pending`, which has no \
             state trie.",
        )
        .problems(PROOF)
        .parameters(
            // The storage root is from a proof.
            |node, _: &GetAccountInput| Cost::of_proof(node.proves_quickly(), 0),
            |node, context, input| {
                Ok(output::account(&node.get_account(context, input.address.0, input.block_number)?))
            },
        ),
        Operation::get(
            "/getBalance/{Address}/",
            "Read a balance",
            "Returns the balance of an account in wei as of a block.",
        )
        .problems(STATE)
        .parameters(
            cost,
            |node, context, input| {
                let balance = node.get_balance(context, input.address.0, input.block_number)?;
                Ok(GetBalanceOutput { balance: Quantity(balance) })
            },
        ),
        Operation::get(
            "/getCode/{Address}/",
            "Read code",
            "Returns the code of an account as of a block; `0x` if it has none.",
        )
        .problems(STATE)
        .parameters(
            cost,
            |node, context, input| {
                Ok(GetCodeOutput { bytecode: Data(node.get_code(context, input.address.0, input.block_number)?) })
            },
        ),
        Operation::get(
            "/getTransactionCount/{Address}/{BlockNumber}/",
            "Read a nonce",
            "Returns the number of transactions that an account has sent, which is its next nonce. At `pending`, transactions in the \
             pool count as sent.",
        )
        .problems(STATE)
        .parameters(
            cost,
            |node, context, input| {
                let count = node.get_transaction_count(context, input.address.0, input.block_number)?;
                Ok(TransactionCountOutput { transaction_count: Quantity(count) })
            },
        ),
    ]
}

fn cost(_: &Node, input: &AccountInput) -> Cost {
    Cost::of_reading(input.block_number)
}
