//! What a connection is told as it happens.

use crate::answer;
use crate::error::RpcError;
use crate::method::{Client, Scope};
use crate::wire::{Header, Timestamps, Transaction};
use node_core::context::Context;
use node_core::node::{EventData, EventQuery, EventStream, Node, NodeError};
use node_types::BlockId;
use node_types::wire::Data;
use parking_lot::Mutex;

/// Events of a subscription that are worked out at once.
const PAGE: usize = 32;

/// Bytes of messages after which no more are worked out before these are sent.
const ENOUGH: usize = 256 * 1024;

/// What one connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Most subscriptions at a time.
    pub subscriptions: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
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
    /// How many there ever were; names the next.
    made: u64,
    all: Vec<Subscription>,
    /// Whose turn is next, modulo how many there are.
    first: usize,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: String,
    topic: Topic,
    /// The events that it is made from.
    query: EventQuery,
    stream: EventStream,
}

/// What a subscription tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Headers of new blocks.
    Heads,
    /// Logs that join or leave the chain.
    Logs,
    /// Transactions that come into the pool, whole or by their hashes.
    Transactions {
        /// Whether they are told whole.
        whole: bool,
    },
    /// Changes of being in sync, of which there are none.
    Syncing,
}

impl Session {
    /// No subscriptions yet.
    pub fn new(limits: SessionLimits) -> Self {
        Self { limits, subscriptions: Mutex::default() }
    }

    /// Whether nothing is to be told.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.lock().all.is_empty()
    }

    /// Begins to tell what happens from now on, and answers the name of the subscription.
    pub(crate) fn subscribe(
        &self,
        scope: Scope<'_>,
        topic: Topic,
        query: Option<EventQuery>,
    ) -> Result<String, RpcError> {
        // What happened since the view was opened is not of now.
        scope.context.release_view();
        let stream = query.as_ref().map(|query| scope.node.events(scope.context, query)).transpose()?;
        let mut subscriptions = self.subscriptions.lock();
        let limit = self.limits.subscriptions;
        if subscriptions.all.len() >= limit {
            let message = format!("there are {limit} subscriptions already (`max-subscriptions`)");
            return Err(RpcError::new(RpcError::LIMIT, message));
        }
        subscriptions.made += 1;
        let id = format!("{:#x}", subscriptions.made);
        if let Some((query, stream)) = query.zip(stream) {
            subscriptions.all.push(Subscription { id: id.clone(), topic, query, stream });
        }
        Ok(id)
    }

    /// Ends a subscription. Answers whether there was one.
    pub(crate) fn unsubscribe(&self, id: &str) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let before = subscriptions.all.len();
        subscriptions.all.retain(|subscription| subscription.id != id);
        subscriptions.all.len() < before
    }

    /// The next things to tell, each a whole message: about a page of each subscription, in turn, until there is enough to
    /// send. None when nothing has happened.
    ///
    /// # Errors
    /// When the chain cannot be read and nothing was found before; the same is asked for again then.
    pub fn notifications(&self, node: &Node, context: &Context) -> Result<Vec<Vec<u8>>, RpcError> {
        let (all, first) = {
            let subscriptions = self.subscriptions.lock();
            (subscriptions.all.clone(), subscriptions.first)
        };
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let turns = (0..all.len()).map(|turn| (first + turn) % all.len());
        for turn in turns {
            let subscription = &all[turn];
            let (told, stream) = match subscription.tell(Scope { node, context, client: Client::default() }) {
                Ok(told) => told,
                // What was found so far is told, and the rest asked for again.
                Err(_) if !messages.is_empty() => break,
                Err(error) => return Err(error),
            };
            bytes += told.iter().map(Vec::len).sum::<usize>();
            messages.extend(told);
            let mut subscriptions = self.subscriptions.lock();
            if let Some(kept) = subscriptions.all.iter_mut().find(|kept| kept.id == subscription.id) {
                kept.stream = stream;
            }
            if bytes >= ENOUGH {
                subscriptions.first = turn + 1;
                break;
            }
        }
        Ok(messages)
    }
}

impl Subscription {
    /// What happened, each a whole message, and where to go on.
    fn tell(&self, scope: Scope<'_>) -> Result<(Vec<Vec<u8>>, EventStream), RpcError> {
        let (node, context) = (scope.node, scope.context);
        let (events, stream) = match node.next_events(context, self.stream.clone(), PAGE) {
            Ok(next) => next,
            // The chain begins anew, and with it the subscription.
            Err(NodeError::BlockNotFound { .. }) => {
                return Ok((Vec::new(), node.events(context, &self.query)?));
            }
            Err(error) => return Err(error.into()),
        };
        let mut messages = Vec::new();
        let mut timestamps = Timestamps::default();
        for event in events.into_iter().filter_map(|event| event.data) {
            match (event, self.topic) {
                (EventData::Block(block), _) => {
                    if let Some(header) = node.get_header(context, BlockId::Hash(block.hash))? {
                        messages.push(answer::notification(&self.id, &Header::of(&header)));
                    }
                }
                (EventData::Log(log), _) => {
                    messages.push(answer::notification(&self.id, &timestamps.changed(scope, log)?));
                }
                (EventData::Transaction(hash), Topic::Transactions { whole: true }) => {
                    if let Some(found) = node.get_transaction(context, hash)? {
                        messages.push(answer::notification(&self.id, &Transaction::waiting(found.recovered())));
                    }
                }
                (EventData::Transaction(hash), _) => messages.push(answer::notification(&self.id, &Data(hash))),
            }
        }
        Ok((messages, stream))
    }
}
