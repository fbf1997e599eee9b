use super::*;
use alloy_network::{Ethereum, Network, TransactionBuilder};
use alloy_primitives::U256;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Long enough for any step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a transfer of `amount` wei to the second account.
fn transfer(chain: &DevNode, amount: u64) -> <Ethereum as Network>::TransactionRequest {
    let to = chain.accounts()[1].signer().address();
    <Ethereum as Network>::TransactionRequest::default().with_to(to).with_value(U256::from(amount))
}

#[tokio::test]
async fn every_account_signs_and_the_first_by_default() {
    let chain = DevNode::spawn().unwrap();
    let provider = chain.provider().await.unwrap();
    let accounts = provider.get_accounts().await.unwrap();
    let addresses: Vec<_> = chain.accounts().iter().map(|account| account.signer().address()).collect();
    assert_eq!(accounts, addresses);
    let senders = [None, Some(addresses[9])];
    for (nonce, sender) in [0, 0].into_iter().zip(senders) {
        let request = transfer(&chain, 1);
        let request = match sender {
            Some(sender) => request.with_from(sender),
            None => request,
        };
        let receipt = provider.send_transaction(request).await.unwrap().get_receipt().await.unwrap();
        assert_eq!((receipt.status(), receipt.from), (true, sender.unwrap_or(addresses[0])));
        assert_eq!(provider.get_transaction_count(receipt.from).await.unwrap(), nonce + 1);
    }
}

#[tokio::test]
async fn transactions_of_the_pool_are_reported() {
    let chain = DevNode::spawn().unwrap();
    let provider = chain.provider().await.unwrap();
    let mut arrivals = provider.subscribe_pending_transactions().await.unwrap();
    for amount in 1..=40 {
        let sent = *provider.send_transaction(transfer(&chain, amount)).await.unwrap().tx_hash();
        assert_eq!(timeout(PATIENCE, arrivals.recv()).await.unwrap().unwrap(), sent);
    }
}

#[tokio::test]
async fn pages_of_notifications_arrive_in_order() {
    let chain = DevNode::spawn().unwrap();
    let provider = chain.provider().await.unwrap();
    let mut heads = provider.subscribe_blocks().channel_size(256).await.unwrap();
    chain.mine(&Context::unbounded(), 200, None, Vec::new()).unwrap();
    for number in 1..=200 {
        assert_eq!(timeout(PATIENCE, heads.recv()).await.unwrap().unwrap().number, number);
    }
    assert_eq!(provider.get_block_number().await.unwrap(), 200);
}

#[tokio::test]
async fn a_dropped_provider_frees_what_it_held() {
    let chain = DevNode::spawn().unwrap();
    let before = Arc::strong_count(chain.node());
    let provider = chain.provider().await.unwrap();
    let heads = provider.subscribe_blocks().await.unwrap();
    assert!(Arc::strong_count(chain.node()) > before);
    drop((provider, heads));
    let freed = async {
        while Arc::strong_count(chain.node()) > before {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, freed).await.unwrap();
}

#[tokio::test]
async fn a_provider_holds_the_chain() {
    let chain = DevNode::spawn().unwrap();
    let provider = chain.provider().await.unwrap();
    let mut heads = provider.subscribe_blocks().await.unwrap();
    let request = transfer(&chain, 1);
    drop(chain);
    let receipt = provider.send_transaction(request).await.unwrap().get_receipt().await.unwrap();
    assert_eq!((receipt.status(), receipt.block_number), (true, Some(1)));
    assert_eq!(timeout(PATIENCE, heads.recv()).await.unwrap().unwrap().number, 1);
}

#[test]
fn requests_fail_after_the_runtime_has_ended() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let chain = DevNode::spawn().unwrap();
    let ended = runtime();
    let provider = ended.block_on(chain.provider()).unwrap();
    drop(ended);
    let request = async { timeout(PATIENCE, provider.get_block_number()).await.unwrap() };
    let error = runtime().block_on(request).unwrap_err();
    assert!(matches!(error, TransportError::Transport(TransportErrorKind::BackendGone)), "{error:?}");
}

#[test]
fn a_provider_needs_a_runtime() {
    let chain = DevNode::spawn().unwrap();
    let error = futures_util::FutureExt::now_or_never(chain.provider()).unwrap().unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
