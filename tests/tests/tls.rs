//! The server with TLS.

#![allow(clippy::unwrap_used)]

use node_tests::server::{Server, run_to_end};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Files with a certificate for localhost and its key.
struct Identity {
    folder: TempDir,
    roots: RootCertStore,
}

impl Identity {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(folder.path().join("cert.pem"), cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        Self { folder, roots }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn connect(&self, server: &Server, protocol: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(connection, server.connect())
    }
}

#[test]
fn serves_only_tls() {
    let identity = Identity::new();
    let (certificate, key) = (identity.file("cert.pem"), identity.file("key.pem"));
    let options = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::start(options);
    assert!(server.url().starts_with("https://"), "{}", server.url());

    let mut stream = identity.connect(&server, "http/1.1");
    stream.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("{\"$schema\":\"https://localhost/schemas/Output_chainId.json\""), "{text}");

    let mut stream = identity.connect(&server, "h2");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "settings come first: {frame:?}");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));

    let mut plain = server.connect();
    plain.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut response = Vec::new();
    // The connection may be closed with or without a TLS close notification.
    let _ = plain.read_to_end(&mut response);
    assert!(!response.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&response));
    assert_eq!(server.end("TERM").code(), Some(0));
}

#[test]
fn invalid_certificates_fail_the_start() {
    let (identity, other) = (Identity::new(), Identity::new());
    let nothing = identity.file("nothing.pem");
    fs::write(&nothing, "nothing").unwrap();
    let missing = identity.file("missing.pem");
    let (certificate, key) = (identity.file("cert.pem"), identity.file("key.pem"));
    let cases = [
        (&certificate, &other.file("key.pem"), "cannot be used"),
        (&nothing, &key, "contains no certificate"),
        (&certificate, &nothing, "the key is not PEM"),
        (&missing, &key, "missing.pem"),
    ];
    for (certificate, key, complaint) in cases {
        let output = run_to_end([&"--tls-cert".into(), certificate, &"--tls-key".into(), key]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(complaint), "{complaint}: {stderr}");
    }
}
