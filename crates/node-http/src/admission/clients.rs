//! Clients, and their shares of the server's resources.
//!
//! A client is an IPv4 address, or the /64 network of an IPv6 address, which belongs to a single site. A client may
//! take at most as much of each resource as it leaves for all others: the first client gets at most half, the next
//! one half of the rest. Therefore no client can prevent others from being served, and nothing is reserved for
//! clients that do not exist.

use node_core::context::{ClientId, is_fair_share};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A resource that clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Open connections.
    Connections,
    /// Requests in progress.
    Requests,
    /// Open event streams and WebSockets.
    Streams,
    /// Bytes of long request bodies that are being received, and of long responses that are being sent.
    Transfers,
}

/// Number of variants of [`Resource`].
const RESOURCES: usize = 4;

/// A client, with the amount that it holds of each resource.
#[derive(Debug)]
pub(crate) struct Client {
    network: IpAddr,
    held: [AtomicUsize; RESOURCES],
}

impl Client {
    fn new(network: IpAddr) -> Arc<Self> {
        Arc::new(Self { network, held: Default::default() })
    }

    /// Returns the address that represents the client.
    pub(crate) fn network(&self) -> IpAddr {
        self.network
    }

    pub(crate) fn id(&self) -> ClientId {
        ClientId(match self.network {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        })
    }

    fn held(&self, resource: Resource) -> &AtomicUsize {
        &self.held[resource as usize]
    }
}

/// The clients that hold something.
#[derive(Default)]
pub(crate) struct Clients(Mutex<Known>);

#[derive(Default)]
struct Known {
    clients: HashMap<IpAddr, Weak<Client>>,
    /// The number of entries at which entries of clients that hold nothing are removed.
    sweep_at: usize,
}

/// Minimum number of entries before any are removed.
const MIN_SWEEP: usize = 1_024;

impl Clients {
    pub(crate) fn at(&self, address: IpAddr) -> Arc<Client> {
        let network = network(address);
        let mut known = self.0.lock();
        if let Some(client) = known.clients.get(&network).and_then(Weak::upgrade) {
            return client;
        }
        if known.clients.len() >= known.sweep_at {
            known.clients.retain(|_, client| client.strong_count() > 0);
            known.sweep_at = MIN_SWEEP.max(known.clients.len() * 2);
        }
        let client = Client::new(network);
        known.clients.insert(network, Arc::downgrade(&client));
        client
    }
}

/// Returns the address that identifies a client: an IPv4 address, or the /64 network of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// The limit on the amount of a resource that all clients together may hold.
#[derive(Debug)]
pub(crate) struct Limit {
    resource: Resource,
    capacity: usize,
    taken: AtomicUsize,
}

impl Limit {
    pub(crate) fn new(resource: Resource, capacity: usize) -> Arc<Self> {
        Arc::new(Self { resource, capacity, taken: AtomicUsize::new(0) })
    }

    /// Returns the amount that all clients hold.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes `amount` for `client`.
    ///
    /// # Errors
    /// If `amount` is not zero, and not enough is left or the client would hold more than it leaves for others.
    pub(crate) fn take(self: &Arc<Self>, client: &Arc<Client>, amount: usize) -> Result<Permit, Exhausted> {
        let mut permit = self.take_nothing(client);
        permit.grow(amount)?;
        Ok(permit)
    }

    /// Returns a permit of nothing for `client`, which can [grow](Permit::grow).
    pub(crate) fn take_nothing(self: &Arc<Self>, client: &Arc<Client>) -> Permit {
        Permit { limit: self.clone(), client: client.clone(), amount: 0 }
    }

    /// Like [`take`](Self::take), for a client to which shares do not apply: a proxy, which represents many clients.
    pub(crate) fn take_unshared(self: &Arc<Self>, client: &Arc<Client>, amount: usize) -> Result<Permit, Exhausted> {
        let mut permit = self.take_nothing(client);
        match permit.add(amount) {
            (_, Some(_)) => Ok(permit),
            (_, None) => Err(permit.exhausted()),
        }
    }
}

/// An amount of a resource that a client holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limit: Arc<Limit>,
    client: Arc<Client>,
    amount: usize,
}

impl Permit {
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Returns the amount that all clients together may hold.
    pub(crate) fn capacity(&self) -> usize {
        self.limit.capacity
    }

