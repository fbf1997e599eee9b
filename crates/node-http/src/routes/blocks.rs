//! Blocks and their contents.

use super::operation::Operation;
use crate::convert::output;
use crate::exchange::{Exchange, Job};
use crate::problem::HttpError;
use crate::problem::page::ProblemPage::{self, BlockNotFound, ExecutionFailed, LimitExceeded, StatePruned};
use actix_web::HttpResponse;
use node_core::block::Body;
use node_core::cost::Cost;
use node_core::node::Node;
use node_rpc::{BlockKey, Interface};
use node_types::BlockId as Id;
use node_types::wire::{
    BlockHashInput, BlockNumberInput, Data, GetBlockByHashInput, GetBlockByHashOutput, GetBlockByNumberInput,
    GetBlockByNumberOutput, GetBlockReceiptsOutput, GetHeaderOutput, GetRawBlockOutput, GetRawHeaderOutput,
    GetRawReceiptsOutput, Quantity, TransactionCountOutput, UncleCountOutput,
};

/// Problems of operations that may have to execute the pending block.
const PENDING: &[ProblemPage] = &[ExecutionFailed, LimitExceeded];
const BLOCK: &[ProblemPage] = &[BlockNotFound, ExecutionFailed, LimitExceeded];
/// Problems of operations that may have to execute side blocks again.
const SIDE_BLOCK: &[ProblemPage] = &[StatePruned, LimitExceeded];
const KNOWN: &[ProblemPage] = &[BlockNotFound];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get(
            "/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/",
            "Read a block by number",
            "Returns the block with this number or tag, or null if there is none. `pending` is the block that would be built from the pool \
             now; its number, hash, nonce and logs bloom are null.",
        )
        .takes::<GetBlockByNumberInput>()
        .problems(PENDING)
        .links(&[("getBlockByHash", "Hash", "Block/Hash"), ("getBlockReceipts", "BlockNumber", "Block/Number")])
        .output::<GetBlockByNumberOutput>()
        .handler(get_block_by_number),
        Operation::get(
            "/getBlockByHash/{Hash}/{TransactionDetailFlag}/",
            "Read a block by hash",
            "Returns the block with this hash, including one that left the canonical chain, or null if there is none.",
        )
        .takes::<GetBlockByHashInput>()
        .problems(SIDE_BLOCK)
        .output::<GetBlockByHashOutput>()
        .handler(get_block_by_hash),
        Operation::get(
            "/getBlockReceipts/{BlockNumber}/",
            "Read the receipts of a block",
            "Returns a receipt for each transaction of the block, in block order.",
        )
        .problems(BLOCK)
        .parameters(
            whole_cost,
            |node, context, input| {
                let transaction_receipts = output::receipts(&node.get_receipts(context, input.block_number)?);
                Ok(GetBlockReceiptsOutput { transaction_receipts })
            },
        ),
        Operation::get(
            "/getHeader/{BlockNumber}/",
            "Read a header",
            "Returns the header of a block with all fields, or null if there is none. A hash may be that of a block that left the canonical \
             chain.",
        )
        .problems(PENDING)
        .parameters(cost, |node, context, input| {
            let header = node.get_header(context, input.block_number)?;
            Ok(GetHeaderOutput {
                header: header.map(|header| output::header(&header, input.block_number.is_pending())),
            })
        }),
        Operation::get(
            "/getRawHeader/{BlockNumber}/",
            "Read the bytes of a header",
            "Returns the RLP of a header, whose Keccak-256 is the hash of the block, or null if there is none.",
        )
        .problems(PENDING)
        .parameters(cost, |node, context, input| {
            let header = node.get_header(context, input.block_number)?;
            Ok(GetRawHeaderOutput { data: header.map(|sealed| Data(sealed.header.encode().into())) })
        }),
        Operation::get(
            "/getRawBlock/{BlockNumber}/",
            "Read the bytes of a block",
            "Returns the RLP of a block: header, transactions, ommers and withdrawals; null if there is none.",
        )
        .problems(PENDING)
        .parameters(
            whole_cost,
            |node, context, input| {
                let block = node.get_block(context, input.block_number)?;
                Ok(GetRawBlockOutput { data: block.map(|block| Data(block.encode().into())) })
            },
        ),
        Operation::get(
            "/getRawReceipts/{BlockNumber}/",
            "Read the bytes of the receipts of a block",
            "Returns the encoded receipt (EIP-2718) of each transaction of the block, in block order.",
        )
        .problems(BLOCK)
        .parameters(
            whole_cost,
            |node, context, input| {
                let found = node.get_receipts(context, input.block_number)?;
                Ok(GetRawReceiptsOutput { receipts: found.receipts.iter().map(|receipt| Data(receipt.encode().into())).collect() })
            },
        ),
        Operation::get(
            "/getBlockTransactionCountByHash/{Hash}/",
            "Count transactions of a block by hash",
            "Returns the number of transactions in the block.",
        )
        .problems(KNOWN)
        .immutable_parameters(
            |_, _: &BlockHashInput| Cost::Instant,
            |node, context, input| Ok(transaction_count(&*node.get_body(context, input.hash.0)?)),
        ),
        Operation::get(
            "/getBlockTransactionCountByNumber/{BlockNumber}/",
            "Count transactions of a block by number",
            "Returns the number of transactions in the block.",
        )
        .problems(BLOCK)
        .parameters(
            cost,
            |node, context, input| Ok(transaction_count(&*node.get_canonical_body(context, input.block_number)?)),
        ),
        Operation::get(
            "/getUncleCountByBlockHash/{Hash}/",
            "Count uncles of a block by hash",
            "Returns the number of uncles of the block; zero since the merge.",
        )
        .problems(KNOWN)
        .immutable_parameters(
            |_, _: &BlockHashInput| Cost::Instant,
            |node, context, input| Ok(uncle_count(&*node.get_body(context, input.hash.0)?)),
        ),
        Operation::get(
            "/getUncleCountByBlockNumber/{BlockNumber}/",
            "Count uncles of a block by number",
            "Returns the number of uncles of the block; zero since the merge.",
        )
        .problems(BLOCK)
        .parameters(
            cost,
            |node, context, input| Ok(uncle_count(&*node.get_canonical_body(context, input.block_number)?)),
        ),
    ]
}

