//! A client of JSON-RPC with alloy's provider, which compares the newest header's hash with the one that node-types
//! computes.
//!
//! `cargo run -p example-rpc-client -- http://127.0.0.1:8545`

use alloy_provider::{Provider, ProviderBuilder};
use node_types::alloy::{ToAlloy, ToNode};
use node_types::{BlockId, consensus::Header};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("expected the URL of a server")?;
    let provider = ProviderBuilder::new().connect(&url).await?;
    let head = provider.get_block(BlockId::latest().to_alloy()).await?.ok_or("the server has no blocks")?;
    let header = Header::try_from(&head.header.inner)?;
    if header.hash() != head.header.hash.to_node() {
        return Err(format!("the header of block {} does not have the hash {}", header.number, head.header.hash).into());
    }
    let balance = provider.get_balance(header.beneficiary.to_alloy()).await?;
    println!("block {} ({:#x}): the beneficiary has {balance} wei", header.number, header.hash());
    Ok(())
}