    /// Takes `more` of the resource.
    ///
    /// # Errors
    /// Those of [`Limit::take`]. On an error the permit is unchanged.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Exhausted> {
        match self.add(more) {
            // Others may have taken some of what the client once left to them.
            _ if more == 0 => Ok(()),
            // If this permit is all that the client holds, its share is not unfair, however large it is.
            (held, Some(left)) if held == self.amount || is_fair_share(held, left) => Ok(()),
            _ => {
                self.give_back(more);
                Err(self.exhausted())
            }
        }
    }

    /// Returns `less` of the amount.
    pub(crate) fn give_back(&mut self, less: usize) {
        self.amount -= less;
        self.client.held(self.limit.resource).fetch_sub(less, Ordering::Relaxed);
        self.limit.taken.fetch_sub(less, Ordering::Relaxed);
    }

    /// Returns the amount that the client then holds, and the amount that is left, or `None` if the limit is
    /// exceeded.
    fn add(&mut self, more: usize) -> (usize, Option<usize>) {
        self.amount += more;
        let held = self.client.held(self.limit.resource).fetch_add(more, Ordering::Relaxed) + more;
        let taken = self.limit.taken.fetch_add(more, Ordering::Relaxed) + more;
        (held, self.limit.capacity.checked_sub(taken))
    }

    fn exhausted(&self) -> Exhausted {
        Exhausted { resource: self.limit.resource, capacity: self.limit.capacity }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// A resource, or a client's share of it, is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server allows at most {capacity} {} at a time; one client may hold at most half of what the others leave free (`{}`)", .resource.plural(), .resource.option())]
pub(crate) struct Exhausted {
    pub(crate) resource: Resource,
    /// The amount that all clients together may hold.
    pub(crate) capacity: usize,
}

impl Resource {
    /// Returns the option that sets the limit of the resource.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Connections => "max-connections",
            Self::Requests => "max-requests",
            Self::Streams => "max-streams",
            Self::Transfers => "transfer-memory",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Requests => "requests",
            Self::Streams => "event streams and WebSockets",
            Self::Transfers => "bytes of requests and responses",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Arc<Client> {
        Client::new(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn a_client_leaves_as_much_to_others_as_it_holds() {
        let limit = Limit::new(Resource::Streams, 16);
        let [first, second, third] = [1, 2, 3].map(client);
        let take_all = |client: &Arc<Client>| -> Vec<_> { (0..20).map_while(|_| limit.take(client, 1).ok()).collect() };
        let held = [take_all(&first), take_all(&second), take_all(&third)];
        assert_eq!(held.each_ref().map(Vec::len), [8, 4, 2]);
        assert_eq!(limit.taken(), 14);
        assert!(limit.take(&first, 1).is_err());
        let proxy: Vec<_> = (0..3).map_while(|_| limit.take_unshared(&first, 1).ok()).collect();
        assert_eq!(proxy.len(), 2, "the rest");
        drop((held, proxy));
        assert_eq!((limit.taken(), take_all(&second).len()), (0, 8));
        assert_eq!(limit.taken(), 0);
    }

    #[test]
    fn a_client_that_holds_nothing_may_take_the_rest() {
        let limit = Limit::new(Resource::Transfers, 100);
        let [first, second] = [1, 2].map(client);
        let mut long = limit.take(&first, 80).unwrap();
        assert!(long.grow(1).is_ok(), "a single response may grow");
        assert!(limit.take(&first, 1).is_err() && limit.take(&second, 20).is_err());
        assert_eq!(limit.taken(), 81, "refusals take nothing");
        let rest = limit.take(&second, 19).unwrap();
        assert!(limit.take(&first, 0).is_ok(), "an amount of zero is always granted");
        drop(rest);
        long.give_back(81);
        assert_eq!((long.amount(), limit.taken()), (0, 0));
        assert!(Limit::new(Resource::Streams, 0).take(&first, 1).is_err());
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let clients = Clients::default();
        let at = |address: &str| clients.at(address.parse().unwrap());
        let first = at("2001:db8:1:2:3::4");
        assert!(Arc::ptr_eq(&first, &at("2001:db8:1:2:9::9")) && !Arc::ptr_eq(&first, &at("2001:db8:1:3::4")));
        assert_eq!(first.network(), "2001:db8:1:2::".parse::<IpAddr>().unwrap());
        assert_eq!(at("::ffff:192.0.2.1").network(), IpAddr::from([192, 0, 2, 1]));
        for last in 0..4_096_u32 {
            at(&Ipv6Addr::from_bits(u128::from(last) << 64).to_string());
        }
        assert!(clients.0.lock().clients.len() <= MIN_SWEEP, "clients without resources are removed");
    }
}
