//! Control of a development chain.

use super::call::{Price, check_tip};
use super::decode::{Decode, Faults, Input, ListLimit, ObjectDecoder, decode_array, decode_object, wire_objects};
use super::{AddressData, BytesData, HashData, Quantity, Quantity64, Quantity256, StorageKey, Transaction, Withdrawal};
use serde_json::value::RawValue;

wire_objects! {
    /// The request body of mine.
    request MineInput {
        /// Number of blocks; 1 if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocks: Option<Quantity64> = optional_or_default("Blocks") as MinedBlocks,
        /// Seconds between consecutive blocks. If absent, the clock determines the timestamps.
        #[serde(skip_serializing_if = "Option::is_none")]
        interval: Option<Quantity64> = optional_or_default("Interval") as Interval,
        /// Withdrawals of the first block.
        #[cfg_attr(feature = "schema", schema(required = false, max_items = 1024))]
        withdrawals: Vec<Withdrawal> = optional_or_default("Withdrawals") as Withdrawals,
        => |decoder| {
            let last = decoder.limits().last_timestamp;
            if let (Ok(blocks), Ok(Some(Quantity(interval)))) = (&blocks, &interval) {
                let blocks = blocks.map_or(1, |blocks| blocks.0);
                if blocks.saturating_mul(*interval) > last {
                    let blocks = format_args!("{blocks} blocks every {interval} s end too far in the future");
                    decoder.fault("Interval", format_args!("{blocks}; the last timestamp of a block is {last}"));
                }
            }
        }
    }

    /// The response of mine.
    response MineOutput {
        /// Hash of the new head.
        block_hash: HashData,
        /// Number of the new head.
        block_number: Quantity64,
    }

    /// The request body of setNextBlockTimestamp.
    request SetNextBlockTimestampInput {
        /// Unix time in seconds; later than the timestamp of the head.
        timestamp: Quantity64 = required("Timestamp"),
    }

    /// The request body of increaseTime.
    request IncreaseTimeInput {
        /// Number of seconds by which the clock of the chain advances.
        seconds: Quantity64 = required("Seconds"),
    }

    /// The request body of setNextBlockBaseFee.
    request SetNextBlockBaseFeeInput {
        /// New base fee in wei per gas.
        base_fee: Quantity64 = required("BaseFee"),
    }

    /// The response of operations that may have no effect.
    response ControlOutput {
        /// Whether the operation had an effect.
        result: bool,
    }

    /// The request body of revert, and the response of snapshot.
    request SnapshotId {
        /// Identifies the snapshot.
        snapshot_id: Quantity64 = required("SnapshotId"),
    }

    /// The request body of reorganize.
    request ReorganizeInput {
        /// Number of blocks to replace, counted from the head.
        blocks: Quantity64 = required("Blocks"),
    }

    /// The response of reorganize.
    response ReorganizeOutput {
        /// Hashes of the blocks that joined the chain, oldest first.
        added: Vec<HashData>,
        /// Hashes of the blocks that left the chain, newest first.
        removed: Vec<HashData>,
    }

    /// The response of fork.
    response ForkOutput {
        /// The chain that this one continues; null if there is none.
        fork: Option<ForkStatus>,
    }

    /// The chain that another one continues.
    response ForkStatus {
        /// Hash of the block of the other chain that this one begins with.
        block_hash: HashData,
        /// Number of that block.
        block_number: Quantity64,
        /// Chain id of the other chain.
        chain_id: Quantity64,
        /// The servers that the other chain is read from; empty if the fork is offline.
        endpoints: Vec<ForkEndpoint>,
        /// How often a message was repeated because it had failed at all servers.
        retries: Quantity64,
        /// What a server says if none has the state any longer that the fork begins with; null if they may have it.
        state_gone: Option<String>,
        /// Whether the state of the other chain comes with proofs; otherwise it is the servers' word.
        verified: bool,
    }

    /// How a server of the other chain was used since it was set.
    response ForkEndpoint {
        /// Length of its responses in bytes, after decompression.
        bytes: Quantity64,
        /// Number of messages without a proper response.
        failures: Quantity64,
        /// Why the last message has no proper response; null if it has one, or nothing was sent yet.
        last_failure: Option<String>,
        /// Host and port.
        name: String,
        /// Number of requests that were sent.
        requests: Quantity64,
    }

    /// The request body of setForkUrl.
    request SetForkUrlInput {
        /// URL of a server of the other chain, over HTTP or WebSocket.
        url: String = required("Url"),
    }

    /// The request body of reset.
    request ResetInput {
        /// Number of the block of the other chain to begin with, not a hash. If only `Url` is present, the newest one.
        #[serde(skip_serializing_if = "Option::is_none")]
        block_number: Option<Quantity64> = optional("BlockNumber"),
        /// URL of a server of the other chain, which may end with `@` and a block. If only `BlockNumber` is present, the
        /// present ones are used.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String> = optional("Url"),
    }

    /// The response of reset.
    response ResetOutput {
        /// Hash of the head.
        block_hash: HashData,
        /// Number of the head.
        block_number: Quantity64,
    }

    /// The request body of impersonate and stopImpersonating.
    request ImpersonateInput {
        /// The account.
        address: AddressData = required("Address"),
    }

    /// The request body of sendTransaction.
    request SendTransactionInput {
        /// The transaction to send.
        transaction: UnsignedTransaction = required("Transaction"),
    }

    /// A transaction of an impersonated account, or of one whose key the node has.
    request UnsignedTransaction {
        /// Call data; creation code if `To` is absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<BytesData> = optional("Data"),
        /// Sender, which must be impersonated, or an account whose key the node has.
        from: AddressData = required("From"),
        /// Gas limit; estimated if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        gas: Option<Quantity64> = optional("Gas"),
        /// Highest price that the sender pays, in wei per gas; a suggested price if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_fee_per_gas: Option<Quantity256> = optional_or_default("MaxFeePerGas") as Price,
        /// Highest tip for the producer, in wei per gas; a suggested tip if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_priority_fee_per_gas: Option<Quantity256> = optional_or_default("MaxPriorityFeePerGas") as Price,
        /// Nonce; the next nonce of the sender if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        nonce: Option<Quantity64> = optional("Nonce"),
        /// Recipient; if absent, a contract is created.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<AddressData> = optional("To"),
        /// Amount to transfer, in wei.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Quantity256> = optional("Value"),
        => |decoder| {
            if let (Ok(cap), Ok(tip)) = (&max_fee_per_gas, &max_priority_fee_per_gas) {
                check_tip(decoder, *cap, *tip);
            }
        }
    }

    /// The request body of setBalance.
    request SetBalanceInput {
        /// The account.
        address: AddressData = required("Address"),
        /// New balance in wei.
        balance: Quantity256 = required("Balance"),
    }

    /// The request body of setNonce.
    request SetNonceInput {
        /// The account.
        address: AddressData = required("Address"),
        /// New nonce.
        nonce: Quantity64 = required("Nonce"),
    }

    /// The request body of setCode.
    request SetCodeInput {
        /// The account.
        address: AddressData = required("Address"),
        /// New code; none if absent.
        #[cfg_attr(feature = "schema", schema(required = false))]
        code: BytesData = optional_or_default("Code"),
    }

    /// The request body of setStorage.
    request SetStorageInput {
        /// The account.
        address: AddressData = required("Address"),
        /// Storage slot.
        position: StorageKey = required("Position"),
        /// New value of the slot.
        value: Quantity256 = required("Value"),
    }

    /// The request body of dropTransaction.
    request DropTransactionInput {
        /// Hash of the transaction.
        transaction_hash: HashData = required("TransactionHash"),
    }

    /// The response of poolContent.
    response PoolContentOutput {
        /// Transactions that the next block can contain, by sender and nonce.
        pending: Vec<Transaction>,
        /// Transactions that wait for a lower nonce or for balance.
        queued: Vec<Transaction>,
    }
}

