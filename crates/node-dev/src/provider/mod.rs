//! In-process alloy providers of a development chain.

use crate::{DevAccount, DevNode};
use alloy_json_rpc::PubSubItem;
use alloy_network::EthereumWallet;
use alloy_provider::fillers::BlobGasFiller;
use alloy_provider::{DynProvider, Provider, ProviderBuilder};
use alloy_pubsub::{ConnectionHandle, ConnectionInterface, PubSubConnect};
use alloy_signer_local::PrivateKeySigner;
use alloy_transport::{TransportError, TransportErrorKind, TransportResult};
use node_core::backend::{HeadChange, HeadListener};
use node_core::context::Context;
use node_core::node::Node;
use node_core::pool::PoolListener;
use node_rpc::{Client, Reply, Rpc, RpcLimits, Session, SessionLimits};
use node_types::H256;
use serde_json::value::RawValue;
use std::future::ready;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

impl DevNode {
    /// Returns an alloy provider of this chain. Its requests are JSON-RPC messages that do not leave the process, and
    /// it supports subscriptions. It estimates gas, sets nonces, and signs with the keys of the chain's accounts; the
    /// first account is the sender of transactions without one.
    ///
    /// Nonces are read from the chain for each transaction, so the chain may be reverted at any time. Send
    /// transactions of one account one after another, or set their nonces.
    ///
    /// Requests run one after another, on the blocking threads of the tokio runtime in which this is called. They may
    /// control the chain (`evm_mine` and similar methods). Providers of the same chain are independent of one
    /// another. A provider keeps the chain alive even if the [`DevNode`] is dropped. After the runtime has shut down,
    /// requests fail with [`TransportErrorKind::BackendGone`].
    ///
    /// # Errors
    /// If this is called outside of a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// use alloy_provider::Provider;
    /// use node_dev::DevNode;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let chain = DevNode::spawn()?;
    /// let provider = chain.provider().await?;
    /// assert_eq!(provider.get_block_number().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn provider(&self) -> TransportResult<DynProvider> {
        // alloy would panic without a runtime.
        tokio::runtime::Handle::try_current().map_err(TransportErrorKind::custom)?;
        let connection = InProcess { node: self.node().clone() };
        // The recommended fillers, except that nonces are read from the chain each time, since it may be reverted.
        let builder = ProviderBuilder::default()
            .with_gas_estimation()
            .filler(BlobGasFiller::default())
            .with_simple_nonce_management()
            .fetch_chain_id()
            .wallet(self.wallet());
        Ok(builder.connect_pubsub_with(connection).await?.erased())
    }

    /// Returns a wallet with the keys of all accounts. The first account signs by default.
    pub fn wallet(&self) -> EthereumWallet {
        let mut signers = self.accounts().iter().map(DevAccount::signer);
        let mut wallet = signers.next().map_or_else(EthereumWallet::default, EthereumWallet::new);
        signers.for_each(|signer| wallet.register_signer(signer));
        wallet
    }
}

impl DevAccount {
    /// Returns an alloy signer with the key of this account.
    pub fn signer(&self) -> PrivateKeySigner {
        let key = self.secret().to_bytes();
        PrivateKeySigner::from_slice(&key).expect("the key of an account is valid")
    }
}

/// Connects alloy to a node in this process.
struct InProcess {
    node: Arc<Node>,
}

impl PubSubConnect for InProcess {
    fn is_local(&self) -> bool {
        true
    }

    async fn connect(&self) -> TransportResult<ConnectionHandle> {
        let (handle, interface) = ConnectionHandle::new();
        let signal = Arc::new(Signal(watch::Sender::new(())));
        self.node.subscribe(&signal);
        self.node.pool().subscribe(&signal);
        let connection = Connection {
            rpc: Rpc::new(self.node.clone(), RpcLimits::default()),
            node: self.node.clone(),
            session: Session::new(SessionLimits::default()),
        };
        tokio::spawn(serve(Arc::new(connection), signal, interface));
        Ok(handle)
    }
}

/// Notified when the chain or the pool changes.
struct Signal(watch::Sender<()>);

impl HeadListener for Signal {
    fn head_changed(&self, _: &HeadChange) {
        self.0.send_replace(());
    }
}

impl PoolListener for Signal {
    fn transaction_added(&self, _: H256) {
        self.0.send_replace(());
    }
}

/// The JSON-RPC interface with the subscriptions of one provider.
struct Connection {
    rpc: Rpc,
    node: Arc<Node>,
    session: Session,
}

impl Connection {
    /// Returns the response to a message, or `None` if the message is a notification.
    fn respond(&self, message: &RawValue) -> Option<Vec<u8>> {
        let client = Client { session: Some(&self.session), control: Ok(()), ..Client::default() };
        let reply: Reply = match self.rpc.read(message.get().as_bytes()) {
            Ok(message) => self.rpc.respond(&Context::holding_view(), &message, client),
            Err(error) => error.into(),
        };
        reply.calls.iter().for_each(|call| call.log_failure(None));
        reply.body
    }

    /// Returns the next page of notifications, which is empty if nothing has changed.
    fn notifications(&self) -> Vec<Vec<u8>> {
        // If the chain cannot be read, reading is retried after the next change.
        self.session.notifications(&self.node, &Context::unbounded()).unwrap_or_default()
    }
}

/// Responds to requests, and sends notifications after changes, until the provider is dropped.
async fn serve(connection: Arc<Connection>, signal: Arc<Signal>, mut interface: ConnectionInterface) {
    let mut changes = signal.0.subscribe();
    // Whether there may be more notifications.
    let mut must_read = false;
    loop {
        let message = tokio::select! {
            message = interface.recv_from_frontend() => match message {
                Some(message) => Some(message),
                None => return,
            },
            // The sender is not dropped before this function returns.
            _ = changes.changed(), if !must_read => None,
            () = ready(()), if must_read => None,
        };
        let worker = connection.clone();
        let work = spawn_blocking(move || {
            let response = message.and_then(|message| worker.respond(&message));
            (response, worker.notifications())
        });
        let sent = match work.await {
            Ok((response, notifications)) => {
                must_read = !notifications.is_empty();
                response.into_iter().chain(notifications).try_for_each(|message| send(&interface, &message))
            }
            // The node panicked.
            Err(error) => Err(TransportErrorKind::non_retryable(error)),
        };
        if let Err(error) = sent {
            return interface.close_with_transport_error(error);
        }
    }
}

/// Sends a response or a notification to the provider.
fn send(interface: &ConnectionInterface, message: &[u8]) -> Result<(), TransportError> {
    let item = serde_json::from_slice::<PubSubItem>(message).map_err(TransportErrorKind::non_retryable)?;
    interface.send_to_frontend(item).map_err(|_| TransportErrorKind::backend_gone())
}

#[cfg(test)]
mod tests;
