//! A light client: follows the heads of a node, and verifies an account and a slot that it reads at each.
//!
//! `cargo run -p example-light-client -- http://127.0.0.1:8545 ADDRESS [SLOT] [HEADS] [TRUSTED HASH]`
//!
//! The hash of the first header should come from a source other than the server. Each later header must follow the one before
//! it, so the server cannot show another chain without being noticed.

use node_types::consensus::{Account, Header};
use node_types::wire::{AddressData, GetHeaderOutput, GetProofInput, GetProofOutput, HashData, StorageKey};
use node_types::{BlockId, U256, verify_proof};
use std::error::Error;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().ok_or("the address of a server is missing")?;
    let address: AddressData = arguments.next().ok_or("the address of an account is missing")?.parse()?;
    let slot: StorageKey = arguments.next().as_deref().unwrap_or("0").parse()?;
    let heads: usize = arguments.next().as_deref().unwrap_or("1").parse()?;
    let mut head = header(&base, "latest")?.ok_or("the server has no chain")?;
    if let Some(trusted) = arguments.next()
        && trusted.parse::<HashData>()? != head.hash().into()
    {
        return Err(format!("the server's head has the hash {:#x}", head.hash()).into());
    }
    for seen in 1.. {
        let (account, value) = read(&base, &head, address, slot)?;
        let balance = account.map(|account| account.balance).unwrap_or_default();
        println!("block {} ({:#x}): balance {balance}, slot {value}", head.number, head.hash());
        if seen >= heads {
            break;
        }
        head = next(&base, &head)?;
    }
    Ok(())
}

/// Returns an account and the value of its slot after the block of `header`, both verified.
fn read(base: &str, header: &Header, address: AddressData, slot: StorageKey) -> Result<(Option<Account>, U256)> {
    let request = GetProofInput { address, storage_keys: vec![slot], block_number: BlockId::Hash(header.hash()) };
    let url = format!("{base}/getProof/");
    let response: GetProofOutput = ureq::post(url).send_json(&request)?.body_mut().read_json()?;
    let account = verify_proof(header, &request, &response)?;
    Ok((account, *response.storage_proof[0].value))
}

/// Waits for the block after `header`. Fails if the server has one that does not follow it.
fn next(base: &str, header: &Header) -> Result<Header> {
    loop {
        match self::header(base, &(header.number + 1).to_string())? {
            Some(next) if next.parent_hash == header.hash() => return Ok(next),
            Some(other) => {
                return Err(format!("block {} does not follow: the chain was reorganized", other.number).into());
            }
            None => std::thread::sleep(Duration::from_secs(1)),
        }
    }
}

/// Returns a header, whose hash is computed from its fields, or `None` if the server does not have the block.
fn header(base: &str, block: &str) -> Result<Option<Header>> {
    let response: GetHeaderOutput = ureq::get(format!("{base}/getHeader/{block}/")).call()?.body_mut().read_json()?;
    Ok(response.header.map(|header| header.header()).transpose()?)
}
