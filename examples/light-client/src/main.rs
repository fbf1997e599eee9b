//! A light client: follows the heads of a node, and verifies an account and a slot that it reads at each.
//!
//! `cargo run -p example-light-client -- http://127.0.0.1:8545 ADDRESS [SLOT] [HEADS] [TRUSTED HASH]`
//!
//! The hash of the first header should come from a source other than the server. Each later header must follow the one before
//! it, so the server cannot show another chain without being noticed.

use node_types::consensus::Header;
use node_types::wire::{AddressData, GetHeaderOutput, GetProofInput, GetProofOutput, HashData, StorageKey};
use node_types::{BlockId, verify_proof};
use std::{error::Error, thread::sleep, time::Duration};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().ok_or("the address of a server is missing")?;
    let address = arguments.next().ok_or("the address of an account is missing")?.parse()?;
    let slot = arguments.next().as_deref().unwrap_or("0").parse()?;
    let heads: u64 = arguments.next().as_deref().unwrap_or("1").parse()?;
    let mut head = header(&base, "latest")?.ok_or("the server has no chain")?;
    if arguments.next().map(|trusted| trusted.parse::<HashData>()).transpose()?.is_some_and(|hash| *hash != head.hash())
    {
        return Err(format!("the server's head has the hash {:#x}", head.hash()).into());
    }
    for _ in 1..heads {
        show(&base, &head, address, slot)?;
        head = next(&base, &head)?;
    }
    show(&base, &head, address, slot)
}

/// Shows an account and the value of its slot after the block of `header`, both verified.
fn show(base: &str, header: &Header, address: AddressData, slot: StorageKey) -> Result<()> {
    let request = GetProofInput { address, storage_keys: vec![slot], block_number: BlockId::Hash(header.hash()) };
    let response =
        ureq::post(format!("{base}/getProof/")).send_json(&request)?.body_mut().read_json::<GetProofOutput>()?;
    let account = verify_proof(header, &request, &response)?.unwrap_or_default();
    let (number, hash, value) = (header.number, header.hash(), response.storage_proof[0].value);
    println!("block {number} ({hash:#x}): balance {}, slot {value}", account.balance);
    Ok(())
}

/// Waits for the block after `header`. Fails if the server has one that does not follow it.
fn next(base: &str, header: &Header) -> Result<Header> {
    loop {
        match self::header(base, &(header.number + 1).to_string())? {
            Some(next) if next.parent_hash == header.hash() => return Ok(next),
            Some(_) => return Err("the next block does not follow: the chain was reorganized".into()),
            None => sleep(Duration::from_secs(1)),
        }
    }
}

/// Returns a header, whose hash is computed from its fields, or `None` if the server does not have the block.
fn header(base: &str, block: &str) -> Result<Option<Header>> {
    let response: GetHeaderOutput = ureq::get(format!("{base}/getHeader/{block}/")).call()?.body_mut().read_json()?;
    Ok(response.header.map(|header| header.header()).transpose()?)
}
