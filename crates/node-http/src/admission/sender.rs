//! The sender of a request, and the route it took: directly or through a proxy.

use crate::admission::clients::{Client, Clients};
use crate::admission::forwarded::{self, Forwarded, ProxyNetwork};
use crate::config::HttpConfig;
use crate::transport::handle::ConnectionHandle;
use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderValue};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) client: Arc<Client>,
    /// Whether it is a trusted proxy.
    pub(crate) is_proxy: bool,
    /// Whether the connection was made to the control address.
    pub(crate) is_at_control: bool,
    pub(crate) connection: Arc<ConnectionHandle>,
}

impl Peer {
    /// Creates a peer with this address, or the unspecified address if it is unknown.
    pub(crate) fn new(address: Option<IpAddr>, clients: &Clients, trusted: &[ProxyNetwork]) -> Self {
        let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()).to_canonical();
        let is_proxy = trusted.iter().any(|network| network.contains(address));
        Self { address, client: clients.at(address), is_proxy, is_at_control: false, connection: Arc::default() }
    }
}

/// The sender of a request.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) client: Arc<Client>,
    pub(crate) connection: Arc<ConnectionHandle>,
    pub(crate) origin: Origin,
    /// Whether the request was sent to the control address.
    pub(crate) is_at_control: bool,
    /// The scheme with which the client connected; `None` if it is unknown here, because a proxy or an application that
    /// mounts the routes accepted the connection.
    pub(crate) scheme: Option<&'static str>,
    /// The properties of the request according to trusted proxies.
    pub(crate) forwarded: Option<Box<Forwarded>>,
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A program on this machine that connected directly.
    ThisMachine,
    /// Another machine, or an unknown one.
    Remote,
    /// An untrusted host that claims to forward the request for another one.
    UntrustedProxy(IpAddr),
}

impl Sender {
    /// Returns the sender of `request`. `is_forwarded` is whether the request has a header in which a proxy describes
    /// the client.
    pub(crate) fn new(request: &HttpRequest, is_forwarded: bool, config: &HttpConfig, clients: &Clients) -> Self {
        match request.conn_data::<Peer>() {
            Some(peer) => {
                let scheme = (!is_forwarded && !peer.is_proxy).then(|| config.scheme());
                Self::of_peer(peer, request, scheme, is_forwarded, config, clients)
            }
            // An application that mounts the routes accepts the connections itself.
            None => {
                let address = request.peer_addr().map(|peer| peer.ip());
                let peer = Peer::new(address, clients, &config.listen.trusted_proxies);
                Self::of_peer(&peer, request, None, is_forwarded, config, clients)
            }
        }
    }

    /// Returns the sender of `request`, which arrived on a connection with `peer`. `scheme` is that of the connection
    /// if the client made it.
    fn of_peer(
        peer: &Peer,
        request: &HttpRequest,
        scheme: Option<&'static str>,
        is_forwarded: bool,
        config: &HttpConfig,
        clients: &Clients,
    ) -> Self {
        let forwarded = (is_forwarded && peer.is_proxy).then(|| {
            Box::new(Forwarded::read(request.headers(), config.listen.proxy_headers, &config.listen.trusted_proxies))
        });
        let origin = match &forwarded {
            None if is_forwarded => Origin::UntrustedProxy(peer.address),
            // A proxy that does not identify its client may act for anyone. So may the local proxy that usually
            // exists if there is a public URL.
            None if peer.address.is_loopback() && !peer.is_proxy && !is_public(config) => Origin::ThisMachine,
            _ => Origin::Remote,
        };
        let client = match forwarded.as_ref().and_then(|forwarded| forwarded.client) {
            Some(address) => clients.at(address),
            None => peer.client.clone(),
        };
        let (connection, is_at_control) = (peer.connection.clone(), peer.is_at_control);
        Self { client, connection, origin, is_at_control, scheme, forwarded }
    }

