//! Parts that the servers of `dev` and `run` share.

pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod process;
pub(crate) mod reload;
pub(crate) mod write_failure;
pub(crate) mod writer;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the address at which a client on this machine reaches a server that listens on `address`.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