impl SendTransactionInput {
    /// Returns the sender in a body that may have faults elsewhere, or `None` if it has faults itself.
    pub fn sender_of(body: &[u8]) -> Option<AddressData> {
        let mut ignored = Faults::default();
        let raw: &RawValue = serde_json::from_slice(body).ok()?;
        ObjectDecoder::new(Input::body(raw), Self::PROPERTIES, &mut ignored)?.read("Transaction", |transaction| {
            let mut ignored = Faults::default();
            ObjectDecoder::new(transaction, UnsignedTransaction::PROPERTIES, &mut ignored)?.required("From").ok()
        })
    }
}

/// Maximum number of withdrawals of a block. The consensus layer requests at most 16.
const MAX_WITHDRAWALS: ListLimit = ListLimit { most: 1_024, option: None };

decode_object! {
    Withdrawal {
        address: required("Address"),
        amount: required("Amount"),
        index: required("Index") as Quantity,
        validator_index: required("ValidatorIndex") as Quantity,
    }
}

/// A number of blocks to mine.
#[derive(Default)]
struct MinedBlocks(Option<Quantity64>);

impl Decode for MinedBlocks {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let most = faults.limits().mined_blocks;
        at_most(most, input, faults).map(Some).map(Self)
    }
}

/// The time between blocks, in seconds.
#[derive(Default)]
struct Interval(Option<Quantity64>);

impl Decode for Interval {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let most = faults.limits().last_timestamp;
        at_most(most, input, faults).map(Some).map(Self)
    }
}

fn at_most(most: u64, input: Input<'_>, faults: &mut Faults) -> Option<Quantity64> {
    let number = Quantity64::decode(input, faults)?;
    if number.0 > most {
        input.fault(format_args!("expected a number of at most {most}"), faults);
        return None;
    }
    Some(number)
}

#[derive(Default)]
struct Withdrawals(Vec<Withdrawal>);

impl Decode for Withdrawals {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        decode_array(input, "withdrawals", MAX_WITHDRAWALS, faults).map(Self)
    }
}
