//! Subscriptions of a connection.

use crate::error::RpcError;
use crate::response;
use crate::scope::Scope;
use crate::wire::{Header, Log, Transaction};
use node_core::context::Context;
use node_core::logs::PageSize;
use node_core::node::{EventData, EventQuery, EventStream, Node, NodeError};
use node_types::BlockId;
use node_types::wire::Data;
use parking_lot::Mutex;

/// Maximum size of the events of a subscription that are read at once.
const PAGE: PageSize = PageSize { entries: 512, bytes: BATCH_BYTES };

/// The same for transactions in full, each of which may have 128 KiB.
const PAGE_OF_TRANSACTIONS: PageSize = PageSize { entries: 8, bytes: BATCH_BYTES };

/// Number of bytes of messages after which these are sent before more events are read.
const BATCH_BYTES: usize = 256 * 1024;

/// Limits that apply to each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of subscriptions at a time.
    pub subscriptions: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        // Programs need one for each contract that they watch. Each is read in turn when a block arrives.
        Self { subscriptions: 100 }
    }
}

/// The subscriptions of a connection.
#[derive(Debug)]
pub struct Session {
    limits: SessionLimits,
    subscriptions: Mutex<Subscriptions>,
}

#[derive(Debug, Default)]
struct Subscriptions {
    /// Number of subscriptions created so far, which determines the next id.
    created: u64,
    all: Vec<Subscription>,
    /// Index of the subscription that is read first, modulo their number.
    first: usize,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: String,
    topic: Topic,
    /// The events from which its notifications are made; `None` if it reports nothing.
    stream: Option<EventStream>,
}

/// What a subscription reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Headers of new blocks.
    Heads,
    /// Logs that join or leave the chain.
    Logs,
    /// Transactions that enter the pool, in full or by their hashes.
    Transactions {
        /// Whether transactions are sent in full.
        whole: bool,
    },
    /// Changes of the sync status. None are ever reported.
    Syncing,
}

impl Session {
    /// Creates a session without subscriptions.
    pub fn new(limits: SessionLimits) -> Self {
        Self { limits, subscriptions: Mutex::default() }
    }

    /// Returns whether no subscription reports anything.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.lock().all.iter().all(|subscription| subscription.stream.is_none())
    }

    /// Subscribes to future events, and returns the id of the subscription.
    pub(crate) fn subscribe(
        &self,
        scope: Scope<'_>,
        topic: Topic,
        query: Option<EventQuery>,
    ) -> Result<String, RpcError> {
        // The subscription starts now, not at the view that earlier requests of the batch have read.
        scope.context.release_view();
        let stream = query.as_ref().map(|query| scope.node.events(scope.context, query)).transpose()?;
        let mut subscriptions = self.subscriptions.lock();
        let limit = self.limits.subscriptions;
        if subscriptions.all.len() >= limit {
            let message = format!("there are {limit} subscriptions already");
            return Err(RpcError::new(RpcError::LIMIT, message));
        }
        subscriptions.created += 1;
        let id = format!("{:#x}", subscriptions.created);
        subscriptions.all.push(Subscription { id: id.clone(), topic, stream });
        Ok(id)
    }

    /// Ends a subscription. Returns whether it existed.
    pub(crate) fn unsubscribe(&self, id: &str) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let before = subscriptions.all.len();
        subscriptions.all.retain(|subscription| subscription.id != id);
        subscriptions.all.len() < before
    }

    /// Returns the next notifications, each a complete message: about a page of each subscription in turn, until
    /// there are enough bytes to send. The list is empty if there are no new events.
    ///
    /// # Errors
    /// If the chain cannot be read and no event was found before that. The next call tries again.
    pub fn notifications(&self, node: &Node, context: &Context) -> Result<Vec<Vec<u8>>, RpcError> {
        let (all, first) = {
            let subscriptions = self.subscriptions.lock();
            (subscriptions.all.clone(), subscriptions.first)
        };
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let turns = (0..all.len()).map(|turn| (first + turn) % all.len());
        for turn in turns {
            let found = match self.next(all[turn].clone(), node, context) {
                Ok(found) => found,
                // Returns the messages found so far; the next call retries the rest.
                Err(_) if !messages.is_empty() => break,
                Err(error) => return Err(error),
            };
            bytes += found.iter().map(Vec::len).sum::<usize>();
            messages.extend(found);
            if bytes >= BATCH_BYTES {
                self.subscriptions.lock().first = turn + 1;
                break;
            }
        }
        Ok(messages)
    }

    /// Returns the next notifications of a subscription; empty if there are no new events. Progress is kept even if an
    /// error follows.
    fn next(&self, mut subscription: Subscription, node: &Node, context: &Context) -> Result<Vec<Vec<u8>>, RpcError> {
        while let Some(before) = subscription.stream.take() {
            let (found, stream) = subscription.next(node, context, &before)?;
            let has_moved = stream != before;
            if has_moved {
                let mut subscriptions = self.subscriptions.lock();
                if let Some(current) = subscriptions.all.iter_mut().find(|current| current.id == subscription.id) {
                    current.stream = Some(stream.clone());
                }
            }
            if !found.is_empty() || !has_moved {
                return Ok(found);
            }
            subscription.stream = Some(stream);
        }
        Ok(Vec::new())
    }
}

impl Subscription {
    /// Returns the next notifications of `stream`, and the stream after them.
    fn next(
        &self,
        node: &Node,
        context: &Context,
        stream: &EventStream,
    ) -> Result<(Vec<Vec<u8>>, EventStream), RpcError> {
        let page = match self.topic {
            Topic::Transactions { whole: true } => PAGE_OF_TRANSACTIONS,
            _ => PAGE,
        };
        let (events, next) = match node.next_events(context, stream.clone(), page) {
            Ok(next) => next,
            // The chain was reset, so the subscription starts over.
            Err(NodeError::BlockNotFound { .. }) => {
                return Ok((Vec::new(), node.restart_events(context, stream)?));
            }
            Err(error) => return Err(error.into()),
        };
        let mut messages = Vec::new();
        for event in events.into_iter().filter_map(|event| event.data) {
            match (event, self.topic) {
                (EventData::Block(block), _) => {
                    if let Some(header) = node.get_header(context, BlockId::Hash(block.hash))? {
                        messages.push(response::notification(&self.id, &Header::of(&header)));
                    }
                }
                (EventData::Log(log), _) => {
                    messages.push(response::notification(&self.id, &Log::from(log)));
                }
                (EventData::Transaction(hash), Topic::Transactions { whole: true }) => {
                    if let Some(found) = node.get_transaction(context, hash)? {
                        messages.push(response::notification(&self.id, &Transaction::waiting(found.recovered())));
                    }
                }
                (EventData::Transaction(hash), _) => messages.push(response::notification(&self.id, &Data(hash))),
            }
        }
        Ok((messages, next))
    }
}
