//! A client built on node-types and ureq: reads the head and logs, makes a call, handles a problem, sends a
//! transaction.
//!
//! `cargo run -p node-types --example client -- http://127.0.0.1:8545 [RAW TRANSACTION]`

use node_types::wire::{
    BlockNumberOutput, CallInput, CallOutput, Data, GetBlockByNumberOutput, GetLogsInput, GetLogsOutput,
    GetStorageAtInput, GetStorageAtOutput, GetTransactionReceiptOutput, Problem, SendRawTransactionInput,
    SendRawTransactionOutput, TransactionCall,
};
use node_types::{Address, BlockId, BlockNumberOrTag};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().unwrap_or_else(|| "http://127.0.0.1:8545".to_owned());
    show(&Client::new(&base), arguments.next().as_deref(), &mut io::stdout())
}

/// Writes facts about the chain to `out`, and sends the transaction `raw`, in hex digits, if there is one.
pub(crate) fn show(client: &Client, raw: Option<&str>, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let BlockNumberOutput { block_number: head } = client.get("blockNumber/")?;
    let GetBlockByNumberOutput { block } = client.get(&format!("getBlockByNumber/{head}/false/"))?;
    let block = block.ok_or("the head left the chain")?;
    writeln!(out, "head {head}: {} of {} gas", block.gas_used, block.gas_limit)?;

    let from_block = Some(BlockNumberOrTag::Number(head.saturating_sub(99)));
    let range = GetLogsInput { from_block, to_block: Some(BlockNumberOrTag::Number(*head)), ..Default::default() };
    let GetLogsOutput { logs } = client.post("getLogs/", &range)?;
    writeln!(out, "{} logs in the last 100 blocks", logs.len())?;
    for log in logs.iter().take(3) {
        writeln!(out, "  {} with {} topics", log.address, log.topics.len())?;
    }

    // The precompiled contract at address 4 returns its input.
    let to = Some(Data(Address::from_low_u64_be(4)));
    let data = Some("0x68656c6c6f".parse()?);
    let call = CallInput { transaction: TransactionCall { to, data, ..Default::default() }, ..Default::default() };
    let CallOutput { data } = client.post("call/", &call)?;
    writeln!(out, "the call returned {data}")?;

    let beyond = GetStorageAtInput { block_number: BlockId::number(*head + 1_000), ..Default::default() };
    match client.post::<_, GetStorageAtOutput>("getStorageAt/", &beyond) {
        Ok(output) => writeln!(out, "the chain grew by 1,000 blocks meanwhile: {:#x}", output.value.0)?,
        Err(ClientError::Refused(problem)) if problem.problem_type.ends_with("/problems/block-not-found") => {
            writeln!(out, "no such block: {}", problem.detail)?;
        }
        Err(error) => return Err(error.into()),
    }

    if let Some(raw) = raw {
        let sent: SendRawTransactionOutput =
            client.post("sendRawTransaction/", &SendRawTransactionInput { data: raw.parse()? })?;
        let path = format!("getTransactionReceipt/{}/", sent.transaction_hash);
        let GetTransactionReceiptOutput { transaction_receipt: receipt } = client.get(&path)?;
        let block = receipt.and_then(|receipt| receipt.block_number);
        let place = block.map_or("the pool".to_owned(), |number| format!("block {number}"));
        writeln!(out, "{} is in {place}", sent.transaction_hash)?;
    }
    Ok(())
}

/// A client of one server.
pub(crate) struct Client {
    agent: Agent,
    base: String,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{} {}: {}", .0.status, .0.title, .0.detail)]
    Refused(Box<Problem>),
    #[error("no response")]
    Transport(#[from] ureq::Error),
}

impl Client {
    /// Creates a client of the server at `base`, which includes the base path.
    pub(crate) fn new(base: &str) -> Self {
        let timeout = Some(Duration::from_secs(30));
        // The bodies of problems have more information than their status.
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(timeout).build();
        Self { agent: config.new_agent(), base: base.trim_end_matches('/').to_owned() }
    }

    /// Calls an operation whose input is in the path.
    ///
    /// # Errors
    /// If the server responds with a problem, or does not respond.
    pub(crate) fn get<O: DeserializeOwned>(&self, path: &str) -> Result<O, ClientError> {
        read(self.agent.get(format!("{}/{path}", self.base)).call()?)
    }

    /// Calls an operation whose input is in the body.
    ///
    /// # Errors
    /// If the server responds with a problem, or does not respond.
    pub(crate) fn post<I: Serialize, O: DeserializeOwned>(&self, path: &str, input: &I) -> Result<O, ClientError> {
        read(self.agent.post(format!("{}/{path}", self.base)).send_json(input)?)
    }
}

fn read<O: DeserializeOwned>(mut response: Response<Body>) -> Result<O, ClientError> {
    if response.status().is_success() {
        Ok(response.body_mut().read_json()?)
    } else {
        Err(ClientError::Refused(response.body_mut().read_json()?))
    }
}
