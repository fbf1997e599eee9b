//! Changing the chain that a fork continues, while it is served.

use super::url::ForkUrl;
use super::{Fork, ForkPoint, InvalidForkUrl, OpenForkError, reads_of, system};
use node_core::backend::{BackendError, StateBackend};
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::producer::{ForkBlock, ForkControl, ForkInfo, ForkUse, ProducerError, Replace};
use node_evm::Secp256k1Recovery;
use node_fork::{Base, ForkBackend, ForkError};
use node_store::{Options, Store};
use node_types::Address;
use node_upstream::{Upstream, UpstreamError, UpstreamOptions};
use std::sync::Arc;

/// Controls a fork.
pub(super) struct Control {
    pub(super) backend: Arc<ForkBackend>,
    /// The chain id of the other chain.
    pub(super) network: u64,
    pub(super) is_network_given: bool,
    pub(super) options: UpstreamOptions,
    /// Accounts that are read first.
    pub(super) accounts: Vec<Address>,
    /// Whether the chain is in a folder, which keeps its first block.
    pub(super) is_durable: bool,
    /// Whether the fork began just before a transaction, and not just after a block.
    pub(super) replays: bool,
}

impl Control {
    /// Returns the server at `url`, if its chain is the one that this one continues.
    fn upstream(&self, context: &Context, url: &str) -> Result<Upstream, ProducerError> {
        // Someone waits for the result, and may repeat it.
        let options = UpstreamOptions { retries: self.options.retries.min(1), ..self.options.clone() };
        let upstream = Upstream::new(&[url], options).map_err(|error| refused(&error))?;
        let found = upstream.chain_id(context).map_err(unavailable)?;
        if found != self.network {
            let expected = self.network;
            return Err(ProducerError::Fork(format!(
                "the server has the chain {found}, the fork continues {expected}"
            )));
        }
        if self.backend.base().is_read_by(context, &upstream).map_err(unavailable)? {
            return Err(ProducerError::Fork("the server reads this fork, which cannot read itself".to_owned()));
        }
        Upstream::new(&[url], self.options.clone()).map_err(|error| refused(&error))
    }

    /// Returns an error about a block that is not the first one of this fork, which keeps that.
    fn keeps_its_block(&self) -> ProducerError {
        let number = self.backend.base().block().header().number;
        let before = if self.replays { ", and the transactions that it repeats" } else { "" };
        ProducerError::Fork(format!("a fork in a folder keeps the block that it begins with, block {number}{before}"))
    }
}

fn refused(error: &dyn std::error::Error) -> ProducerError {
    ProducerError::Fork(error.to_string())
}

fn unavailable(error: UpstreamError) -> ProducerError {
    BackendError::from(ForkError::Upstream(error)).into()
}

impl ForkControl for Control {
    fn info(&self) -> ForkInfo {
        let base = self.backend.base();
        ForkInfo {
            endpoints: base.upstream().iter().flat_map(Upstream::origins).collect(),
            chain_id: self.network,
            is_chain_id_given: self.is_network_given,
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
        let ForkUrl { url, point } = url.parse().map_err(|error: InvalidForkUrl| refused(&error))?;
        let base = self.backend.base();
        let block = base.block();
        if point.is_some_and(|point| point.is(block, None) != Some(true)) {
            let number = block.header().number;
            return Err(ProducerError::Fork(format!("the fork begins with block {number}; a reset can change that")));
        }
        let upstream = self.upstream(context, &url)?;
        match upstream.header(context, block.hash().into()) {
            Ok(_) => base.set_upstream(upstream),
            Err(error @ (UpstreamError::NotFound { .. } | UpstreamError::Refused { .. })) => {
                return Err(ProducerError::Fork(format!(
                    "the server does not have the block that the fork begins with: {error}"
                )));
            }
            Err(error) => return Err(unavailable(error)),
        }
        Ok(())
    }

    fn prepare(
        &self,
        context: &Context,
        url: Option<&str>,
        block: Option<ForkBlock>,
    ) -> Result<Replace, ProducerError> {
        let url: Option<ForkUrl> = url.map(str::parse).transpose().map_err(|error: InvalidForkUrl| refused(&error))?;
        let points = block.map(ForkPoint::At).into_iter().chain(url.as_ref().and_then(|url| url.point));
        let point = ForkPoint::only(points).map_err(|error| refused(&error))?.unwrap_or_default();
        let base = self.backend.base();
        let known = base.upstream();
        let is_first = !self.replays && point.is(base.block(), None) == Some(true);
        // An offline fork does not ask whether a server has its block.
        let is_known = |url: &ForkUrl| known.as_ref().is_none_or(|known| known.is_at(&url.url));
        if is_first && url.as_ref().is_none_or(is_known) {
            return Ok(Box::new(|| Ok(())));
        }
        if self.is_durable && point.is(base.block(), None) == Some(false) {
            return Err(self.keeps_its_block());
        }
        let upstream = match &url {
            Some(ForkUrl { url, .. }) => self.upstream(context, url)?,
            None => known.ok_or_else(|| ProducerError::Fork("the fork is offline, and no URL is given".to_owned()))?,
        };
        let header = match point.find(&upstream, context) {
            Ok(start) => start.block,
            Err(OpenForkError::Upstream(error)) if !matches!(error, UpstreamError::NotFound { .. }) => {
                return Err(unavailable(error));
            }
            Err(error) => return Err(refused(&error)),
        };
        let is_same = !self.replays && header.hash() == base.block().hash();
        if !is_same && self.is_durable {
            return Err(self.keeps_its_block());
        }
        let next = Base::new(Arc::clone(base.contents()), Some(upstream.clone()), header, base.options().clone());
        // If they cannot be read, nothing has changed yet.
        system::fetch_with(&next, reads_of(&self.accounts))?;
        if is_same {
            return Ok(Box::new(move || {
                base.set_upstream(upstream);
                Ok(())
            }));
        }
        let first = node_fork::first_block(&next, Arc::new(Secp256k1Recovery))?;
        let store = Store::fork_in_memory(first, Arc::new(next.clone()), Options::in_memory())?;
        let backend = Arc::clone(&self.backend);
        Ok(Box::new(move || backend.replace(Arc::new(store), next)))
    }
}

impl Fork {
    /// Returns the whole chain, whose blocks after the other chain are in `store`, and its control.
    pub(crate) fn backend(
        self,
        store: Arc<dyn StateBackend>,
        is_durable: bool,
    ) -> Result<(Arc<ForkBackend>, Arc<dyn ForkControl>), BackendError> {
        let Self { base, network, is_network_given, options, accounts, replay, .. } = self;
        let backend = Arc::new(ForkBackend::open(store, base, Arc::new(Secp256k1Recovery))?);
        let control = Control {
            backend: Arc::clone(&backend),
            network,
            is_network_given,
            options,
            accounts,
            is_durable,
            replays: replay.is_some(),
        };
        Ok((backend, Arc::new(control)))
    }
}
