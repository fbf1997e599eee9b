//! Reads a chain and its state from other nodes over JSON-RPC, and verifies what they return.
//!
//! An [`Upstream`] is a chain that one or more endpoints serve over HTTP or WebSocket. [`ProvenState`] reads the state as of a block
//! whose hash is trusted: each account and slot comes with a Merkle proof (EIP-1186), and each code has the hash that its
//! account commits to. [`Upstream::block`], [`Upstream::receipts`] and [`Upstream::ancestors`] read what a header commits
//! to; [`Upstream::headers`] and [`Upstream::blocks_and_receipts`] read many of them together. What is wrong is asked of the other endpoints, and never returned; [`Wrong`] says what it was.
//! [`ClaimedState`] is for endpoints without proofs, and [`Upstream::forward`] for what cannot be verified.
//!
//! Requests go to the endpoints in turn. One that fails is asked after the others for a time that doubles; when all have
//! failed, they are asked again after a time that doubles, or that they stated (`Retry-After`). One that limits its rate
//! is asked as often as it allows. What is read together is sent in batches, which are split if an endpoint refuses them or their responses are large. Callers that need the same
//! at the same time share a request. Methods block, and return when their [`Context`](node_core::context::Context) is
//! cancelled or its deadline passes.
//!
//! Endpoints are not trusted: responses are of limited length, also after decompression, and so are the lists in them.
//!
//! # Features
//! * `clap`, off by default: [`UpstreamOptions`] is a group of command-line options.
//! * `tls`, off by default: URLs with https and wss.
//!
//! # Examples
//! ```no_run
//! use node_core::context::Context;
//! use node_types::BlockId;
//! use node_upstream::{AccountRead, ProvenState, Upstream, UpstreamOptions};
//! use std::time::Duration;
//!
//! let upstream = Upstream::new(&["http://127.0.0.1:8545"], UpstreamOptions::default())?;
//! let context = Context::unbounded().with_timeout(Duration::from_secs(60));
//! // Compare the hash of the header with one from another source.
//! let header = upstream.header(&context, BlockId::finalized())?;
//! let state = ProvenState::new(upstream, header);
//! let read = AccountRead { address: "0xf39Fd6e51aad88F6F4ce6aB8827279cfffFb92266".parse()?, slots: Vec::new() };
//! let proofs = state.accounts(&context, &[read])?;
//! println!("{} wei", proofs[0].account.unwrap_or_default().balance);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bounded;
mod chain;
mod dispatch;
mod endpoint;
mod error;
mod flight;
mod format;
mod gone;
mod many;
mod message;
mod options;
mod pace;
mod socket;
mod state;
#[cfg(test)]
mod tests;
mod upstream;

pub use chain::HashedHeader;
pub use endpoint::{InvalidUrl, check_url};
pub use error::{Needed, UpstreamError, Wrong};
pub use options::{HttpHeader, InvalidHeader, UpstreamOptions};
pub use state::{AccountRead, Claimed, ClaimedAccount, ClaimedState, ProvenState};
pub use upstream::Upstream;
