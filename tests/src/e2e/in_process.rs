//! Servers in the process of a test, for settings that are not options of the program.

use crate::server::{Server, Transport};
use crate::tls::Identity;
use actix_web::rt::System;
use node_core::node::Node;
use node_dev::DevNode;
use node_http::{HttpConfig, ListenOptions, Tls};
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;

/// Serves `node` on a free port until the process ends.
pub(crate) fn serve(node: Arc<Node>, config: HttpConfig) -> Server {
    Server::at(listen(node, config))
}

/// Returns the address where `node` is served.
fn listen(node: Arc<Node>, config: HttpConfig) -> SocketAddr {
    let (sender, address) = mpsc::channel();
    thread::spawn(move || {
        System::new().block_on(async move {
            let server = node_http::Server::bind(
                node,
                HttpConfig { listen: ListenOptions { port: 0, ..config.listen }, ..config },
            )
            .unwrap();
            sender.send(server.address()).unwrap();
            server.run().await.unwrap();
        });
    });
    address.recv().unwrap()
}

/// Serves a development chain, which exists as long as the returned node, on a free port.
pub(crate) fn serve_dev(config: HttpConfig) -> (DevNode, Server) {
    serve_dev_over(Transport::Plain, config)
}

/// Like [`serve_dev`], for requests over `transport`.
pub(crate) fn serve_dev_over(transport: Transport, config: HttpConfig) -> (DevNode, Server) {
    let identity = (transport == Transport::Tls).then(Identity::new);
    let tls = identity.as_ref().map(|identity| {
        let [certificates, key] = ["cert.pem", "key.pem"].map(|name| std::fs::read(identity.file(name)).unwrap());
        Tls::from_pem(&certificates, &key).unwrap()
    });
    let chain = DevNode::builder().client_version("ethnode/0.1.0").spawn().unwrap();
    let address =
        listen(Arc::clone(chain.node()), HttpConfig { listen: ListenOptions { tls, ..config.listen }, ..config });
    (chain, Server::at_over(address, transport, identity))
}
