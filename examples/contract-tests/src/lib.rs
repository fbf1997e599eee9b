//! Tests of a contract on a development chain in this process, through alloy.
//!
//! `cargo test -p example-contract-tests`
#![cfg(test)]

use alloy_primitives::U256;
use alloy_provider::Provider;
use alloy_sol_types::sol;
use futures_util::StreamExt;
use node_core::context::Context;
use node_dev::DevNode;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

sol! {
    /// Counts, and reports each count. The code is that of a compiler, or as here of an assembler.
    #[sol(rpc, bytecode = "60558060095f395ff35f3560e01c8063d09de08a14601b57638381f58a14604c575f5ffd5b5f54600101805f555f527f20d8a6f5a693f9d1d627a598e8820f7a55ee74c183aa8f1a30e8d4e8dd9a8d8460205fa1005b5f545f5260205ff3")]
    contract Counter {
        event Incremented(uint256 count);
        function increment() external;
        function number() external view returns (uint256);
        function missing() external view returns (uint256);
    }
}

#[tokio::test]
async fn a_contract_counts_and_reports() -> Result<()> {
    let chain = DevNode::spawn()?;
    let provider = chain.provider().await?;
    let counter = Counter::deploy(&provider).await?;
    let mut reports = counter.Incremented_filter().subscribe().await?.into_stream();
    // The wallet of the provider signs for every account of the chain.
    for (sender, count) in [(0, 1), (5, 2)] {
        let sender = chain.accounts()[sender].signer().address();
        let receipt = counter.increment().from(sender).send().await?.get_receipt().await?;
        assert_eq!((receipt.status(), receipt.from), (true, sender));
        let (report, _) = reports.next().await.ok_or("no event")??;
        assert_eq!((report.count, counter.number().call().await?), (U256::from(count), U256::from(count)));
    }
    Ok(())
}

#[tokio::test]
async fn a_snapshot_brings_the_count_back() -> Result<()> {
    let chain = DevNode::spawn()?;
    let provider = chain.provider().await?;
    let counter = Counter::deploy(&provider).await?;
    let snapshot: U256 = provider.raw_request("evm_snapshot".into(), ()).await?;
    counter.increment().send().await?.get_receipt().await?;
    let reverted: bool = provider.raw_request("evm_revert".into(), (snapshot,)).await?;
    assert!(reverted && counter.number().call().await?.is_zero());
    // The nonce is that of the chain again.
    counter.increment().send().await?.get_receipt().await?;
    assert_eq!(counter.number().call().await?, U256::from(1));
    Ok(())
}

#[tokio::test]
async fn heads_are_followed() -> Result<()> {
    let chain = DevNode::spawn()?;
    let provider = chain.provider().await?;
    let mut heads = provider.subscribe_blocks().await?.into_stream();
    for number in 1..=3 {
        chain.mine(&Context::unbounded(), 1, None, Vec::new())?;
        assert_eq!(heads.next().await.ok_or("no head")?.number, number);
    }
    Ok(())
}

#[tokio::test]
async fn a_revert_is_reported() -> Result<()> {
    let chain = DevNode::spawn()?;
    let counter = Counter::deploy(chain.provider().await?).await?;
    let error = counter.missing().call().await.err().ok_or("the contract has no such function")?;
    assert!(error.to_string().contains("execution reverted"), "{error}");
    Ok(())
}
