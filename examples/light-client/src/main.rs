//! A light client: follows the heads of a node, and verifies an account and a slot that it reads at each.
//!
//! `cargo run -p example-light-client -- http://127.0.0.1:8545 ADDRESS SLOT HEADS START`
//!
//! `START` is the hash of the first block, from a source other than the server, or `latest` to trust the server with
//! it. Each later header must follow the one before it, so the server cannot show another chain without being noticed.

use node_types::wire::{GetHeaderOutput, GetProofInput, GetProofOutput, HashData};
use node_types::{BlockId, consensus::Header, verify_proof};
use std::{error::Error, thread::sleep, time::Duration};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, address, slot, heads, start] = &arguments[..] else {
        return Err("expected the URL of a server, an address, a slot, a number of heads, and a block".into());
    };
    let mut head = header(base, start)?.ok_or("the server does not have this block")?;
    if start.parse::<HashData>().is_ok_and(|trusted| *trusted != head.hash()) {
        return Err(format!("the server returned the block {:#x}", head.hash()).into());
    }
    for _ in 1..heads.parse::<u64>()? {
        show(base, &head, address, slot)?;
        head = next(base, &head)?;
    }
    show(base, &head, address, slot)
}

/// Shows an account and the value of its slot after the block of `header`, both verified.
fn show(base: &str, header: &Header, address: &str, slot: &str) -> Result<(), Box<dyn Error>> {
    let (address, storage_keys, hash) = (address.parse()?, vec![slot.parse()?], header.hash());
    let request = GetProofInput { address, storage_keys, block_number: BlockId::Hash(hash) };
    let mut response = ureq::post(format!("{base}/getProof/")).send_json(&request)?;
    let response: GetProofOutput = response.body_mut().read_json()?;
    let balance = verify_proof(header, &request, &response)?.unwrap_or_default().balance;
    println!("block {} ({hash:#x}): balance {balance}, slot {}", header.number, response.storage_proof[0].value);
    Ok(())
}

/// Waits for the block after `header`. Fails if the server has one that does not follow it.
fn next(base: &str, header: &Header) -> Result<Header, Box<dyn Error>> {
    loop {
        match self::header(base, &(header.number + 1).to_string())? {
            Some(next) if next.parent_hash == header.hash() => return Ok(next),
            Some(_) => return Err("the next block does not follow: the chain was reorganized".into()),
            None => sleep(Duration::from_secs(1)),
        }
    }
}

/// Returns a header, whose hash is computed from its fields, or `None` if the server does not have the block.
fn header(base: &str, block: &str) -> Result<Option<Header>, Box<dyn Error>> {
    let response: GetHeaderOutput = ureq::get(format!("{base}/getHeader/{block}/")).call()?.body_mut().read_json()?;
    Ok(response.header.map(|header| header.header()).transpose()?)
}