fn get_block_by_number(exchange: Exchange) -> impl Future<Output = HttpResponse> {
    let input = exchange.parameters(|parameters| parameters.input(&[]));
    let input = input.map(|input: GetBlockByNumberInput| (input.block_number.into(), input.transaction_detail));
    get_block(exchange, input)
}

fn get_block_by_hash(exchange: Exchange) -> impl Future<Output = HttpResponse> {
    let input = exchange.parameters(|parameters| parameters.input(&[]));
    let input = input.map(|input: GetBlockByHashInput| (input.hash.0.into(), input.transaction_detail));
    get_block(exchange, input)
}

/// Responds with a block, with full transactions if the flag is set. Uses the cache of serialized blocks if possible.
async fn get_block(exchange: Exchange, input: Result<(Id, bool), HttpError>) -> HttpResponse {
    let (block, detail) = match input {
        Ok(input) => input,
        Err(error) => return exchange.run(Err(error)).await,
    };
    // The block is read after its hash, and the head that the response shows must be that of the same view.
    let context = exchange.service().consistent_context(&exchange.sender().client);
    let node = &exchange.service().node;
    // This may wait for the disk: whether the response is immutable must not depend on what is in memory.
    let Ok(Some(hash)) = node.get_block_hash(&context, block) else {
        // This is the pending block, a block that does not exist, or one whose lookup fails again.
        let job = Job::new(Cost::of_block(block), move |node, context| {
            let block = node.get_block(context, block)?.map(|block| output::block(&block, detail));
            Ok(GetBlockByNumberOutput { block }.into())
        });
        return exchange.run_under(context, Ok(job)).await;
    };
    let job = Job::block(block, BlockKey { hash, whole: detail, interface: Interface::Transport });
    let exchange = if matches!(block, Id::Hash(_)) { exchange.immutable() } else { exchange };
    exchange.run_under(context, Ok(job)).await
}

fn transaction_count(body: &Body) -> TransactionCountOutput {
    TransactionCountOutput { transaction_count: Quantity(body.transactions.len() as u64) }
}

fn uncle_count(body: &Body) -> UncleCountOutput {
    UncleCountOutput { uncle_count: Quantity(body.ommers.len() as u64) }
}

fn cost(_: &Node, input: &BlockNumberInput) -> Cost {
    Cost::of_reading(input.block_number)
}

fn whole_cost(_: &Node, input: &BlockNumberInput) -> Cost {
    Cost::of_block(input.block_number)
}
