//! Changing the chain that a fork continues, while it is served.

use super::{Fork, OpenForkError};
use node_core::backend::{BackendError, StateBackend};
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::producer::{ForkControl, ForkInfo, ForkUse, ProducerError, Replace};
use node_evm::Secp256k1Recovery;
use node_fork::{Base, ForkBackend, ForkError};
use node_store::{Options, Store};
use node_types::{BlockId, BlockNumber};
use node_upstream::{Upstream, UpstreamOptions};
use std::sync::Arc;

/// Controls a fork.
pub(super) struct Control {
    pub(super) backend: Arc<ForkBackend>,
    /// The chain id of the other chain.
    pub(super) network: u64,
    pub(super) options: UpstreamOptions,
    /// Whether the chain is in a folder, which keeps its first block.
    pub(super) is_durable: bool,
}

impl Control {
    /// Returns the server at `url`, if its chain is the one that this one continues.
    fn upstream(&self, context: &Context, url: &str) -> Result<Upstream, ProducerError> {
        let refused = |error: &dyn std::error::Error| ProducerError::Fork(error.to_string());
        let upstream = Upstream::new(&[url], self.options.clone()).map_err(|error| refused(&error))?;
        let found = upstream.chain_id(context).map_err(|error| BackendError::from(ForkError::Upstream(error)))?;
        if found != self.network {
            let expected = self.network;
            return Err(ProducerError::Fork(format!(
                "the server has the chain {found}, the fork continues {expected}"
            )));
        }
        Ok(upstream)
    }
}

impl ForkControl for Control {
    fn info(&self) -> ForkInfo {
        let base = self.backend.base();
        let upstream = base.upstream();
        ForkInfo {
            endpoints: upstream.iter().flat_map(Upstream::endpoints).map(str::to_owned).collect(),
            chain_id: self.network,
            block: BlockRef { number: base.block().header().number, hash: base.block().hash() },
            retry_backoff: self.options.retry_backoff,
            is_verified: !base.trusts(),
        }
    }

    fn usage(&self) -> ForkUse {
        let base = self.backend.base();
        base.upstream().map_or_else(ForkUse::default, |upstream| ForkUse {
            endpoints: upstream.usage(),
            retries: upstream.retries(),
            state_gone: base.state_gone(),
        })
    }

    fn set_url(&self, context: &Context, url: &str) -> Result<(), ProducerError> {
        let upstream = self.upstream(context, url)?;
        let base = self.backend.base();
        upstream.header(context, base.block().hash().into()).map_err(|error| {
            ProducerError::Fork(format!("the server does not have the block that the fork begins with: {error}"))
        })?;
        base.set_upstream(upstream);
        Ok(())
    }

    fn prepare(
        &self,
        context: &Context,
        url: Option<&str>,
        block: Option<BlockNumber>,
    ) -> Result<Replace, ProducerError> {
        if self.is_durable {
            return Err(ProducerError::Fork("a fork in a folder keeps the block that it begins with".to_owned()));
        }
        let base = self.backend.base();
        let upstream = match url {
            Some(url) => self.upstream(context, url)?,
            None => base.upstream().ok_or_else(|| ProducerError::Fork(OpenForkError::NoUrl.to_string()))?,
        };
        let block = block.map_or_else(BlockId::latest, BlockId::number);
        let header = upstream.header(context, block).map_err(|error| BackendError::from(ForkError::Upstream(error)))?;
        let base = Base::new(Arc::clone(base.contents()), Some(upstream), header, base.options().clone());
        let first = node_fork::first_block(&base, Arc::new(Secp256k1Recovery))?;
        let store = Store::fork_in_memory(first, Arc::new(base.clone()), Options::in_memory())?;
        let backend = Arc::clone(&self.backend);
        Ok(Box::new(move || backend.replace(Arc::new(store), base)))
    }
}

impl Fork {
    /// Returns the whole chain, whose blocks after the other chain are in `store`, and its control.
    pub(crate) fn backend(
        self,
        store: Arc<dyn StateBackend>,
        is_durable: bool,
    ) -> Result<(Arc<ForkBackend>, Arc<dyn ForkControl>), BackendError> {
        let Self { base, network, options, .. } = self;
        let backend = Arc::new(ForkBackend::open(store, base, Arc::new(Secp256k1Recovery))?);
        let control = Control { backend: Arc::clone(&backend), network, options, is_durable };
        Ok((backend, Arc::new(control)))
    }
}