    /// Returns `Host` if nothing else determines to which host the request is addressed.
    pub(crate) fn host<'a>(&self, request: &'a HttpRequest) -> Option<&'a HeaderValue> {
        let is_alone = self.forwarded.is_none() && request.uri().authority().is_none();
        request.headers().get(HOST).filter(|_| is_alone)
    }

    /// Returns the base of the URLs in the response, or `None` if no request to the same host was admitted first on the
    /// connection.
    pub(crate) fn base_url(&self, request: &HttpRequest) -> Option<&str> {
        self.connection.base_url(self.host(request)?)
    }

    pub(crate) fn is_on_this_machine(&self) -> bool {
        self.origin == Origin::ThisMachine
    }
}

/// Returns whether clients on other machines reach the server at its public URL.
fn is_public(config: &HttpConfig) -> bool {
    config.listen.public_url.as_ref().is_some_and(|url| !url.is_loopback())
}

/// Returns the total length of path, query and headers of a request in bytes, and whether a proxy has added a header.
pub(crate) fn measure_head(request: &HttpRequest) -> (usize, bool) {
    let uri = request.uri();
    let mut length = uri.path().len() + uri.query().map_or(0, str::len);
    let mut is_forwarded = false;
    for (name, value) in request.headers() {
        // Four bytes for the colon, the space and the line break.
        length += name.as_str().len() + value.len() + 4;
        is_forwarded |= forwarded::is_from_proxy(name.as_str());
    }
    (length, is_forwarded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ListenOptions;
    use actix_web::test::TestRequest;

    #[test]
    fn path_query_and_headers_count_towards_the_length() {
        let request = TestRequest::with_uri("/1234?56").insert_header(("a", "bc")).to_http_request();
        assert_eq!(measure_head(&request), (14, false));
        for name in ["X-Forwarded-Host", "Via"] {
            assert!(measure_head(&TestRequest::default().insert_header((name, "")).to_http_request()).1, "{name}");
        }
    }

    #[test]
    fn only_direct_connections_without_a_public_url_are_of_this_machine() {
        use Origin::*;
        let proxy = || IpAddr::from([127, 0, 0, 1]);
        let cases = [
            ("", None, "127.0.0.1:1", None, ThisMachine, "127.0.0.1"),
            ("", None, "[::1]:1", None, ThisMachine, "::"),
            ("", None, "192.0.2.9:1", None, Remote, "192.0.2.9"),
            ("", None, "127.0.0.1:1", Some("203.0.113.5"), UntrustedProxy(proxy()), "127.0.0.1"),
            ("127.0.0.0/8", None, "127.0.0.1:1", None, Remote, "127.0.0.1"),
            ("127.0.0.0/8", None, "127.0.0.1:1", Some("203.0.113.5"), Remote, "203.0.113.5"),
            ("127.0.0.0/8", None, "127.0.0.1:1", Some("127.0.0.1"), Remote, "127.0.0.1"),
            ("192.0.2.9", None, "127.0.0.1:1", None, ThisMachine, "127.0.0.1"),
            ("", Some("https://node.example"), "127.0.0.1:1", None, Remote, "127.0.0.1"),
            ("", Some("http://localhost:8545"), "127.0.0.1:1", None, ThisMachine, "127.0.0.1"),
            ("", Some("http://[::1]:8545"), "127.0.0.1:1", None, ThisMachine, "127.0.0.1"),
        ];
        for (trusted, public_url, peer, header, origin, client) in cases {
            let config = HttpConfig {
                listen: ListenOptions {
                    trusted_proxies: trusted.split(',').filter_map(|network| network.parse().ok()).collect(),
                    public_url: public_url.map(|url| url.parse().unwrap()),
                    ..Default::default()
                },
                ..HttpConfig::default()
            };
            let mut request = TestRequest::default().peer_addr(peer.parse().unwrap());
            if let Some(header) = header {
                request = request.insert_header(("x-forwarded-for", header));
            }
            let sender = Sender::new(&request.to_http_request(), header.is_some(), &config, &Clients::default());
            let got = (sender.origin, sender.client.network());
            assert_eq!(got, (origin, client.parse().unwrap()), "{trusted} {public_url:?} {peer} {header:?}");
        }
    }
}
